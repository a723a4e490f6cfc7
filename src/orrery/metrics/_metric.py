"""What a metric is: numbers that add up over batches and ranks, what they come to, and which way is better."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import Field

from orrery.schema.registry import Registry
from orrery.schema.section import Section

if TYPE_CHECKING:
    from torch import Tensor

    from orrery.data.sources import HeldBack
    from orrery.models.inputs import Batch
    from orrery.models.model import ModelSpec
    from orrery.objectives import Term
    from orrery.text.tokenizer import Tokenizer


class MetricSettings(Section):
    """What the section of any metric says: ``name`` is what it is called in the metrics, by default its kind."""

    kind: str
    name: str | None = Field(default=None, pattern=r"^\w[\w.-]*$", max_length=100)

    @property
    def label(self) -> str:
        """What it is called."""
        return self.name or self.kind


class Metric(ABC):
    """A measure of a model on examples held back; it stands in the metrics of a run as ``val/NAME``.

    One file each, ``metrics/NAME.py``; a program defines its own and makes it known with ``register``. The keywords of
    its constructor are the fields of its settings. Torch is imported where it is used, so that a recipe is read without
    it.

    Attributes:
        Settings: its section of a recipe; the default of ``kind`` is its name.
        higher_is_better: which way is better: where a recipe has this metric choose the best model, or expects it.
        needs_bytes: whether it needs the bytes of the text held back.
    """

    Settings: ClassVar[type[MetricSettings]]
    higher_is_better: ClassVar[bool] = False
    needs_bytes: ClassVar[bool] = False

    @classmethod
    def of(cls, settings: Section) -> "Metric":
        """Return the metric that settings describe."""
        own = [name for name in type(settings).model_fields if name not in MetricSettings.model_fields]
        return cls(**{name: getattr(settings, name) for name in own})

    def bind(self, spec: "ModelSpec", tokenizer: "Tokenizer | None") -> None:  # noqa: B027 - most need nothing of them
        """Take what it needs of model and tokenizer, once before the run; refuse a model that cannot be measured so.

        Raises:
            UsageError: the model lacks what this metric needs.
        """

    @abstractmethod
    def measure(self, model: Any, batch: "Batch", terms: "Mapping[str, Term]") -> "Tensor":
        """Return what one batch adds, ``[N]``: sums and counts, the same N for every batch.

        ``terms`` are those of the loss on this batch, without what only training has.
        """

    @abstractmethod
    def value(self, sums: "Tensor", held_back: "HeldBack") -> float:
        """Return what the sums over all batches, ``[N]`` in float64, come to."""

    def better(self, value: float, than: float | None) -> bool:
        """Say whether a value is better than another, or than none."""
        if than is None:
            return True
        return value > than if self.higher_is_better else value < than


def possible(names: Sequence[str], counts_bytes: bool) -> dict[str, type[Metric]]:
    """Return those of an objective's metrics that can be measured, by name: some need the bytes of a text."""
    metrics = {name: METRICS.find(name) for name in names}
    return {name: metric for name, metric in metrics.items() if counts_bytes or not metric.needs_bytes}


METRICS: Registry[Metric] = Registry("metric", "orrery.metrics")
register = METRICS.register
