"""The pieces that training begins with, every place where they stand, and the ways to cut them themselves.

Paper: Kudo 2018, section 3.2.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orrery.text.algorithms.unigram.paths import Edges, Floats, Paths
from orrery.text.algorithms.unigram.substrings import SubstringGroup, Words, substrings

MOST = 1_000_000
"""Seed pieces of more than one character: those with the most characters of the text in all."""


@dataclass(frozen=True)
class Seeds:
    """Pieces, the characters first: where each can be read, its length, and how many characters it covers in all."""

    places: NDArray[np.int64]
    lengths: NDArray[np.int64]
    weights: Floats
    edges: Sequence[Edges]
    """Every place where a piece stands, by length."""


def propose(words: Words, most: int = MOST) -> Seeds:
    """Return the characters and the ``most`` seed pieces of counted words; of equal weights the shorter ones."""
    groups = _heaviest(list(substrings(words)), most)
    text = np.flatnonzero(words.left).astype(np.int32)
    symbols = words.symbols[text] - 1
    _, first = np.unique(symbols, return_index=True)
    counts = np.bincount(symbols, words.counts[words.owners[text]])
    candidates = [_edges(words, text, 1, symbols)]
    known = len(first)
    for group in groups:
        numbers = np.arange(known, known + len(group.ends), dtype=np.int32)
        sizes = np.diff(group.ends, prepend=0)
        candidates.append(_edges(words, group.places, group.length, np.repeat(numbers, sizes)))
        known += len(numbers)
    return Seeds(
        np.concatenate([text[first], *(group.places[group.ends - 1] for group in groups)]).astype(np.int64),
        np.repeat([1, *(group.length for group in groups)], [len(first), *(len(group.ends) for group in groups)]),
        np.concatenate([counts, *(group.counts * float(group.length) for group in groups)]),
        candidates,
    )


def cuts(words: Words, seeds: Seeds) -> tuple[Paths, NDArray[np.int64]]:
    """Return the ways to cut each seed piece of two characters and more into others, and which piece each word is."""
    order = np.argsort(-seeds.lengths, kind="stable")
    order = order[seeds.lengths[order] > 1]
    lengths = seeds.lengths[order]
    owners = np.repeat(np.arange(len(order), dtype=np.int32), lengths)
    offsets = np.arange(len(owners)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    places = seeds.places[order][owners] + offsets
    groups = []
    for edges in seeds.edges:
        standing = np.full(len(words.owners), -1, np.int32)
        standing[words.firsts[edges.words] + edges.offsets] = edges.pieces
        able = (offsets + edges.length <= lengths[owners]) & (edges.length < lengths[owners])
        pieces = np.where(able, standing[places], -1)
        inside = pieces >= 0
        groups.append(Edges(owners[inside], offsets[inside].astype(np.int16), edges.length, pieces[inside]))
    return Paths.of(lengths, groups), order


def _heaviest(groups: Sequence[SubstringGroup], most: int) -> Sequence[SubstringGroup]:
    weights = np.concatenate([np.zeros(0), *(group.counts * group.length for group in groups)])
    chosen = np.zeros(len(weights), bool)
    chosen[np.argsort(-weights, kind="stable")[:most]] = True
    borders = np.cumsum([len(group.ends) for group in groups])[:-1]
    return list(_only(groups, np.split(chosen, borders)))


def _only(groups: Sequence[SubstringGroup], chosen: Sequence[NDArray[np.bool_]]) -> Iterator[SubstringGroup]:
    for group, kept in zip(groups, chosen, strict=True):
        sizes = np.diff(group.ends, prepend=0)
        inside = np.repeat(kept, sizes)
        yield SubstringGroup(group.length, group.counts[kept], group.places[inside], np.cumsum(sizes[kept]))


def _edges(words: Words, places: NDArray[np.int32], length: int, pieces: NDArray[np.int32]) -> Edges:
    owners = words.owners[places]
    return Edges(owners, (places - words.firsts[owners]).astype(np.int16), length, pieces)
