"""The Python files of parts that a command line names."""

import sys
import traceback
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path

from orrery.errors import DataError, OrreryError, UsageError

_FOLDERS: set[Path] = set()
"""Where the files are that were named."""


def make_known(file: Path) -> None:
    """Import a file of parts, as a program beside it would by its name.

    Raises:
        UsageError: there is no such file, or Python knows another module by its name.
        DataError: it cannot be imported.
    """
    if not file.is_file() or file.suffix != ".py" or not file.stem.isidentifier():
        hint = "give the path of a file .py that registers parts; its name is letters, digits and _"
        raise UsageError(f"cannot import {file}: there is no such Python file", hint)
    folder = file.parent.resolve()
    if str(folder) not in sys.path:
        # Behind all others: what lies beside the file must not stand for a module of the same name that is installed.
        sys.path.append(str(folder))
    _FOLDERS.add(folder)
    try:
        _import(file.resolve())
    except OrreryError:
        raise
    except Exception as error:
        lines = [
            step.lineno for step in traceback.extract_tb(error.__traceback__) if Path(step.filename) == file.resolve()
        ]
        place = f"{file}, line {lines[-1]}" if lines else str(file)
        raise DataError(f"cannot import {place}: {type(error).__name__}: {error}", "--debug shows where") from error


def _import(file: Path) -> None:
    """Import a file, unless it is imported.

    Raises:
        UsageError: Python knows another module by its name.
    """
    known = sys.modules.get(file.stem)
    if known is not None and Path(known.__file__ or "").resolve() == file:
        return
    # A file of this name in another folder of such files is found first, and may still stand aside.
    found = find_spec(file.stem) if known is None else None
    if known is not None or (found is not None and Path(found.origin or "").resolve().parent not in _FOLDERS):
        raise UsageError(f"Python knows another module called {file.stem}", "give the file another name")
    spec = spec_from_file_location(file.stem, file)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[file.stem] = module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[file.stem]
        raise
