"""Two parts of a text in one row, which follow each other or do not, as a pure function of (seed, step)."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from orrery.data.batches.order import Shuffled
from orrery.data.batches.token_windows import PureSource
from orrery.data.records import Document
from orrery.errors import DataError, UsageError

if TYPE_CHECKING:
    from orrery.text.tokenizer import Tokenizer

Ids = list[int]

_END = re.compile(r"(?<=[.!?])\s+|\s*\n+\s*")


@dataclass(frozen=True)
class SentenceRun:
    """Neighbouring sentences of a document that fit into one row: from ``start`` to below ``stop``."""

    document: int
    start: int
    stop: int


class SentencePairs(PureSource):
    """Rows ``[CLS] a [SEP] b [SEP]`` of two parts of a text: ``ids``, ``token_types``, ``real`` and a label.

    A row is a run of sentences as long as fits, cut between two of them, each cut equally likely. In half of the rows,
    on average, the label is 0: with ``swap`` the two parts then change places (Lan et al. 2020, section 3.1), else the
    second is of another document, cut to what fits (Devlin et al. 2019, section 3.1). Every epoch visits each run once.

    Args:
        documents: the ids of the sentences of each document.
        tokenizer: puts its special tokens around the parts.
        length: tokens of a row at most.
        size: rows of a batch.
        seed: of the order, the cuts and the labels.
        label: the name of the field [B] that is 1 where the second part follows the first.
        swap: whether parts change places.
    """

    def __init__(
        self,
        documents: Sequence[Sequence[Ids]],
        tokenizer: "Tokenizer",
        length: int,
        size: int,
        seed: int,
        *,
        label: str,
        swap: bool,
    ) -> None:
        self.tokenizer, self.size, self.seed, self.label, self.swap = tokenizer, size, seed, label, swap
        self.room = length - len(tokenizer.around([], []).ids)
        if self.room < 2:
            raise UsageError(f"batches.length {length} has no room for two parts of a text", "raise batches.length")
        self.documents = [[part for ids in document for part in _short(ids, self.room // 2)] for document in documents]
        self.runs = [run for number, parts in enumerate(self.documents) for run in _runs(number, parts, self.room)]
        if len({run.document for run in self.runs}) < (1 if swap else 2):
            needed = "a document" if swap else "two documents"
            raise DataError(f"pairs of sentences need {needed} of two sentences or more", "give more text")
        self.order = Shuffled(len(self.runs), seed)
        self.tokens_per_step, self.rows_per_epoch = size * length, len(self.runs)

    def batch(self, step: int) -> dict[str, Tensor]:
        """Return the rows of ``step``, in the order of their epoch, padded on the right."""
        rng = np.random.default_rng([self.seed, step, 2])
        numbers = self.order.items(step * self.size, (step + 1) * self.size)
        true_B = rng.random(self.size) < 0.5
        parts = [self._parts(self.runs[number], bool(true), rng) for number, true in zip(numbers, true_B, strict=True)]
        rows = [self.tokenizer.around(first, second) for first, second in parts]
        width = max(len(row.ids) for row in rows)
        ids_BL, token_types_BL = np.zeros((self.size, width), np.int64), np.zeros((self.size, width), np.int64)
        real_BL = np.zeros((self.size, width), bool)
        for place, row in enumerate(rows):
            here = place, slice(len(row.ids))
            ids_BL[here], token_types_BL[here], real_BL[here] = row.ids, row.token_types, True
        inputs = {"ids": ids_BL, "token_types": token_types_BL, "real": real_BL}
        return {
            name: torch.from_numpy(array) for name, array in {**inputs, self.label: true_B.astype(np.int64)}.items()
        }

    def _parts(self, run: SentenceRun, true: bool, rng: np.random.Generator) -> tuple[Ids, Ids]:
        """Return the two parts of a row."""
        cut = int(rng.integers(run.start + 1, run.stop))
        first, second = (self._joined(run.document, *ends) for ends in ((run.start, cut), (cut, run.stop)))
        if true:
            return first, second
        return (second, first) if self.swap else (first, self._elsewhere(run.document, self.room - len(first), rng))

    def _elsewhere(self, document: int, room: int, rng: np.random.Generator) -> Ids:
        """Return the beginning of a run of another document, at most ``room`` tokens of it; each run equally likely."""
        while True:
            other = self.runs[int(rng.integers(len(self.runs)))]
            if other.document != document:
                return self._joined(other.document, int(rng.integers(other.start, other.stop)), other.stop)[:room]

    def _joined(self, document: int, start: int, stop: int) -> Ids:
        return [id for ids in self.documents[document][start:stop] for id in ids]


def sentences(tokenizer: "Tokenizer", documents: Iterable[Document]) -> list[list[Ids]]:
    """Return the ids of the sentences of each document: they end at ``.``, ``!``, ``?`` and at line ends."""
    texts = [[part for part in _END.split(document.text) if part] for document in documents]
    encoded = iter(tokenizer.encode_batch([part for parts in texts for part in parts]))
    return [[ids for ids in (next(encoded) for _ in parts) if ids] for parts in texts]


def _short(ids: Ids, most: int) -> list[Ids]:
    """Return a sentence in pieces of at most ``most`` tokens."""
    return [ids[start : start + most] for start in range(0, len(ids), most)]


def _runs(document: int, parts: Sequence[Ids], room: int) -> list[SentenceRun]:
    """Return runs of sentences, each as long as fits; one of a single sentence is left out."""
    runs, start, used = [], 0, 0
    for place, ids in enumerate(parts):
        if used + len(ids) > room:
            runs.append(SentenceRun(document, start, place))
            start, used = place, 0
        used += len(ids)
    return [run for run in (*runs, SentenceRun(document, start, len(parts))) if run.stop - run.start > 1]
