"""What an objective is: what it needs of a batch, and the terms of its loss, each a sum over a count."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from orrery.objectives._heads import NeededHead
from orrery.schema.registry import Registry
from orrery.schema.section import Section

if TYPE_CHECKING:
    import torch
    from torch import Tensor, nn

    from orrery.models.inputs import Batch
    from orrery.models.model import ModelSpec
    from orrery.text.tokenizer import Tokenizer


@dataclass(frozen=True)
class Term:
    """One term of a loss over some examples: ``weight * sum / count``, the count taken over the global batch.

    ``sum`` is a scalar with a gradient, in nats where the term is a likelihood; ``count`` the number of things
    summed (tokens, pairs). ``coupled`` says that the term ties examples together, so that a batch must not be split.
    A term of weight 0 is no part of the loss: it tells metrics what the loss has computed on the way.
    """

    sum: "Tensor"
    count: "Tensor | int"
    weight: float = 1.0
    coupled: bool = False


class Objective(ABC):
    """A way to learn: from a batch and a model to the terms of a loss.

    One file each, ``objectives/NAME.py``; a program defines its own and makes it known with ``register``. The keywords
    of its constructor are the fields of its settings. Torch is imported where it is used, so that a recipe is read
    without it.

    Attributes:
        Settings: its section of a recipe; the default of ``kind`` is its name.
        needs: the fields of a batch that it reads of what the source gives.
        makes: the fields that ``prepare`` makes of them, so that a model may read what no source gives.
        metrics: what is measured on examples held back, by name; the first decides which model is the best unless
            the recipe says otherwise.
        reports: the terms of its loss whose means, without their weights, stand in the metrics as ``train/NAME``.
    """

    Settings: ClassVar[type[Section]]
    needs: ClassVar[tuple[str, ...]]
    makes: ClassVar[tuple[str, ...]] = ()
    metrics: ClassVar[tuple[str, ...]] = ("loss",)
    reports: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def of(cls, settings: Section) -> "Objective":
        """Return the objective that settings describe."""
        return cls(**{name: getattr(settings, name) for name in type(settings).model_fields if name != "kind"})

    @classmethod
    def measured(cls, settings: Any) -> Sequence[Mapping[str, Any]]:
        """Return the settings of what is measured on examples held back, the one that decides first.

        By default those that ``metrics`` names; an objective whose metrics depend on its settings says so here.
        """
        return [{"kind": name} for name in cls.metrics]

    def needed_head(self, labels: Mapping[str, int]) -> NeededHead | None:
        """Return the head that it trains where the model may lack it; nothing where it trains the model's own.

        Called once, before ``bind``. A model without it gets the one that its family publishes, else a new one beside
        its own.

        Args:
            labels: how often each label of the data occurs, in the order of their numbers.
        """
        return None

    def config(self, tokenizer: "Tokenizer | None") -> dict[str, Any]:
        """Return what the objective decides of a new model's configuration, in Hugging Face's names: nothing."""
        return {}

    def bind(self, spec: "ModelSpec", tokenizer: "Tokenizer | None") -> None:  # noqa: B027 - many need nothing of them
        """Take what it needs of model and tokenizer, once before the run, and refuse a model that cannot learn this.

        Raises:
            UsageError: the model lacks what this objective needs.
        """

    def heads(self, spec: "ModelSpec") -> tuple[str, ...]:
        """Return the names of the model's heads that it trains: the main one."""
        return spec.head_names[:1]

    def reads(self) -> "Mapping[str, str]":
        """Return other models that it learns from, a path each by name, such as a teacher: none.

        They are read once before ``modules``, and given to ``take``.
        """
        return {}

    def take(self, models: "Mapping[str, nn.Module]") -> None:  # noqa: B027 - most read none
        """Take the models that it reads, by name.

        Raises:
            UsageError: one does not fit the model that is trained.
        """

    def modules(self, model: "nn.Module") -> Mapping[str, "nn.Module"]:
        """Make the modules that the objective owns, keep them, and return them by name: it has none.

        Called once, with the model as the run begins: a frozen copy of it, a value head. They are saved and resumed
        with the run beside the model; those of their parameters that need a gradient are trained with it.
        """
        return {}

    def observe(self, model: Any, batch: "Batch") -> "Mapping[str, Tensor]":
        """Return what is to be known of some rows that the model has written, as it was then: nothing.

        Asked once of each row of a rollout, without gradients, in the pieces in which its first steps are computed; the
        fields are in every batch that is taken of it.
        """
        return {}

    def credit(self, batch: "Batch") -> "Mapping[str, Tensor]":
        """Return what is computed once over all rows of a rollout from what was observed, such as advantages: nothing.

        What it changes in the modules that the objective owns is saved with the run.
        """
        return {}

    def check(self) -> None:  # noqa: B027 - most own nothing that must stay as it is
        """Look whether what must not change has not; called before each checkpoint.

        Raises:
            RunError: it has; nothing is saved.
        """

    def prepare(self, batch: "Batch", rng: "torch.Generator") -> "Batch":
        """Draw everything random (masks, corruptions, negatives) from ``rng``, and return the finished batch."""
        return batch

    @abstractmethod
    def counts(self, batch: "Batch") -> dict[str, int]:
        """Count what each term will sum, before any forward pass, so that micro-batches share one denominator."""

    def tokens_of(self, batch: "Batch", counts: Mapping[str, int]) -> int:
        """Return how many tokens a prepared batch is, for speeds: those that are read, or those that a term counts."""
        return max(int(batch["real"].sum()) if "real" in batch else 0, *counts.values())

    @abstractmethod
    def loss(self, model: Any, batch: "Batch") -> dict[str, Term]:
        """Return the terms of the loss of ``model`` on a prepared batch."""

    def evaluated(self) -> "Objective":
        """Return the objective without what only training has, such as label smoothing: it is the same."""
        return self


OBJECTIVES: Registry[Objective] = Registry("objective", "orrery.objectives")
register = OBJECTIVES.register
