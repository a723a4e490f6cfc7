"""The Python files of parts that a command line names."""

import sys
import sysconfig
import traceback
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path

from orrery.errors import DataError, OrreryError, UsageError

INSTALLED = {Path(sysconfig.get_paths()[name]).resolve() for name in ("stdlib", "platstdlib", "purelib", "platlib")}
"""Where modules are for which no file of a user may stand."""


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
        UsageError: Python has imported another module of its name, or one of its name is installed.
    """
    known = sys.modules.get(file.stem)
    if known is not None and Path(known.__file__ or "").resolve() == file:
        return
    found = find_spec(file.stem) if known is None else None
    if known is not None or (found is not None and _is_installed(found.origin)):
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


def _is_installed(origin: str | None) -> bool:
    return origin is None or not Path(origin).is_file() or not INSTALLED.isdisjoint(Path(origin).resolve().parents)
