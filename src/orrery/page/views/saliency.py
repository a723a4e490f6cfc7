"""Which tokens a prediction depends on: gradients, and integrated gradients with the check of their sum."""

from collections.abc import Iterable
from typing import Any, ClassVar, Literal

from torch import Tensor

from orrery.page.views._payload import Payload
from orrery.page.views._view import View, ViewSubject, register
from orrery.page.views.lens import has_vocabulary, likeliest, spelled
from orrery.schema.section import Section


class SaliencySettings(Section):
    """What can be asked.

    Attributes:
        method: ``gradient`` (its length), ``gradient_times_input``, or ``integrated`` (Sundararajan et al. 2017).
        position: the token behind which the model speaks; the last by default.
        token: the token that it says; the likeliest by default.
    """

    method: Literal["gradient", "gradient_times_input", "integrated"] = "gradient"
    position: int = -1
    token: int | None = None


@register
class SaliencyView(View):
    """How much a logit changes with what was read."""

    kind: ClassVar[str] = "saliency"
    order: ClassVar[int] = 90
    compares: ClassVar[bool] = True
    Settings: ClassVar[type[Section]] = SaliencySettings

    def fits(self, subject: ViewSubject) -> bool:
        """Say whether the model scores a vocabulary and reads tokens."""
        return subject.inside is not None and has_vocabulary(subject.inside)

    def saved(self, subject: ViewSubject) -> Iterable[Section]:
        """Return the gradients at the last token."""
        yield SaliencySettings()
        yield SaliencySettings(method="gradient_times_input")

    def aligned(self, edited: ViewSubject, clean: ViewSubject, settings: SaliencySettings) -> SaliencySettings:
        """Return settings that name the token: where nothing is said, the likeliest of the clean pass."""
        token = likeliest(clean.seen, settings.position) if settings.token is None else settings.token
        return settings.model_copy(update={"token": token})

    def payload(self, subject: ViewSubject, settings: SaliencySettings) -> Payload:
        """Return one number for each token that was read."""
        inside = subject.seen
        ways = {
            "gradient": inside.first.saliency,
            "gradient_times_input": inside.first.gradient_times_input,
            "integrated": inside.first.integrated_gradients,
        }
        saliency = ways[settings.method](settings.token, position=settings.position)
        token = int(saliency.token_B[0])
        facts: dict[str, Any] = {
            "token": token,
            "score": float(saliency.score_B[0]),
            "spelled": spelled(inside, [token]),
        }
        tensors: dict[str, Tensor] = {"tokens": saliency.value_BL[0].float()}
        if saliency.source_BS is not None:
            tensors["source"] = saliency.source_BS[0].float()
        return Payload(facts, tensors, [saliency.check])
