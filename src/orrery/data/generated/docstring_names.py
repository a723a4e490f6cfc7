"""The words of the name of what a docstring describes: labels are many, and each text has several."""

import re
from collections.abc import Iterator

from orrery.data.generated import GeneratedSet, register
from orrery.data.generated._library import PYTHON, folded, sources
from orrery.data.python_docs import docstrings
from orrery.data.splits import held_back

EVERY = 10
WORDS = 4
"""A docstring has at least as many."""
_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")


@register
class DocstringNames(GeneratedSet):
    """Docstring to the words of the name of its module, class, method or function."""

    kind = "docstring_names"
    what = "docstrings and the words of the names of what they describe, several each"
    made_from = PYTHON
    how = (
        "docstrings of four words or more; labels are the words of the last part of the name, in small letters, of "
        "two letters or more; equal texts have the words of all their names; every tenth text (by its sha256) is `val`"
    )
    columns = ("text", "labels")
    text, label = "text", "labels"

    def records(self, part: str) -> Iterator[dict[str, object]]:
        """Yield the rows of a part."""
        texts: dict[str, str] = {}
        words: dict[str, dict[str, None]] = {}
        for module, source in sources():
            for name, text in docstrings(module, source):
                own = words_of_name(name)
                if own and len(text.split()) >= WORDS:
                    key = folded(text)
                    texts.setdefault(key, text)
                    words.setdefault(key, {}).update(dict.fromkeys(own))
        for key, text in texts.items():
            if held_back(key, EVERY) == (part == "val"):
                yield {"text": text, "labels": list(words[key])}


def words_of_name(name: str) -> list[str]:
    """Return the words of the last part of a name in small letters: of ``io.TextIOBase.read_all`` read and all."""
    parts = _PARTS.findall(name.rpartition(".")[2])
    return list(dict.fromkeys(part.lower() for part in parts if len(part) > 1 and not part.isdecimal()))
