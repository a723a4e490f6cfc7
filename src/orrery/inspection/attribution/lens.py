"""The logit lens: what the model would say after each block."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from orrery.inspection.attribution.view import needed
from orrery.inspection.attribution.vocabulary import checked, vocabulary_head
from orrery.inspection.checks import Check
from orrery.inspection.recorded import RecordedPass
from orrery.nn.heads import LanguageModelHead

NOTHING = -1
"""The rank and the id of a token that is not there."""


@dataclass(frozen=True)
class Lens:
    """For every layer and position the most probable tokens, and how probable one token is.

    Attributes:
        names: the keys of the streams that were read: ``embedded``, ``blocks.0.resid_post``, ...
        id_NBLK: the most probable tokens, the best first.
        log_probability_NBLK: theirs, in nats.
        target_BL: the token in question: a given one, else that which follows; -1 where none does.
        target_log_probability_NBL: its log probability; NaN where there is none.
        target_rank_NBL: how many tokens are more probable; -1 where there is none.
        entropy_NBL: of the distribution, in nats.
        check: the numbers of the last row that differ from the model's own logits in any bit.
    """

    names: Sequence[str]
    id_NBLK: Int[Tensor, "N B L K"]
    log_probability_NBLK: Float[Tensor, "N B L K"]
    target_BL: Int[Tensor, "B L"]
    target_log_probability_NBL: Float[Tensor, "N B L"]
    target_rank_NBL: Int[Tensor, "N B L"]
    entropy_NBL: Float[Tensor, "N B L"]
    check: Check


@torch.no_grad()
def logit_lens(trace: RecordedPass, k: int = 5, target: int | None = None) -> Lens:
    """Return what the final norm and the head make of the stream before the first block and after every one.

    ``log softmax(head(final(x_l)))`` (nostalgebraist 2020). The logits of one layer are in memory at a time. The head
    is the model's own, with its ``transform`` and ``cap``. The last row goes the way of the model's logits and equals
    them bit for bit. In a post-LN model a block has normalised its stream already and there is no final norm: a row is
    then what the model says if it is cut off there, and a block's norm was not trained for that. For an
    encoder-decoder it is the decoder's stream; for a recurrence the states.

    Args:
        trace: which has kept ``embedded`` and ``blocks.*.resid_post``.
        k: how many tokens.
        target: a token's id; by default the token that follows, or in a masked encoder the one that stands there.

    Raises:
        UsageError: the model scores no vocabulary, or a stream was not kept.
    """
    head, stack = vocabulary_head(trace.model), trace.model.stack
    names = [f"{stack.path}embedded", *(f"{stack.path}blocks.{n}.resid_post" for n in range(len(stack.order)))]
    target_BL = _targets(trace, target, trace.logits.shape[-1])
    rows, different = [], 0
    for name, logits_BLV in _scores(trace, head, names):
        rows.append(_row(logits_BLV, target_BL, min(k, logits_BLV.shape[-1])))
        if name == names[-1]:
            same = (logits_BLV == trace.logits) | (logits_BLV.isnan() & trace.logits.isnan())
            different = int((~same).sum())
    check = Check("the last row of the lens is the model's output", float(different), 0.0)
    id_NBLK, log_NBLK, own_NBL, rank_NBL, entropy_NBL = (torch.stack(column) for column in zip(*rows, strict=True))
    return Lens(names, id_NBLK, log_NBLK, target_BL, own_NBL, rank_NBL, entropy_NBL, check)


def _scores(trace: RecordedPass, head: LanguageModelHead, names: Sequence[str]) -> Iterator[tuple[str, Tensor]]:
    """Yield the logits of one stream after the other."""
    for name in names:
        yield name, head(trace.model.stack.final(needed(trace, name)), trace.call.how.get("real"))


def _row(logits_BLV: Tensor, target_BL: Tensor, k: int) -> tuple[Tensor, ...]:
    log_BLV = logits_BLV.to(torch.promote_types(logits_BLV.dtype, torch.float32)).log_softmax(-1)
    best = log_BLV.topk(k, dim=-1)
    there_BL = target_BL != NOTHING
    own_BL1 = log_BLV.gather(-1, target_BL.clamp(min=0)[..., None])
    own_BL = own_BL1[..., 0].masked_fill(~there_BL, float("nan"))
    rank_BL = (log_BLV > own_BL1).sum(-1).masked_fill(~there_BL, NOTHING)
    # A token that a mask rules out has p log p = 0, where -inf * 0 is NaN.
    entropy_BL = torch.special.entr(log_BLV.exp()).sum(-1)
    return best.indices, best.values, own_BL, rank_BL, entropy_BL


def _targets(trace: RecordedPass, target: int | None, vocabulary: int) -> Tensor:
    """Return the token in question at every position."""
    if target is not None:
        return torch.full(trace.logits.shape[:2], checked(target, vocabulary), device=trace.logits.device)
    ids_BL = trace.ids
    if not trace.model.spec.writes:
        return ids_BL
    return torch.cat([ids_BL[:, 1:], torch.full_like(ids_BL[:, :1], NOTHING)], dim=1)
