"""Where the tokens of a call stand: counted by default, and refused where a mask could not go by them."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Int, Shaped
from torch import Tensor

from orrery.errors import UsageError
from orrery.models.calls import real_of
from orrery.nn.cache.contract import UNCACHED, Cache
from orrery.nn.masks import EMPTY_SLOT, Need, TokenPositions
from orrery.nn.stack import Stack

_HIDDEN = -1
"""The document of what is no token."""


@dataclass(frozen=True)
class Placed:
    """The places of one call, which of its tokens are real, how many of each row, and whether its rows are whole.

    The numbers of ``counts`` are the host's, where it was told them.
    """

    places: TokenPositions
    real: Bool[Tensor, "B L"] | None
    whole: bool
    counts: Sequence[int] | None = None


def placed(
    stack: Stack,
    tokens: Shaped[Tensor, "B L *D"],
    *,
    real: Bool[Tensor, "B L"] | None = None,
    lengths: Sequence[int] | None = None,
    positions: Int[Tensor, "#B L"] | None = None,
    documents: Int[Tensor, "B L"] | None = None,
    prefix: Int[Tensor, "..."] | None = None,
    cache: Cache = UNCACHED,
) -> Placed:
    """Return where the tokens stand, counted from the real ones of each document where ``positions`` are not given.

    ``lengths`` stands for ``real`` where rows are padded on the right and have no documents: nothing then has to be
    looked for, and no device is waited for.

    Raises:
        UsageError: places by which a mask of the stack would show a token what comes later, or another window than
            the one that it means.
    """
    if lengths is not None:
        return _right_padded(stack, tokens, lengths, prefix, cache)
    whole = cache is UNCACHED and real is None and positions is None and documents is None
    rows, length = tokens.shape[:2]
    for name, given in (("real", real), ("positions", positions), ("documents", documents)):
        _check_shape(name, given, rows, length)
    if documents is not None and bool((documents < 0).any()):
        real = documents >= 0 if real is None else real & (documents >= 0)
    counted = count_positions(cache, tokens, real, documents)
    if positions is None:
        _check_counted(stack, counted, real, documents)
    else:
        _check_given(stack, positions, real, documents, counted, cache)
        counted = positions if real is None else torch.where(real, positions, 0)  # padding stands nowhere far off
    extent = _extent(stack.needs, prefix, rows, length, cache, tokens.device)
    return Placed(TokenPositions(counted, documents, extent), real, whole)


def _right_padded(stack: Stack, tokens: Tensor, lengths: Sequence[int], prefix: Tensor | None, cache: Cache) -> Placed:
    """Return where the tokens of rows stand that have their padding, if any, on the right."""
    rows, length = tokens.shape[:2]
    padded = min(lengths, default=length) < length
    real = real_of(tokens, lengths) if padded else None
    extent = _extent(stack.needs, prefix, rows, length, cache, tokens.device)
    places = TokenPositions(count_positions(cache, tokens, real, None), None, extent)
    return Placed(places, real, cache is UNCACHED and not padded, lengths)


def count_positions(cache: Cache, tokens: Tensor, real: Tensor | None, documents: Tensor | None) -> Int[Tensor, "#B L"]:
    """Return how many real tokens of its document come before each token, those in the cache among them."""
    positions = cache.next_positions(tokens.shape[1], tokens.device)
    if real is None and documents is None:
        return positions
    one = torch.ones(tokens.shape[:2], dtype=torch.long, device=tokens.device) if real is None else real.long()
    before = one.cumsum(1) - one
    if documents is not None:
        begins = torch.ones_like(documents, dtype=torch.bool)
        begins[:, 1:] = documents[:, 1:] != documents[:, :-1]
        before = before - torch.where(begins, before, 0).cummax(1).values
    return (positions[:, :1] + before).masked_fill(one == 0, 0)


def _check_shape(name: str, given: Tensor | None, rows: int, length: int) -> None:
    """Refuse what is not one number a token; positions may be one row for all."""
    if given is None:
        return
    if given.dim() != 2 or given.shape[1] != length or given.shape[0] not in (1, rows):
        raise UsageError(f"{name} of shape {list(given.shape)} for {rows} x {length} tokens", "give one for each token")
    if given.is_floating_point():
        raise UsageError(f"{name} of {given.dtype}", "give whole numbers or truth values")


def _check_counted(stack: Stack, counted: Tensor, real: Tensor | None, documents: Tensor | None) -> None:
    """Refuse padding inside a row, and a document in two pieces: where either is, counting is one guess of several.

    A recurrence without positions passes over padding wherever it stands.
    """
    if documents is not None:
        _refuse(
            _first_fault(counted, real, documents, Need.ORDER),
            "a document in several pieces has no positions that can be counted",
            "put its tokens side by side, or give the positions: positions=[B, L]",
        )
    if real is None or not (len(stack.positions) or Need.DISTANCE in stack.needs):
        return
    _refuse(
        _first_fault(counted, real, documents, Need.DISTANCE),
        "padding inside a row",
        "let it stand on the left or on the right; a call of the model itself may give positions=[B, L]",
    )


def _check_given(
    stack: Stack,
    positions: Tensor,
    real: Tensor | None,
    documents: Tensor | None,
    counted: Tensor,
    cache: Cache,
) -> None:
    """Refuse positions by which a mask would not do what it says."""
    seen = positions if real is None else torch.where(real, positions, 0)
    if bool(((seen < 0) | (seen >= EMPTY_SLOT)).any()):
        raise UsageError("a position below zero or beyond every text", "count the tokens of a row from zero")
    if cache is not UNCACHED and bool((seen != counted).any()):
        raise UsageError(
            "a row in a cache counts its tokens itself, and the positions given are others",
            "leave positions away, or call the model without a cache",
        )
    if Need.ORDER in stack.needs:
        _refuse(
            _first_fault(positions, real, documents, Need.ORDER),
            "positions that do not rise, by which a token would see later ones",
            "for documents packed into one row give documents=[B, L]; else leave positions away",
        )
    if Need.DISTANCE in stack.needs:
        _refuse(
            _first_fault(positions, real, documents, Need.DISTANCE),
            "positions with gaps, by which a window would be shorter than its tokens",
            "this model looks back a window: count its tokens one by one, or leave positions away",
        )


def _first_fault(
    positions: Tensor, real: Tensor | None, documents: Tensor | None, need: Need
) -> tuple[int, int, int, int] | None:
    """Return row and place of the first real token whose step from the one before it breaks a need, and both positions.

    The one before it is the last real token of the same document, wherever that stands.
    """
    given = [part for part in (positions, real, documents) if part is not None]
    shape = torch.broadcast_shapes(*(part.shape for part in given))
    index = torch.arange(shape[1], device=positions.device).expand(shape)
    positions, document = positions.expand(shape), torch.zeros_like(index)
    if documents is not None:
        document = documents.expand(shape).clamp(min=_HIDDEN)
    if real is not None:
        document = document.masked_fill(~real, _HIDDEN)
    order = document.argsort(dim=1, stable=True)
    index, positions, document = (part.gather(1, order) for part in (index, positions, document))
    pairs = (document[:, 1:] == document[:, :-1]) & (document[:, 1:] != _HIDDEN)
    step, places = positions.diff(dim=1), index.diff(dim=1)
    bad = pairs & ((step < 1) if need is Need.ORDER else (step != places))
    if not bool(bad.any()):
        return None
    row, place = (int(number) for number in bad.nonzero()[0])
    return row, int(index[row, place + 1]), int(positions[row, place]), int(positions[row, place + 1])


def _refuse(fault: tuple[int, int, int, int] | None, what: str, hint: str) -> None:
    """Raise an error that says where the fault is.

    Raises:
        UsageError: there is one.
    """
    if fault is not None:
        row, place, before, after = fault
        raise UsageError(f"{what}: row {row}, token {place} has position {after} after {before}", hint)


def _extent(
    needs: frozenset[Need], prefix: Tensor | None, rows: int, length: int, cache: Cache, device: torch.device
) -> Int[Tensor, "B L"] | None:
    """Return the length of the prefix that each token's document has; what continues a cached row is past it.

    Raises:
        UsageError: a prefix of another shape, or for a stack without a mask that has one.
    """
    if Need.PREFIX not in needs:
        if prefix is not None:
            raise UsageError("this model has no mask with a prefix", "leave prefix away")
        return None
    if prefix is None:
        return torch.zeros(rows, length, dtype=torch.long, device=device) if cache.longest else None
    if prefix.dim() not in (1, 2) or prefix.shape[0] != rows or prefix.shape[1:] not in ((), (length,)):
        raise UsageError(
            f"prefix of shape {list(prefix.shape)} for {rows} x {length} tokens",
            "give one length a row: [B], or that of each token's document: [B, L]",
        )
    return (prefix[:, None] if prefix.dim() == 1 else prefix).expand(rows, length)
