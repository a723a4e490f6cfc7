"""What readers yield: a document, a sentence with what is annotated on its words, a pair of texts."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Document:
    """One whole text and a name that is unique in its corpus and the same on every machine.

    ``row`` is all of the row that holds it, where that was asked for; ``meaning`` is what else must be equal for two of
    one text to be duplicates.
    """

    name: str
    text: str
    row: Mapping[str, Any] = field(default_factory=dict, compare=False)
    meaning: str = field(default="", compare=False)


@dataclass(frozen=True)
class Sentence:
    """The words of a sentence and their annotations, one value a word; a layer that the format lacks is ().

    ``line`` is where it starts in its file, ``name`` the file's own name for it, else that line. ``heads`` are
    word numbers from 1, 0 for the root, None where not annotated; ``tags`` are those of a BIO file. Other
    values are as written, "_" for unspecified.
    """

    line: int
    name: str
    text: str
    words: tuple[str, ...]
    lemmas: tuple[str, ...] = ()
    upos: tuple[str, ...] = ()
    xpos: tuple[str, ...] = ()
    feats: tuple[Mapping[str, str], ...] = ()
    heads: tuple[int | None, ...] = ()
    deprels: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    starts_document: bool = False


@dataclass(frozen=True)
class Pair:
    """A source and what is written from it: line ``line`` of two files, or of a table with a column for each.

    ``references`` are further targets of the same source, which a score may compare with.
    """

    line: int
    source: str
    target: str
    references: tuple[str, ...] = ()

    @property
    def where(self) -> str:
        """Where it stands."""
        return f"line {self.line}"

    @property
    def parts(self) -> tuple[str, ...]:
        """Both sides."""
        return (self.source, self.target)

    @property
    def whole(self) -> tuple[str, ...]:
        """The same."""
        return self.parts
