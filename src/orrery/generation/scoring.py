"""Scoring: the log probability that a model gives to each token of a text."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor


@dataclass(frozen=True)
class Score:
    """What a text costs, in nats.

    Attributes:
        ids: the text's tokens.
        tokens: their spelling.
        log_probabilities: of each token given those before it; ``None`` for a first token that nothing predicts.
        total: their sum.
    """

    ids: list[int]
    tokens: list[str]
    log_probabilities: list[float | None]
    total: float


def log_probabilities(logits_BLV: Float[Tensor, "B L V"], ids_BL: Int[Tensor, "B L"]) -> Float[Tensor, "B M"]:
    """Return ``log p(id_t | id_<t)`` for t = 1 ... L - 1, so M = L - 1, in float32 at least; the first has none."""
    wide = torch.promote_types(logits_BLV.dtype, torch.float32)
    logp_BLV = logits_BLV[:, :-1].to(wide).log_softmax(-1)
    return logp_BLV.gather(-1, ids_BL[:, 1:, None])[..., 0]


@torch.no_grad()
def score(
    logits: Callable[[Tensor], Tensor],
    ids: Sequence[int],
    spell: Callable[[int], str],
    before: Sequence[int] = (),
) -> Score:
    """Score one text.

    Args:
        logits: the model, from ids ``[1, L]`` to logits ``[1, L, V]``.
        ids: the text's tokens.
        spell: from an id to what is shown for it.
        before: tokens that stand before a text, so that its first token is predicted as well.
    """
    ids_1L = torch.tensor([[*before, *ids]], dtype=torch.long)
    nats = log_probabilities(logits(ids_1L).cpu(), ids_1L)[0].double().tolist() if ids else []
    nats = nats[max(0, len(before) - 1) :]
    unpredicted: list[float | None] = [None] * (len(ids) - len(nats))
    return Score(list(ids), [spell(id) for id in ids], [*unpredicted, *nats], math.fsum(nats))
