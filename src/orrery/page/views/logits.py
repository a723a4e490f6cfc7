"""What the model says next, and which part of it says so: direct logit attribution."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, ClassVar

import torch
from jaxtyping import Float, Int
from torch import Tensor

from orrery.errors import UsageError
from orrery.inspection.checks import Check
from orrery.inspection.difference import divergence
from orrery.page.views._difference import numbers, union
from orrery.page.views._payload import Payload
from orrery.page.views._view import View, ViewSubject, register
from orrery.page.views.lens import has_vocabulary, likeliest, spelled
from orrery.schema.section import Section

MOST = 20
"""Tokens that are named."""


class LogitsSettings(Section):
    """What can be asked.

    Attributes:
        position: the token behind which the model speaks; the last by default.
        token: the token whose logit is taken apart; the likeliest by default.
        against: another token, whose logit is subtracted.
        named: the tokens that are named, by their ids with commas; the likeliest by default.
    """

    position: int = -1
    token: int | None = None
    against: int | None = None
    named: str | None = None


@register
class LogitsView(View):
    """``logit = sum over parts of part . direction``, the final norm at the scale that it had."""

    kind: ClassVar[str] = "logits"
    order: ClassVar[int] = 80
    compares: ClassVar[bool] = True
    apart: ClassVar[tuple[str, ...]] = ("log_probability", "logit")
    named_rows: ClassVar[Mapping[str, str]] = {"parts": "parts"}
    Settings: ClassVar[type[Section]] = LogitsSettings

    def fits(self, subject: ViewSubject) -> bool:
        """Say whether the model scores a vocabulary."""
        return subject.inside is not None and has_vocabulary(subject.inside)

    def saved(self, subject: ViewSubject) -> Iterable[Section]:
        """Return every position with its likeliest token."""
        yield from (LogitsSettings(position=place) for place in range(subject.seen.first.logits.shape[1]))

    def aligned(self, edited: ViewSubject, clean: ViewSubject, settings: LogitsSettings) -> LogitsSettings:
        """Return settings that name the token, and the likeliest tokens of either pass."""
        token = likeliest(clean.seen, settings.position) if settings.token is None else settings.token
        both = [_named(subject.seen.first.logits[0, settings.position], settings.named) for subject in (edited, clean)]
        return settings.model_copy(update={"token": token, "named": union(*both)})

    def difference(self, edited: ViewSubject, clean: ViewSubject, settings: LogitsSettings) -> Payload:
        """Return the likeliest tokens of both passes, the parts edited less clean, and how far the words moved."""
        payload = super().difference(edited, clean, settings)
        clean_LV, edited_LV = clean.seen.first.logits[0], edited.seen.first.logits[0]
        kl_L = divergence(clean_LV, edited_LV)
        turned = int((clean_LV.argmax(-1) != edited_LV.argmax(-1)).sum())
        facts = {**payload.facts, "kl": float(kl_L[settings.position]), "turned": turned}
        return replace(payload, facts=facts, tensors={**payload.tensors, "kl": kl_L.float()})

    def payload(self, subject: ViewSubject, settings: LogitsSettings) -> Payload:
        """Return the likeliest tokens, and what each part adds to the logit of one."""
        inside = subject.seen
        logits_V = inside.first.logits[0, settings.position].float()
        log_V = logits_V.double().log_softmax(-1)  # the rounding of float32 adds up over large vocabularies
        best_K = _named(log_V, settings.named)
        mass = Check("the probabilities sum to one", abs(float(log_V.exp().sum()) - 1), 1e-9)
        facts: dict[str, Any] = {"position": settings.position, "entropy": float(torch.special.entr(log_V.exp()).sum())}
        tensors = {"id": best_K.int(), "log_probability": log_V[best_K].float(), "logit": logits_V[best_K]}
        token = int(log_V.argmax()) if settings.token is None else settings.token
        named = [*best_K.tolist(), token, *([] if settings.against is None else [settings.against])]
        facts |= {"spelled": spelled(inside, named), "token": token, "against": settings.against}
        try:
            attribution = inside.keeping_all_but_patterns().logit_attribution(
                token, against=settings.against, position=settings.position
            )
        except UsageError as error:  # a head that is no linear map, or an edit that replaced the stream
            why = {"parts": [], "notes": [f"{error.message}: {error.hint}"], "total": float(logits_V[token])}
            return Payload(facts | why, tensors | {"parts": torch.zeros(0)}, [mass])
        sums = {
            "parts": list(attribution.names),
            "notes": list(attribution.notes),
            "total": float(attribution.logit_BP[0, 0]),
        }
        return Payload(
            facts | sums, tensors | {"parts": attribution.value_NBP[:, 0, 0].float()}, [mass, attribution.check]
        )


def _named(logits_V: Float[Tensor, "V"], named: str | None) -> Int[Tensor, "K"]:
    """Return the ids that are named, or those of the likeliest tokens."""
    if named is None:
        return logits_V.topk(min(MOST, len(logits_V))).indices
    ids = numbers(named)
    if not all(0 <= id < len(logits_V) for id in ids):
        raise UsageError(f"{named[:60]} names a token outside the vocabulary", f"ids are 0 to {len(logits_V) - 1}")
    return torch.tensor(ids, device=logits_V.device)
