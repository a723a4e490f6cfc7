"""What an objective may do beside its core, a protocol each, and the functions that ask whether it does.

An objective has a contract by having its methods. A run asks here and nowhere else; the functions say what holds where
it has none.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from orrery.objectives._heads import NeededHead
from orrery.objectives._objective import Objective

if TYPE_CHECKING:
    from torch import Tensor, nn

    from orrery.models.inputs import Batch
    from orrery.models.model import ModelSpec
    from orrery.models.sentence_vectors import SentenceVectors
    from orrery.text.tokenizer import Tokenizer


@runtime_checkable
class NamesHeads(Protocol):
    """An objective that trains other heads than the main one."""

    def heads(self, spec: "ModelSpec") -> tuple[str, ...]:
        """Return the names of the model's heads that it trains."""
        ...


@runtime_checkable
class NeedsHead(Protocol):
    """An objective that trains a head which the model may lack."""

    def needed_head(self, labels: Mapping[str, int]) -> NeededHead | None:
        """Return the head that it trains; nothing where it trains the model's own.

        Called once, before ``bind``. A model without it gets the one that its family publishes, else a new one beside
        its own.

        Args:
            labels: how often each label of the data occurs, in the order of their numbers.
        """
        ...


@runtime_checkable
class DecidesConfig(Protocol):
    """An objective that decides something of a new model's configuration."""

    def config(self, tokenizer: "Tokenizer | None") -> dict[str, Any]:
        """Return what it decides, in Hugging Face's names."""
        ...


@runtime_checkable
class LearnsFromModels(Protocol):
    """An objective that learns from other models, such as a teacher."""

    def reads(self) -> "Mapping[str, str]":
        """Return a path each by name. They are read once before ``modules``, and given to ``take``."""
        ...

    def take(self, models: "Mapping[str, nn.Module]") -> None:
        """Take the models that it reads, by name.

        Raises:
            UsageError: one does not fit the model that is trained.
        """
        ...


@runtime_checkable
class BeginsFromVectors(Protocol):
    """An objective over vectors of texts, which the model to begin from may make by steps behind its own."""

    def begin(self, vectors: "SentenceVectors") -> None:
        """Take how the folder of that model makes a vector of a text. Called once, before ``modules``."""
        ...


@runtime_checkable
class OwnsModules(Protocol):
    """An objective with modules of its own: a frozen copy of the model, a value head."""

    def modules(self, model: "nn.Module") -> "Mapping[str, nn.Module]":
        """Make them, keep them, and return them by name.

        Called once, with the model as the run begins. They are saved and resumed with the run beside the model; those
        of their parameters that need a gradient are trained with it.
        """
        ...


@runtime_checkable
class Checks(Protocol):
    """An objective that has what must not change, such as a frozen reference."""

    def check(self) -> None:
        """Look whether it is what it was; called before each checkpoint.

        Raises:
            RunError: it is not; nothing is saved.
        """
        ...


@runtime_checkable
class ObservesRollouts(Protocol):
    """An objective over the model's own answers that must know something of them as they were written."""

    def observe(self, model: Any, batch: "Batch") -> "Mapping[str, Tensor]":
        """Return what is to be known of some rows that the model has written, as it was then.

        Asked once of each row of a rollout, without gradients, in the pieces in which its first steps are computed; the
        fields are in every batch that is taken of it.
        """
        ...


@runtime_checkable
class CreditsRollouts(Protocol):
    """An objective over the model's own answers that compares them with each other."""

    def credit(self, batch: "Batch") -> "Mapping[str, Tensor]":
        """Return what is computed once over all rows of a rollout from what was observed, such as advantages.

        What it changes in the modules that the objective owns is saved with the run.
        """
        ...


def trained_heads(objective: Objective, spec: "ModelSpec") -> tuple[str, ...]:
    """Return the names of the heads that an objective trains: by default the main one."""
    return objective.heads(spec) if isinstance(objective, NamesHeads) else spec.head_names[:1]


def needed_head(objective: Objective, labels: Mapping[str, int]) -> NeededHead | None:
    """Return the head that an objective trains where the model may lack it."""
    return objective.needed_head(labels) if isinstance(objective, NeedsHead) else None


def decided_config(objective: Objective, tokenizer: "Tokenizer | None") -> dict[str, Any]:
    """Return what an objective decides of a new model's configuration."""
    return objective.config(tokenizer) if isinstance(objective, DecidesConfig) else {}


def give_models(objective: Objective, read: "Callable[[str], nn.Module]") -> None:
    """Read the models that an objective learns from, and give them to it."""
    if isinstance(objective, LearnsFromModels):
        objective.take({name: read(path) for name, path in objective.reads().items()})


def begin_vectors(objective: Objective, vectors: "SentenceVectors | None") -> None:
    """Give an objective over vectors of texts the steps of the model to begin from, where there are some."""
    if vectors is not None and isinstance(objective, BeginsFromVectors):
        objective.begin(vectors)


def own_modules(objective: Objective, model: "nn.Module") -> "Mapping[str, nn.Module]":
    """Return the modules that an objective owns, made now."""
    return objective.modules(model) if isinstance(objective, OwnsModules) else {}


def check(objective: Objective) -> None:
    """Look whether what must not change has not."""
    if isinstance(objective, Checks):
        objective.check()


def observed(objective: Objective, model: Any, batch: "Batch") -> "Mapping[str, Tensor]":
    """Return what an objective observes of rows that the model has written."""
    return objective.observe(model, batch) if isinstance(objective, ObservesRollouts) else {}


def credited(objective: Objective, batch: "Batch") -> "Mapping[str, Tensor]":
    """Return what an objective computes over all rows of a rollout."""
    return objective.credit(batch) if isinstance(objective, CreditsRollouts) else {}
