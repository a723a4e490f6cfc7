"""From two texts that are read beside each other to a score, as the folder of a cross-encoder says."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, final, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from orrery.errors import ModelFileError
from orrery.models.model import HIDDEN, LANGUAGE_MODEL, Model
from orrery.models.sentence_vectors import SentenceVectors
from orrery.nn.heads import Last, Real

IDENTITY, SIGMOID = "torch.nn.modules.linear.Identity", "torch.nn.modules.activation.Sigmoid"
ACTIVATIONS: Mapping[str, Callable[[Tensor], Tensor]] = {
    "Identity": lambda x: x,
    "Sigmoid": torch.sigmoid,
    "Tanh": torch.tanh,
    "ReLU": F.relu,
    "GELU": F.gelu,
    "SiLU": F.silu,
    "LogSigmoid": F.logsigmoid,
    "Softplus": F.softplus,
    "Softsign": F.softsign,
    "Hardsigmoid": F.hardsigmoid,
    "Hardtanh": F.hardtanh,
    "ELU": F.elu,
    "LeakyReLU": F.leaky_relu,
}
"""What makes scores of logits, by the name of torch's class, which has no settings."""


@runtime_checkable
class Scorer(Protocol):
    """What makes the numbers of a pair from the row of its two texts."""

    @property
    def labels(self) -> int:
        """How many numbers a pair gets."""
        ...

    def __call__(self, model: Model, batch: Mapping[str, Tensor]) -> Float[Tensor, "B N"]:
        """Return the logits of a batch of rows."""
        ...


@final
@dataclass(frozen=True)
class OfHead:
    """What a head says of the whole row: ``W pooler(x) + b``."""

    name: str
    labels: int

    def __call__(self, model: Model, batch: Mapping[str, Tensor]) -> Float[Tensor, "B N"]:
        """Return the logits of a batch of rows."""
        logits_BN: Tensor = model(batch, (self.name,))[self.name]
        return logits_BN


@final
@dataclass(frozen=True)
class OfVectors:
    """What a chain of modules makes of the final stream: ``dense(... pool(x))``."""

    vectors: SentenceVectors
    labels: int

    def __call__(self, model: Model, batch: Mapping[str, Tensor]) -> Float[Tensor, "B N"]:
        """Return the logits of a batch of rows."""

        def score(head: nn.Module, x_BLD: Tensor, real_BL: Real) -> Tensor:
            every_BL = torch.ones(x_BLD.shape[:2], dtype=torch.bool, device=x_BLD.device)
            vectors_BE: Tensor = self.vectors(x_BLD, every_BL if real_BL is None else real_BL)
            return vectors_BE

        logits_BN: Tensor = model(batch, {HIDDEN: score})[HIDDEN]
        return logits_BN


@final
@dataclass(frozen=True)
class OfNextToken:
    """What a language model says behind the row: ``z_yes - z_no`` of its next token, or ``z_yes`` alone.

    Paper: Nogueira et al. 2020, "Document Ranking with a Pretrained Sequence-to-Sequence Model", for decoders.
    """

    yes: int
    no: int | None = None
    labels: int = 1

    def __call__(self, model: Model, batch: Mapping[str, Tensor]) -> Float[Tensor, "B N"]:
        """Return the logits of a batch of rows."""

        def score(head: nn.Module, x_BLD: Tensor, real_BL: Real) -> Tensor:
            logits_BV = head(Last().of(x_BLD, batch.get("real")))
            return logits_BV[:, [self.yes]] - (0 if self.no is None else logits_BV[:, [self.no]])

        logits_BN: Tensor = model(batch, {LANGUAGE_MODEL: score})[LANGUAGE_MODEL]
        return logits_BN


@dataclass(frozen=True)
class PairTemplate:
    """The chat template that says two texts: one message of the role ``query``, one of the role ``document``.

    Attributes:
        source: the template; empty is that of the model's chats.
        structured: whether contents are lists of parts, as templates of several media want them.
        prompt: whether the assistant's next answer begins behind the two.
        variables: what the template takes besides.
        whole_end: whether what the template writes behind the texts stays where they are cut.
    """

    source: str = ""
    structured: bool = False
    prompt: bool = False
    variables: Mapping[str, Any] = field(default_factory=dict)
    whole_end: bool = True


@dataclass(frozen=True)
class PairScores:
    """How a folder scores pairs of texts.

    Attributes:
        scorer: what makes logits of rows.
        activation: torch's name of what makes scores of logits; by default a sigmoid for one label, else nothing.
        length: tokens of a row at most, special ones among them. None is the context.
        from_left: whether texts that are too long lose their beginnings, not their ends.
        prompts: texts put in front of the first text, by name.
        prompt: the name of that which is taken where none is asked for.
        lowercase: whether texts are lowered before they are cut into tokens.
        reads_token_types: whether the second text is marked as such, where the model tells token types apart.
        template: how two texts are said where they are messages; None is the tokenizer's way of two texts.
        given: whether a list of modules says so; a head for rows needs none.
    """

    scorer: Scorer
    activation: str | None = None
    length: int | None = None
    from_left: bool = False
    prompts: Mapping[str, str] = field(default_factory=dict)
    prompt: str | None = None
    lowercase: bool = False
    reads_token_types: bool = True
    template: PairTemplate | None = None
    given: bool = True

    @property
    def activation_name(self) -> str:
        """Torch's name of what makes scores of logits."""
        return self.activation or (SIGMOID if self.scorer.labels == 1 else IDENTITY)

    def activate(self, logits_BN: Float[Tensor, "B N"]) -> Float[Tensor, "B N"]:
        """Return the scores, in float32 at least.

        Raises:
            ModelFileError: the activation is not built.
        """
        package, _, name = self.activation_name.rpartition(".")
        if name not in ACTIVATIONS or package.partition(".")[0] != "torch":
            message = f"scores go through {self.activation_name[:80]!r}, which is not built"
            known = ", ".join(f"torch.nn.{known}" for known in ACTIVATIONS)
            raise ModelFileError(message, f"name one of {known} in the folder (activation_fn)")
        return ACTIVATIONS[name](logits_BN.to(torch.promote_types(logits_BN.dtype, torch.float32)))
