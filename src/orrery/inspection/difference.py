"""Difference: what an edit changed, between two traces of one length."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Float, Int
from torch import Tensor

from orrery.errors import UsageError
from orrery.inspection.trace import Trace

_PATTERN = re.compile(r".*\.pattern")


@final
@dataclass(frozen=True)
class Change:
    """How far a tensor of the edited run is from that of the clean one.

    Attributes:
        largest: ``max|e - c| / max|c|``.
        norm: ``|e - c| / |c|``, over all numbers.
        hidden: how many numbers are minus infinity in one run alone: edges that were masked.
    """

    largest: float
    norm: float
    hidden: int


@final
@dataclass(frozen=True)
class RankedToken:
    """A token with its probability in both runs."""

    id: int
    clean: float
    edited: float


@final
@dataclass(frozen=True)
class Difference:
    """What differs between a clean and an edited run.

    Attributes:
        clean: the run before.
        edited: the run after.
        read: the positions at which another token was read.
        kl_BL: ``KL(clean || edited)`` of the next token at each position, in nats.
        best_BL: the most probable next token before, and ``best_edited_BL`` after.
        changes: by key, for all that both traces have kept.
    """

    clean: Trace
    edited: Trace
    read: Sequence[int]
    kl_BL: Float[Tensor, "B L"]
    best_BL: Int[Tensor, "B L"]
    best_edited_BL: Int[Tensor, "B L"]
    changes: dict[str, Change]

    @property
    def turned(self) -> list[int]:
        """The positions whose most probable next token is another, in the first row."""
        return (self.best_BL != self.best_edited_BL)[0].nonzero().flatten().tolist()

    def top(self, position: int = -1, count: int = 5, row: int = 0) -> list[RankedToken]:
        """Return the ``count`` most probable next tokens of either run, by the greater probability."""
        clean_V, edited_V = (x.logits[row, position].double().softmax(-1) for x in (self.clean, self.edited))
        best = torch.cat([clean_V.topk(count).indices, edited_V.topk(count).indices]).unique().tolist()
        ranked = [RankedToken(id, clean_V[id].item(), edited_V[id].item()) for id in best]
        return sorted(ranked, key=lambda one: (-max(one.clean, one.edited), one.id))

    def patterns(self) -> dict[str, Float[Tensor, "B H L S"]]:
        """Return edited minus clean for every pattern that both have kept."""
        return {key: self.edited[key] - self.clean[key] for key in self.changes if _PATTERN.fullmatch(key)}

    def lines(self, spell: Callable[[int], str] = str) -> list[str]:
        """Return the difference as lines: the tensors in their order, and the next tokens of the last position."""
        width = max(map(len, self.changes), default=0)
        lines = [f"{key:{width}}  largest {one.largest:.2e}  norm {one.norm:.2e}" for key, one in self.changes.items()]
        lines.append(f"KL of the last next token: {self.kl_BL[0, -1].item():.4f} nats")
        lines += [f"{spell(one.id)!r}: {one.clean:.4f} -> {one.edited:.4f}" for one in self.top()]
        return lines


def difference(clean: Trace, edited: Trace) -> Difference:
    """Compare two runs over texts of one length.

    Raises:
        UsageError: they are of other lengths or vocabularies, or say nothing of a next token at each position.
    """
    shapes = [list(x.logits.shape) for x in (clean, edited)]
    if shapes[0] != shapes[1]:
        raise UsageError(f"a run of logits {shapes[1]} is compared with one of {shapes[0]}", "take texts of one length")
    if len(shapes[0]) != 3:
        raise UsageError(f"logits {shapes[0]} are none of next tokens", "compare the tensors by their keys")
    read = (clean.ids != edited.ids).any(0).nonzero().flatten().tolist()
    kl_BL = divergence(clean.logits, edited.logits)
    changes = {key: change(clean[key], edited[key]) for key in clean if key in edited and _alike(clean, edited, key)}
    return Difference(clean, edited, read, kl_BL, clean.logits.argmax(-1), edited.logits.argmax(-1), changes)


def divergence(clean_BLV: Float[Tensor, "*B V"], edited_BLV: Float[Tensor, "*B V"]) -> Float[Tensor, "*B"]:
    """Return ``KL(p || q) = sum_v p_v (log p_v - log q_v)`` in nats, for logits of p and q; computed in float64."""
    p_BLV, q_BLV = clean_BLV.double().log_softmax(-1), edited_BLV.double().log_softmax(-1)
    # A token of probability zero counts nothing, whatever the other run says of it.
    return torch.where(p_BLV.isneginf(), 0.0, p_BLV.exp() * (p_BLV - q_BLV)).sum(-1).clamp(min=0)


def change(clean: Tensor, edited: Tensor) -> Change:
    """Return how far one tensor is from another; where both are minus infinity they are equal."""
    a, b = clean.double(), edited.double()
    hidden = a.isneginf() ^ b.isneginf()
    shown = ~(a.isneginf() | b.isneginf())
    a, off = a.where(shown, 0.0), (b - a).where(shown, 0.0)
    if not a.numel():
        return Change(0.0, 0.0, 0)
    tiny = torch.finfo(torch.float64).tiny
    largest, norm = (
        float(x / y.clamp(min=tiny)) for x, y in ((off.abs().max(), a.abs().max()), (off.norm(), a.norm()))
    )
    return Change(largest, norm, int(hidden.sum()))


def _alike(clean: Trace, edited: Trace, key: str) -> bool:
    return clean[key].shape == edited[key].shape and clean[key].is_floating_point()
