"""The summary line of a docstring, to be written from the rest of it."""

import re
from collections.abc import Iterator

from orrery.data.generated import GeneratedSet, register
from orrery.data.generated._library import PYTHON, folded, library_docstrings
from orrery.data.splits import held_back

EVERY = 10
FEWEST = 5
"""Words of a body."""

_SIGNATURE = re.compile(r"->|\w\(.*\)$|^\w+\.py\b|^[=\-~#*]+$")


@register
class DocstringSummaries(GeneratedSet):
    """Body of a docstring to its first line."""

    kind = "docstring_summaries"
    what = "the rest of a docstring and its first line, which sums it up"
    made_from = PYTHON
    how = (
        "docstrings whose first line ends in a full stop or stands before an empty line; no signatures, and no first "
        "line that the rest repeats; every tenth module (by the sha256 of its name) is `val`"
    )
    columns = ("source", "target")

    def records(self, part: str) -> Iterator[dict[str, str]]:
        """Yield the rows of the modules of a part."""
        bodies: set[str] = set()
        for module, text in library_docstrings():
            row = summarised(text)
            if row is None or folded(row["source"]) in bodies:
                continue
            bodies.add(folded(row["source"]))
            if held_back(module, EVERY) == (part == "val"):
                yield row


def summarised(text: str) -> dict[str, str] | None:
    """Return the rest of a docstring and its first line; nothing where that is no summary."""
    first, _, rest = text.partition("\n")
    first, body = first.strip(), rest.strip()
    stands_alone = rest.startswith("\n") or first.endswith(".")
    if not stands_alone or len(first.split()) < 2 or len(body.split()) < FEWEST or _SIGNATURE.search(first):
        return None
    return None if folded(first).rstrip(".:") in folded(body) else {"source": body, "target": first}
