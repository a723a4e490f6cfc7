"""How a run learned, or learns: the curves of what was measured, what it wrote meanwhile, its checkpoints."""

import math
from collections.abc import Mapping
from typing import Any, ClassVar

from orrery.exchange.reading.read import recipe_of
from orrery.inspection.checks import Check
from orrery.page.views._payload import Payload
from orrery.page.views._run import RunSeen
from orrery.page.views._view import View, ViewSubject, register


@register
class CurvesView(View):
    """What ``metrics.jsonl`` and ``samples.jsonl`` hold at this moment; a live page follows them from there."""

    kind: ClassVar[str] = "curves"
    screen: ClassVar[str] = "train"
    order: ClassVar[int] = 10

    def fits(self, subject: ViewSubject) -> bool:
        """Say whether the model is that of a run."""
        return subject.run is not None

    def payload(self, subject: ViewSubject, settings: Any) -> Payload:
        """Return curves, samples, checkpoints, and how many steps are planned."""
        run = subject.run
        assert run is not None
        history = RunSeen(run).history()
        training = recipe_of(run).get("training")
        planned = training.get("steps") if isinstance(training, Mapping) else None
        return Payload({"name": run.name, "planned": planned, **history}, checks=_perplexity(history["curves"]))


def _perplexity(curves: Mapping[str, list[list[int | float]]]) -> list[Check]:
    """Compare each perplexity with the exponential of the loss beside it."""
    losses = {step: value for step, value in curves.get("val/loss", [])}
    pairs = [
        (value, math.exp(min(losses[step], 700))) for step, value in curves.get("val/perplexity", []) if step in losses
    ]
    worst = max((abs(value - expected) / max(1.0, expected) for value, expected in pairs), default=0.0)
    name = "every perplexity is exp of the validation loss of its step"
    return [Check(name, worst, 1e-9)] if pairs else []
