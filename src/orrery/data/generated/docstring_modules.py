"""The package that a docstring belongs to."""

import re
from collections import Counter
from collections.abc import Iterator

from orrery.data.generated import GeneratedSet, register
from orrery.data.generated._library import PYTHON, folded, library_docstrings
from orrery.data.splits import held_back

EVERY = 10
FEWEST = 60
"""Docstrings of a package."""

WORDS = 6
"""A docstring has at least as many."""

MASK = "___"


@register
class DocstringModules(GeneratedSet):
    """Docstring to top-level package."""

    kind = "docstring_modules"
    what = "docstrings and the package that each belongs to"
    made_from = PYTHON
    how = (
        "packages with 60 docstrings or more, of six words or more each; the package's name is masked as ___ wherever "
        "it stands as a word or before a dot; names of its classes and functions stay, and tell much; every tenth text "
        "(by its sha256) is `val`, so a module is on both sides"
    )
    columns = ("text", "label")
    text, label = "text", "label"

    def records(self, part: str) -> Iterator[dict[str, str]]:
        """Yield the rows of a part."""
        rows: dict[str, dict[str, str]] = {}
        for module, text in library_docstrings():
            package = module.partition(".")[0]
            if len(text.split()) >= WORDS:
                masked = without_name(text, package)
                rows.setdefault(folded(masked), {"text": masked, "label": package})
        counts = Counter(row["label"] for row in rows.values())
        for key, row in rows.items():
            if counts[row["label"]] >= FEWEST and held_back(key, EVERY) == (part == "val"):
                yield row


def without_name(text: str, package: str) -> str:
    """Return a text with a package's name masked, in small or capital letters, with or without underscores before it.

    A part of a longer word stays: ``email`` in ``emails``.
    """
    name = re.escape(package.strip("_"))
    return re.sub(rf"(?<![^\W_])_*{name}(?![^\W_])", MASK, text, flags=re.IGNORECASE)
