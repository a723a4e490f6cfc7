"""Histories of items as a model reads them: what it learns from, and how it is asked what comes next."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from orrery.data.rows.histories import spelt

if TYPE_CHECKING:
    from orrery.data.batches.padded_rows import Row
    from orrery.text.tokenizer import Tokenizer


def numbers_of(tokenizer: "Tokenizer", items: Iterable[str]) -> list[int]:
    """Return the token of each item, that of the unknown for one that the tokenizer does not know."""
    unknown = tokenizer.unknown_id or 0
    found = (tokenizer.id(spelt(item)) for item in items)
    return [unknown if id is None else id for id in found]


def framed(tokenizer: "Tokenizer", ids: Sequence[int], length: int) -> list[int]:
    """Return the newest items of a history between the special tokens of the family, ``length`` at most."""
    room = max(1, length - len(tokenizer.around([]).ids))
    return list(tokenizer.around(list(ids[-room:])).ids)


def asked_behind(ids: Sequence[int], length: int) -> "Row":
    """Return how a decoder is asked: the newest items, where they end, and the place of the answer, the last one."""
    asked = list(ids[-length:])
    return {"asked": asked, "ends": len(asked), "place": len(asked) - 1}


def asked_at_mask(tokenizer: "Tokenizer", ids: Sequence[int], length: int) -> "Row":
    """Return how an encoder is asked: the newest items and a mask behind them, where that ends, the mask's place."""
    mask = tokenizer.special("mask")
    asked = framed(tokenizer, [*ids, mask], length)
    return {"asked": asked, "ends": len(asked), "place": len(asked) - 1 - asked[::-1].index(mask)}


def next_rows(held: Sequence[Sequence[int]], length: int, ignore: int) -> "list[Row]":
    """Return histories as a decoder is asked and scored: the target of the last place alone counts."""
    rows: list[dict[str, Any]] = []
    for ids in held:
        asked = asked_behind(ids[:-1], length)
        targets = [*[ignore] * asked["place"], ids[-1]]
        rows.append({**asked, "ids": asked["asked"], "targets": targets, "next": ids[-1]})
    return list(rows)


def masked_rows(tokenizer: "Tokenizer", held: Sequence[Sequence[int]], length: int) -> "list[Row]":
    """Return histories as an encoder is asked and scored; its loss is that of items hidden anywhere in them."""
    return [
        {"ids": framed(tokenizer, ids, length), **asked_at_mask(tokenizer, ids[:-1], length), "next": ids[-1]}
        for ids in held
    ]
