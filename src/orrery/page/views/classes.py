"""What a classifier or a tagger says: its classes with their probabilities, and what one of them depends on."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar

import torch
from jaxtyping import Float
from torch import Tensor, nn

from orrery.errors import UsageError
from orrery.inspection.checks import Check
from orrery.models.model import Model
from orrery.nn.heads import SequenceHead, TokenHead
from orrery.page.views._payload import Payload
from orrery.page.views._view import View, ViewSubject, register
from orrery.schema.section import Section

SPAN = "span"
"""A head whose two numbers of each token are compared over the tokens: they are no classes of a token."""
MOST = 64
"""Tokens of a tagger, or labels of a classifier, that a saved page explains."""


class ClassesSettings(Section):
    """What can be asked.

    Attributes:
        label: the label whose saliency is shown; the likeliest by default.
        position: the token of a tagger; the last by default.
    """

    label: int | None = None
    position: int = -1


@register
class ClassesView(View):
    """``softmax(head(x))`` of the row or of each token, and the gradient of one label's logit."""

    kind: ClassVar[str] = "classes"
    order: ClassVar[int] = 85
    Settings: ClassVar[type[Section]] = ClassesSettings

    def fits(self, subject: ViewSubject) -> bool:
        """Say whether the model's main head has classes."""
        return subject.inside is not None and head_of_classes(subject.lm.model) is not None

    def saved(self, subject: ViewSubject) -> Iterable[Section]:
        """Return each label of a row, or each token of a tagger with its likeliest label."""
        logits = subject.seen.first.logits
        yield ClassesSettings()
        if logits.dim() == 2:
            yield from (ClassesSettings(label=label) for label in range(min(MOST, logits.shape[-1])))
        else:
            yield from (ClassesSettings(position=place) for place in range(min(MOST, logits.shape[1])))

    def payload(self, subject: ViewSubject, settings: Any) -> Payload:
        """Return the probabilities, and one number for each token that was read."""
        inside, head = subject.seen, head_of_classes(subject.lm.model)
        name, module = head if head is not None else ("", None)
        logits_PN = inside.first.logits[0].double()
        logits_PN = logits_PN if logits_PN.dim() > 1 else logits_PN[None]
        spec: Any = subject.lm.model.spec.heads[name]
        function, shares_PN = probabilities(logits_PN, spec)
        facts: dict[str, Any] = {
            "labels": labels_of(spec),
            "of": "row" if isinstance(module, SequenceHead) else "token",
            "function": function,
            "notes": [],
        }
        tensors = {"probability": shares_PN.float(), "logit": logits_PN.float()}
        off = float((shares_PN.sum(-1) - 1).abs().max()) if function == "softmax" else 0.0
        checks = [Check("the probabilities of the classes sum to one", off, 1e-9)] if function == "softmax" else []
        try:
            saliency = inside.first.saliency(settings.label, position=settings.position)
        except UsageError as refused:  # what a model reads may have no vectors that can be moved
            facts |= {"label": settings.label, "notes": [f"{refused.message}: {refused.hint}"]}
            return Payload(facts, tensors, checks)
        facts["label"] = int(saliency.token_B[0])
        tensors["tokens"] = saliency.value_BL[0].float()
        return Payload(facts, tensors, [*checks, saliency.check])


def head_of_classes(model: Model) -> tuple[str, nn.Module] | None:
    """Return the main head with its name where it scores classes, of the row or of each token."""
    name, main = next(iter(model.named_heads.items()), ("", None))
    return (name, main) if isinstance(main, SequenceHead | TokenHead) and name != SPAN else None


def labels_of(spec: Any) -> list[str]:
    """Return what the classes of a head are called."""
    return list(spec.names) or [f"LABEL_{number}" for number in range(spec.labels)]


def probabilities(logits: Float[Tensor, "*P N"], spec: Any) -> tuple[str, Float[Tensor, "*P N"]]:
    """Return what makes probabilities of the logits of a head, by its name, and what it makes."""
    function = _function(spec)
    return function, _FUNCTIONS[function](logits)


def _function(spec: Any) -> str:
    """Return what makes probabilities of the logits of a head, as transformers' ``problem_type`` has it."""
    problem = getattr(spec, "problem", "")
    if problem == "regression" or (not problem and spec.labels == 1 and isinstance(spec, SequenceHead.Spec)):
        return "none"
    return "sigmoid" if problem == "multi_label_classification" or spec.labels == 1 else "softmax"


def _softmax(logits: Float[Tensor, "*P N"]) -> Float[Tensor, "*P N"]:
    return logits.softmax(-1)


_FUNCTIONS: Mapping[str, Callable[[Tensor], Tensor]] = {
    "softmax": _softmax,
    "sigmoid": torch.sigmoid,
    "none": torch.clone,
}
