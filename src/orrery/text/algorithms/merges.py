"""How byte-pair encoding builds a word: one merge after another, the pair learnt earliest first."""

from collections.abc import Callable, Mapping
from typing import Any

from orrery.errors import UsageError

Steps = Callable[[str], list[list[str]]]


def merge_steps(definition: Mapping[str, Any], piece: str) -> list[list[str]]:
    """Return the symbols of one piece before any merge and after each one; see ``merging``, which serves several."""
    return merging(definition)(piece)


def merging(definition: Mapping[str, Any]) -> Steps:
    """Return what tells the symbols of a piece before any merge and after each one; the last row are its tokens.

    A piece is spelled as the pre-tokenizer leaves it (byte-level: a space is Ġ). All places of the pair
    with the lowest rank merge at once, from the left (Sennrich et al. 2016, algorithm 1). Raises `UsageError`
    for a tokenizer that has no merges.
    """
    model = definition["model"]
    if model["type"] != "BPE":
        raise UsageError(f"a {model['type']} tokenizer has no merges", "merges belong to BPE tokenizers")
    ranks = merge_ranks(definition)

    def steps(piece: str) -> list[list[str]]:
        rows = [list(piece)]
        while True:
            pairs = zip(rows[-1], rows[-1][1:], strict=False)
            known = [pair for pair in pairs if " ".join(pair) in ranks]
            if not known:
                return rows
            rows.append(_merge(rows[-1], min(known, key=lambda pair: ranks[" ".join(pair)])))

    return steps


def merge_ranks(definition: Mapping[str, Any]) -> dict[str, int]:
    """Return when each pair was learnt, by its two symbols with a space between them."""
    pairs = (pair if isinstance(pair, str) else " ".join(pair) for pair in definition["model"]["merges"])
    return {pair: rank for rank, pair in enumerate(pairs)}


def _merge(symbols: list[str], pair: tuple[str, str]) -> list[str]:
    merged: list[str] = []
    place = 0
    while place < len(symbols):
        merges = tuple(symbols[place : place + 2]) == pair
        merged.append("".join(pair) if merges else symbols[place])
        place += 2 if merges else 1
    return merged
