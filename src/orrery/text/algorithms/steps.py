"""How WordPiece cuts a word: the longest piece that fits, again and again (Wu et al. 2016, section 4.1)."""

from collections.abc import Mapping
from typing import Any, NamedTuple


class TakenPiece(NamedTuple):
    """One piece taken, and the longer ones that the vocabulary does not have."""

    piece: str
    refused: tuple[str, ...]


def longest_matches(definition: Mapping[str, Any], word: str) -> list[TakenPiece]:
    """Return the steps that cut ``word``; an unknown word ends in a step that takes the unknown piece."""
    model = definition["model"]
    vocabulary, prefix = model["vocab"], model["continuing_subword_prefix"]
    if len(word) > model["max_input_chars_per_word"]:
        return [TakenPiece(model["unk_token"], ())]
    steps: list[TakenPiece] = []
    start = 0
    while start < len(word):
        mark = prefix if start else ""
        tried = [mark + word[start:end] for end in range(len(word), start, -1)]
        fits = next((place for place, piece in enumerate(tried) if piece in vocabulary), None)
        if fits is None:
            return [*steps, TakenPiece(model["unk_token"], tuple(tried))]
        steps.append(TakenPiece(tried[fits], tuple(tried[:fits])))
        start += len(tried[fits]) - len(mark)
    return steps
