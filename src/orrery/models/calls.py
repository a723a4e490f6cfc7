"""What the calls of the assemblies share: which tokens of padded rows are real, and what a target begins with."""

from collections.abc import Sequence

import torch
from jaxtyping import Bool, Int, Shaped
from torch import Tensor

from orrery.errors import UsageError
from orrery.nn.cache.rows import RowCache

Numbers = Sequence[int] | Tensor
"""Whole numbers, one a row, best known on the host; those of a tensor on a device are waited for."""


def on_host(numbers: Numbers, what: str) -> list[int]:
    """Return numbers that Python can look at.

    Raises:
        UsageError: they are not whole, or below zero.
    """
    listed = numbers.tolist() if isinstance(numbers, Tensor) else list(numbers)
    if not all(type(number) is int and number >= 0 for number in listed):
        raise UsageError(f"{what} {str(listed)[:60]}", "give whole numbers, none of them below zero")
    return listed


def on_device(numbers: Sequence[int], device: torch.device) -> Int[Tensor, "N"]:
    """Return numbers as a tensor there; nobody waits for what the device does."""
    return torch.tensor(numbers, dtype=torch.long).to(device, non_blocking=True)


def real_of(tokens_BN: Shaped[Tensor, "B N *D"], lengths: Sequence[int]) -> Bool[Tensor, "B N"]:
    """Return which tokens of right-padded rows are real.

    Raises:
        UsageError: there is not one length a row, or one is beyond the row.
    """
    rows, tokens = tokens_BN.shape[:2]
    if len(lengths) != rows or max(lengths, default=0) > tokens:
        raise UsageError(
            f"lengths {str(list(lengths))[:60]} of {rows} rows of {tokens} tokens",
            "give one for each row, right-padded",
        )
    return torch.arange(tokens, device=tokens_BN.device) < on_device(lengths, tokens_BN.device)[:, None]


def unused(cache: RowCache, rows: int) -> RowCache:
    """Return a cache that a session is to begin with.

    Raises:
        UsageError: it holds tokens, or it is one for another number of rows.
    """
    if cache.longest:
        raise UsageError("this cache holds the tokens of another session", "take a new one, or fork() the session")
    if len(cache.lengths) != rows:
        raise UsageError(f"a cache of {len(cache.lengths)} rows for {rows}", "make it for as many rows as you start")
    return cache


def check_start(start: int, vocabulary: int) -> None:
    """Refuse a start token outside the vocabulary of the targets, which configurations may leave at a default.

    Raises:
        UsageError: it is.
    """
    if not 0 <= start < vocabulary:
        raise UsageError(
            f"targets begin with token {start}, but the model writes {vocabulary} tokens",
            "set decoder_start_token_id in the configuration",
        )
