"""What an objective is: what it needs of a batch, and the terms of its loss, each a sum over a count."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from orrery.schema.registry import Registry
from orrery.schema.section import Section

if TYPE_CHECKING:
    import torch
    from torch import Tensor

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

    What only some need - a head, modules of their own, other models, rollouts - are the protocols of ``_contracts.py``.
    One file each, ``objectives/NAME.py``; a program defines its own and makes it known with ``register``. The keywords
    of its constructor are the fields of its settings. Torch is imported where it is used, so that a recipe is read
    without it.

    Attributes:
        Settings: its section of a recipe; the default of ``kind`` is its name.
        needs: the fields of a batch that it reads of what the source gives.
        makes: the fields that ``prepare`` makes of them, so that a model may read what no source gives.
        metrics: what is measured on examples held back, by name; the first decides which model is the best unless
            the recipe says otherwise.
        each_token: whether each term is a sum over the tokens that have a target, each of what the model makes of that
            token alone: then processes may share the tokens of a row.
        own_rows: whether it draws nothing, and counts what has a target, whatever the tokens are: then a process may
            read the rows alone that it computes.
        reports: the terms of its loss whose means, without their weights, stand in the metrics as ``train/NAME``.
    """

    Settings: ClassVar[type[Section]]
    needs: ClassVar[tuple[str, ...]]
    makes: ClassVar[tuple[str, ...]] = ()
    metrics: ClassVar[tuple[str, ...]] = ("loss",)
    each_token: ClassVar[bool] = False
    own_rows: ClassVar[bool] = False
    reports: tuple[str, ...] = ()

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

    def bind(self, spec: "ModelSpec", tokenizer: "Tokenizer | None") -> None:  # noqa: B027 - many need nothing of them
        """Take what it needs of model and tokenizer, once before the run, and refuse a model that cannot learn this.

        Raises:
            UsageError: the model lacks what this objective needs.
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
