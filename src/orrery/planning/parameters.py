"""The numbers that a model consists of, counted without a single one in memory."""

from dataclasses import dataclass

from orrery.models.distinct_blocks import distinct_blocks
from orrery.models.model import ModelSpec
from orrery.nn.feedforward.moe import MoE


@dataclass(frozen=True)
class Parameters:
    """How many parameters a model has, each storage once.

    Attributes:
        trained: those that a gradient changes.
        fixed: those that another rule moves (the corrections of a sigmoid router).
        active: those of both that one token meets: all but the experts that it is not sent to. Embedding tables
            are counted as a whole, as reports on such models do.
    """

    trained: int
    fixed: int
    active: int


def parameters(spec: ModelSpec, *, trained: bool = False) -> int:
    """Count the parameters of a model: 671 billion take a second, for equal blocks are built once.

    ``trained`` leaves out what no gradient changes.
    """
    return distinct_blocks(spec).parameters(trained=trained)


def counts(spec: ModelSpec) -> Parameters:
    """Count the parameters of a model by what happens to them."""
    blocks = distinct_blocks(spec)
    trained, everything = blocks.parameters(trained=True), blocks.parameters()
    mixtures = ((path, module) for path, module in blocks.model.named_modules() if isinstance(module, MoE))
    idle = sum(_idle(module) * blocks.copies(path) for path, module in mixtures)
    return Parameters(trained, everything - trained, everything - idle)


def _idle(mixture: MoE) -> int:
    """Count the parameters of the experts that a token is not sent to."""
    expert = sum(parameter.numel() for parameter in mixture.experts[0].parameters())
    return (len(mixture.experts) - mixture.chosen) * expert
