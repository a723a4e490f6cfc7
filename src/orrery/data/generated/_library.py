"""The sources of the running Python's standard library, and the docstrings in them, read once."""

import sysconfig
from functools import cache
from pathlib import Path

from orrery.data.python_docs import docstrings, modules
from orrery.errors import DataError

PYTHON = "the standard library of the running Python (PSF licence)"


@cache
def sources() -> tuple[tuple[str, bytes], ...]:
    """Return (module, source) in order; test, idlelib, lib2to3 and installed packages are left out.

    Raises:
        DataError: this Python has no sources.
    """
    modules_read = tuple(modules(Path(sysconfig.get_path("stdlib"))))
    if not modules_read:
        raise DataError(
            "this Python brings no sources of its library", "install the full standard library, or name a file"
        )
    return modules_read


@cache
def library_docstrings() -> tuple[tuple[str, str], ...]:
    """Return (module, docstring) of everything in the library that has one, in order; of equal texts the first.

    Raises:
        DataError: this Python has no sources.
    """
    module_by_text: dict[str, str] = {}
    for module, source in sources():
        for _, text in docstrings(module, source):
            module_by_text.setdefault(text, module)
    return tuple((module, text) for text, module in module_by_text.items())


def folded(text: str) -> str:
    """Return a text in small letters with single blanks, to compare it."""
    return " ".join(text.split()).casefold()
