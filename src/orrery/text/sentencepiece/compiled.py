"""The likeliest segmentation by a compiled search: the ids of `Unigram`, about forty times as fast. Needs numba.

Memory is bounded: once a part is read, all open ways are followed back to the place that they share, and what lies
before it is settled.
"""

import numpy as np
from numpy.typing import NDArray

from orrery.kernels import segmentation
from orrery.text.sentencepiece.file import SentencePieceModel
from orrery.text.sentencepiece.pieces import Cutter, Cutting, Spelled, byte_ids
from orrery.text.sentencepiece.unigram import LARGEST, penalty, scored

FULL = 0.5
"""Share of the slots of a table that are taken at most."""


class Compiled(Cutter):
    """Cut a normalised text into the likeliest pieces."""

    def __init__(self, model: SentencePieceModel) -> None:
        """Take the ordinary and the user-defined pieces; the others are never found in a text."""
        nodes, by_text = {"": 0}, {}
        scores = np.zeros(len(model.pieces), np.float32)
        for id, score, text in scored(model):
            for end in range(1, len(text) + 1):
                nodes.setdefault(text[:end], len(nodes))
            by_text[text], scores[id] = id, score
        scores[model.unknown] = penalty(model)
        rows = [
            (nodes[text[:-1]] * segmentation.SHIFT + ord(text[-1]), node, by_text.get(text, -1))
            for text, node in nodes.items()
            if text
        ]
        size = 1 << int(len(nodes) / FULL).bit_length()
        self.table = segmentation.tabulate(np.array(rows, np.int64).reshape(-1, 3), size)
        self.scores, self.unknown = scores, model.unknown
        self.bytes = np.array(byte_ids(model), np.int32)

    def begin(self) -> Cutting:
        """Return the cutting of a new text."""
        return _Ways(self)

    def ids(self, text: str) -> list[int]:
        """Return the ids of a whole text."""
        return self.cut(text)[0]

    def cut(self, text: str) -> Spelled:
        """Return the ids of a whole text, and where they stand."""
        cut_ids = segmentation.cut(_codes(text), self.table, self.scores, self.unknown, LARGEST, self.bytes)
        return cut_ids[0].tolist(), cut_ids[1], cut_ids[2]


class _Ways(Cutting):
    """The best ways to the places of the part of a text that is not settled."""

    def __init__(self, rules: Compiled) -> None:
        self._rules = rules
        self._text = np.zeros(0, np.uint32)
        self._totals, self._starts, self._pieces = np.zeros(1, np.float32), _none(1), _none(1)
        self._next = self._furthest = 0
        self._running = False

    def push(self, text: str, final: bool) -> list[int]:
        more = _codes(text)
        self._text = np.concatenate([self._text, more])
        self._totals = np.concatenate([self._totals, np.zeros(len(more), np.float32)])
        self._starts, self._pieces = (np.concatenate([old, _none(len(more))]) for old in (self._starts, self._pieces))
        rules = self._rules
        self._next, self._furthest = segmentation.advance(
            self._text,
            (self._next, self._furthest, final),
            rules.table,
            rules.scores,
            rules.unknown,
            LARGEST,
            self._totals,
            self._starts,
            self._pieces,
        )
        return self._settle(segmentation.meeting(self._starts, self._next, self._furthest))

    def _settle(self, last: int) -> list[int]:
        """Return the pieces of the best way to ``last``, and forget what is before."""
        pieces, places = segmentation.way(self._starts, self._pieces, last)
        rules = self._rules
        spelled = segmentation.spell(self._text, pieces, places, rules.unknown, rules.bytes, self._running)
        if len(pieces):
            self._running = not len(rules.bytes) and int(pieces[-1]) == rules.unknown
        self._text, self._totals = self._text[last:], self._totals[last:]
        self._starts, self._pieces = self._starts[last:] - last, self._pieces[last:]
        self._next, self._furthest = self._next - last, self._furthest - last
        return spelled[0].tolist()


def _codes(text: str) -> NDArray[np.uint32]:
    return np.frombuffer(text.encode("utf-32-le"), np.uint32)


def _none(count: int) -> NDArray[np.int32]:
    return np.full(count, -1, np.int32)
