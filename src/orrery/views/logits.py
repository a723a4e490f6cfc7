"""What the model says next, and which part of it says so: direct logit attribution."""

from collections.abc import Iterable
from typing import Any, ClassVar

import torch

from orrery.inspection.attribution.frozen import NotLinearError
from orrery.inspection.checks import Check
from orrery.schema.section import Section
from orrery.views._payload import Payload
from orrery.views._view import Subject, View, register
from orrery.views.lens import has_vocabulary, spelled

MOST = 20
"""Tokens that are named."""


class LogitsSettings(Section):
    """What can be asked.

    Attributes:
        position: the token behind which the model speaks; the last by default.
        token: the token whose logit is taken apart; the likeliest by default.
        against: another token, whose logit is subtracted.
    """

    position: int = -1
    token: int | None = None
    against: int | None = None


@register
class LogitsView(View):
    """``logit = sum over parts of part . direction``, the final norm at the scale that it had."""

    kind: ClassVar[str] = "logits"
    order: ClassVar[int] = 80
    Settings: ClassVar[type[Section]] = LogitsSettings

    def fits(self, subject: Subject) -> bool:
        """Say whether the model scores a vocabulary."""
        return subject.inside is not None and has_vocabulary(subject.inside)

    def saved(self, subject: Subject) -> Iterable[Section]:
        """Return every position with its likeliest token."""
        yield from (LogitsSettings(position=place) for place in range(subject.seen.first.logits.shape[1]))

    def payload(self, subject: Subject, asked: LogitsSettings) -> Payload:
        """Return the likeliest tokens, and what each part adds to the logit of one."""
        inside = subject.seen
        logits_V = inside.first.logits[0, asked.position].float()
        log_V = logits_V.log_softmax(-1)
        best = log_V.topk(min(MOST, len(log_V)))
        mass = Check("the probabilities sum to one", abs(float(log_V.double().exp().sum()) - 1), 1e-5)
        facts: dict[str, Any] = {"position": asked.position, "entropy": float(torch.special.entr(log_V.exp()).sum())}
        tensors = {"id": best.indices.int(), "log_probability": best.values, "logit": logits_V[best.indices]}
        token = int(best.indices[0]) if asked.token is None else asked.token
        named = [*best.indices.tolist(), token, *([] if asked.against is None else [asked.against])]
        facts |= {"spelled": spelled(inside, named), "token": token, "against": asked.against}
        try:
            found = inside.keeping("*").logit_attribution(token, against=asked.against, position=asked.position)
        except NotLinearError as error:
            why = {"parts": [], "notes": [f"{error.message}: {error.hint}"], "total": float(logits_V[token])}
            return Payload(facts | why, tensors | {"parts": torch.zeros(0)}, [mass])
        sums = {"parts": list(found.names), "notes": list(found.notes), "total": float(found.logit_BP[0, 0])}
        return Payload(facts | sums, tensors | {"parts": found.value_NBP[:, 0, 0].float()}, [mass, found.check])
