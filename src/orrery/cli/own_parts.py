"""The Python files of parts that a command line names."""

import sys
import traceback
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from orrery.errors import DataError, OrreryError, UsageError


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
        # Behind all others: what lies beside the file must not stand for a module of the same name that is installed.
        sys.path.append(folder)
    try:
        spec = find_spec(file.stem)
        if spec is None or Path(spec.origin or "").resolve() != file.resolve():
            raise UsageError(f"Python knows another module called {file.stem}", "give the file another name")
        import_module(file.stem)
    except OrreryError:
        raise
    except Exception as error:
        lines = [
            step.lineno for step in traceback.extract_tb(error.__traceback__) if Path(step.filename) == file.resolve()
        ]
        place = f"{file}, line {lines[-1]}" if lines else str(file)
        raise DataError(f"cannot import {place}: {type(error).__name__}: {error}", "--debug shows where") from error
