"""The logit lens: what the model would say after each block, at every position."""

from collections.abc import Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor

from orrery.errors import UsageError
from orrery.inspection.attribution.vocabulary import vocabulary_head
from orrery.page.views._inside import Inside
from orrery.page.views._payload import Payload
from orrery.page.views._view import View, ViewSubject, register

MOST = 5
"""Tokens that are named at each place."""


@register
class LensView(View):
    """``log softmax(head(final(x_l)))`` for the stream before the first block and after every one."""

    kind: ClassVar[str] = "lens"
    order: ClassVar[int] = 70
    compares: ClassVar[bool] = True
    apart: ClassVar[tuple[str, ...]] = ("log_probability",)

    def fits(self, subject: ViewSubject) -> bool:
        """Say whether the model scores a vocabulary."""
        return subject.inside is not None and has_vocabulary(subject.inside)

    def payload(self, subject: ViewSubject, settings: Any) -> Payload:
        """Return the likeliest tokens of each layer and position, and how likely the token that follows is."""
        inside = subject.seen
        lens = inside.keeping("embedded", "blocks.*.resid_post").lens(MOST)
        ids = lens.id_NBLK[:, 0]
        facts = {"names": list(lens.names), "spelled": spelled(inside, ids), "targets": lens.target_BL[0].tolist()}
        tensors = {
            "id": ids.int(),
            "log_probability": lens.log_probability_NBLK[:, 0].float(),
            "best": lens.log_probability_NBLK[:, 0, :, 0].float(),
            "target": lens.target_log_probability_NBL[:, 0].float(),
            "rank": lens.target_rank_NBL[:, 0].int(),
            "entropy": lens.entropy_NBL[:, 0].float(),
        }
        return Payload(facts, tensors, [lens.check])


def has_vocabulary(inside: Inside) -> bool:
    """Say whether the model scores a vocabulary."""
    try:
        vocabulary_head(inside.lm.model)
    except UsageError:
        return False
    return True


def likeliest(inside: Inside, position: int) -> int:
    """Return the likeliest token behind a position."""
    return int(inside.first.logits[0, position].argmax())


def spelled(inside: Inside, ids: Tensor | Sequence[int]) -> dict[str, str]:
    """Return how each of these tokens reads, by its id."""
    tokenizer = inside.lm.stored.tokenizer
    known = 0 if tokenizer is None else tokenizer.size
    unique = torch.as_tensor(ids).unique().tolist()
    return {str(id): inside.spell(id) if 0 <= id < known else f"[{id}]" for id in unique}
