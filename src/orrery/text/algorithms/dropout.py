"""BPE-dropout: the merges of byte-pair encoding, each left out with a probability.

Paper: Provilkov, Emelianenko and Voita 2020, algorithm 1.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from random import Random

Ranks = Mapping[tuple[str, str], int]
"""The place of each pair in the list of merges."""


def drop(piece: str, ranks: Ranks, probability: float, rng: Random) -> list[str]:
    """Return the symbols of a word: 0 gives those of byte-pair encoding, 1 its characters.

    Before every step each place where two symbols could merge is passed over with ``probability``; the pair learnt
    earliest then merges at all its remaining places, from the left. None remaining ends the word.
    """
    symbols = list(piece)
    while places := [
        (ranks[pair], place)
        for place, pair in enumerate(pairwise(symbols))
        if pair in ranks and rng.random() >= probability
    ]:
        earliest = min(places)[0]
        symbols = merge(symbols, [place for rank, place in places if rank == earliest])
    return symbols


def merge(symbols: Sequence[str], places: Sequence[int]) -> list[str]:
    """Return the symbols with those at ``places``, ascending, joined to their right neighbours; overlaps wait."""
    merged: list[str] = []
    start = 0
    for place in places:
        if place >= start:
            merged += [*symbols[start:place], symbols[place] + symbols[place + 1]]
            start = place + 2
    return [*merged, *symbols[start:]]
