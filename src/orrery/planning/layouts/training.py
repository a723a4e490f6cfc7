"""What is trained, apart from the model: the batch, the bytes of each number, and how attention is computed."""

from dataclasses import dataclass

from orrery.errors import UsageError
from orrery.planning.layouts.work import DecoderWork


@dataclass(frozen=True)
class AttentionCost:
    """How attention is computed.

    Attributes:
        score_bytes: that it keeps of each score for the backward pass.
        keys: the share of all keys that it multiplies by.
        backward: operations of its backward pass, by those forward.
    """

    score_bytes: int | float
    keys: int | float
    backward: int | float


FLASH = AttentionCost(score_bytes=0, keys=0.5, backward=2.5)
"""No score is kept, what the causal mask hides is not computed, and scores are made again backward (Dao 2023)."""
EAGER = AttentionCost(score_bytes=5, keys=1, backward=2)
"""Softmax, its dropout mask and what comes out of it are kept (Korthikanti et al. 2022, section 4.1)."""
EAGER_WITHOUT_DROPOUT = AttentionCost(score_bytes=2, keys=1, backward=2)
"""The softmax alone is kept."""


@dataclass(frozen=True)
class Bytes:
    """Bytes of one number of each kind; 16 for a parameter, as Rajbhandari et al. 2020 count.

    Attributes:
        weight: as the products read it.
        gradient: as it is added up and sent.
        optimizer: of Adam with its copy of the weight in fp32: 4 and twice 4.
        activation: between the layers.
        shard: of a weight that the optimizer changes beside the whole one that ZeRO 1 and 2 keep, where its state has
            no copy of it.
    """

    weight: int | float = 2
    gradient: int | float = 2
    optimizer: int | float = 12
    activation: int | float = 2
    shard: int | float = 0


RUN = Bytes(weight=4, gradient=4, optimizer=8, shard=4)
"""Of a run of Orrery: weights, gradients and both moments in fp32, of which products read what autocast rounds."""


@dataclass(frozen=True)
class TrainingStep:
    """One step of a training.

    Attributes:
        sequences: of the global batch.
        length: tokens of each.
        number_format: in which the products are computed.
        bytes: of the numbers that are kept and sent.
        kernel: how attention is computed.
        dropout: bytes that an element keeps for its mask: 1, or 0 without dropout.
    """

    sequences: int
    length: int
    number_format: str = "bf16"
    bytes: Bytes = Bytes()
    kernel: AttentionCost = FLASH
    dropout: int | float = 0

    @property
    def tokens(self) -> int:
        """The tokens of the global batch."""
        return self.sequences * self.length


def training_of(work: DecoderWork, tokens: int, number_format: str = "bf16") -> TrainingStep:
    """Return the training by a run of Orrery with a batch of so many tokens, in sequences of the model's length.

    The batch is rounded to whole sequences.

    Raises:
        UsageError: it has not one sequence.
    """
    if tokens < work.length:
        message = f"a batch of {tokens:,} tokens holds no sequence of {work.name}, which has {work.length:,}"
        raise UsageError(message, f"give {work.length:,} tokens or more")
    return TrainingStep(round(tokens / work.length), work.length, number_format, RUN)
