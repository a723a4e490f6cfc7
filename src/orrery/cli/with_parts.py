"""``orrery with``: a command line that knows the parts of a program's own file."""

import sys
from importlib import import_module
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from orrery.errors import DataError, OrreryError, UsageError


def with_parts(file: Path, /, *line: Annotated[str, Parameter(allow_leading_hyphen=True)]) -> int:
    """Carry out a command line that knows what a Python file registers: tasks, objectives, sources, heads, families.

    orrery with shouting.py finetune shouting --from MODEL --train FILE, and then orrery with shouting.py serve RUN. The
    file is imported as Python imports it, so give only one that you would run. Without a verb, the verbs are listed.

    Args:
        file: A Python file that registers parts.
        line: The verb and what it takes.
    """
    from orrery.cli.program import run

    make_known(file)
    return run(line)


def make_known(file: Path) -> None:
    """Import a file of parts, as a program beside it would by its name.

    Raises:
        UsageError: there is no such file, or Python knows another module by its name.
        DataError: it cannot be imported.
    """
    if not file.is_file() or file.suffix != ".py" or not file.stem.isidentifier():
        hint = "give the path of a file .py that registers parts; its name is letters, digits and _"
        raise UsageError(f"cannot import {file}: there is no such Python file", hint)
    if (folder := str(file.parent.resolve())) not in sys.path:
        sys.path.insert(0, folder)
    try:
        found = import_module(file.stem)
    except OrreryError:
        raise
    except Exception as error:
        raise DataError(f"cannot import {file}: {type(error).__name__}: {error}", "--debug shows where") from error
    if Path(found.__file__ or "").resolve() != file.resolve():
        raise UsageError(f"Python knows another module called {file.stem}", "give the file another name")
