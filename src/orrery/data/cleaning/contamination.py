"""How much of a test set stands in the training text: runs of words, and whole lines.

A run of 13 words is the rule of GPT-3 (Brown et al. 2020, appendix C): one shared run and an item counts as seen. 70 %
of its runs of 8 words is that of PaLM (Chowdhery et al. 2022, section 8).
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orrery.data.cleaning.near_duplicates import Hashes, shingles, words_of
from orrery.data.records import Document

LONG, SHORT = 13, 8
SHARE = 0.7
"""Of an item's runs of 8 words: from here on it counts as seen."""


@dataclass(frozen=True)
class Overlap:
    """What of each item stands in the training text.

    Attributes:
        long: the share of an item's runs of 13 words that do; NaN where it has fewer words.
        short: the same of 8 words.
        lines: whether the whole item, but for white space and capital letters, is a line there.
    """

    long: NDArray[np.float64]
    short: NDArray[np.float64]
    lines: NDArray[np.bool_]

    @property
    def seen(self) -> NDArray[np.bool_]:
        """Whether each item counts as seen: by a run of 13 words, by 70 % of its runs of 8, or as a line."""
        return np.asarray((self.long > 0) | (self.short >= SHARE) | self.lines)

    @property
    def unknown(self) -> NDArray[np.bool_]:
        """Whether an item has fewer than 8 words, so that only its whole line could be found."""
        return np.isnan(self.short) & ~self.lines

    def __str__(self) -> str:
        count = len(self.lines)
        return (
            f"{int((self.long > 0).sum()):,} of {count:,} items share {LONG} words in a row, "
            f"{int((self.short >= SHARE).sum()):,} {SHARE:.0%} of their runs of {SHORT}, "
            f"{int(self.lines.sum()):,} are whole lines; {int(self.unknown.sum()):,} have fewer than {SHORT} words"
        )


def overlap(items: Sequence[str], training: Iterable[Document], done: Callable[[int], None] | None = None) -> Overlap:
    """Find the runs of words and the lines of some items in a training text, which is read once.

    Words are those of `orrery.data.cleaning.near_duplicates.shingles`: letters, digits and underscores, without regard
    to case.
    Memory: the items' runs, 8 bytes each, and one document at a time.

    Args:
        items: texts.
        training: documents.
        done: told after each document how many are read.
    """
    lengths = {size: [_runs(item, size) for item in items] for size in (LONG, SHORT)}
    wanted = {size: np.unique(np.concatenate([*runs, np.zeros(0, np.uint64)])) for size, runs in lengths.items()}
    seen = {size: np.zeros(len(runs), bool) for size, runs in wanted.items()}
    lines = {_folded(item) for item in items} - {""}
    seen_lines: set[str] = set()
    for number, document in enumerate(training, start=1):
        for size, runs in wanted.items():
            # A document of fewer words is one run of another length, which is none of these.
            seen[size] |= np.isin(runs, shingles(document.text, size))
        seen_lines |= lines.intersection(map(_folded, document.text.splitlines()))
        seen_lines |= lines & {_folded(document.text)}
        if done is not None:
            done(number)
    shares = {size: _shares(lengths[size], wanted[size][seen[size]]) for size in lengths}
    return Overlap(shares[LONG], shares[SHORT], np.array([_folded(item) in seen_lines for item in items], bool))


def _runs(text: str, size: int) -> Hashes:
    """Return the hashes of a text's runs of so many words; a shorter text has none."""
    return shingles(text, size) if len(words_of(text)) >= size else np.zeros(0, np.uint64)


def _shares(items: Sequence[Hashes], seen: Hashes) -> NDArray[np.float64]:
    return np.array([np.isin(runs, seen).mean() if len(runs) else np.nan for runs in items], np.float64)


def _folded(text: str) -> str:
    return " ".join(text.split()).casefold()
