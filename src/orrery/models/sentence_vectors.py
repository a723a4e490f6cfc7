"""From the vectors of a text's tokens to one vector of the text, in the steps of a sentence-transformers folder."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import final

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional as F

Real = Bool[Tensor, "B L"]


def _first(x_BLD: Tensor, real_BL: Real) -> Tensor:
    return x_BLD[torch.arange(len(x_BLD), device=x_BLD.device), real_BL.int().argmax(1)]


def _greatest(x_BLD: Tensor, real_BL: Real) -> Tensor:
    return x_BLD.masked_fill(~real_BL[..., None], float("-inf")).amax(1)


def _sum(x_BLD: Tensor, weights_BL: Tensor) -> Tensor:
    return (x_BLD * weights_BL[..., None]).sum(1)


def _mean(x_BLD: Tensor, real_BL: Real) -> Tensor:
    return _sum(x_BLD, real_BL) / real_BL.sum(1, keepdim=True).clamp(min=1)


def _mean_by_root(x_BLD: Tensor, real_BL: Real) -> Tensor:
    return _sum(x_BLD, real_BL) / real_BL.sum(1, keepdim=True).clamp(min=1).sqrt()


def _later_more(x_BLD: Tensor, real_BL: Real) -> Tensor:
    weights_BL = real_BL * torch.arange(1, x_BLD.shape[1] + 1, device=x_BLD.device, dtype=x_BLD.dtype)
    return _sum(x_BLD, weights_BL) / weights_BL.sum(1, keepdim=True).clamp(min=1e-9)


def _last(x_BLD: Tensor, real_BL: Real) -> Tensor:
    return x_BLD[torch.arange(len(x_BLD), device=x_BLD.device), (real_BL.long().cumsum(1) * real_BL).argmax(1)]


POOLINGS: Mapping[str, Callable[[Tensor, Real], Tensor]] = {
    "cls": _first,
    "max": _greatest,
    "mean": _mean,
    "mean_sqrt_len_tokens": _mean_by_root,
    "weightedmean": _later_more,
    "lasttoken": _last,
}
"""The first token; the greatest number of each channel; the mean; the sum over the root of the number of tokens
(Reimers and Gurevych 2019); the mean with weights 1, 2, 3 ... (Muennighoff 2022); the last token. Real tokens count."""


class Pooling(nn.Module):
    """One or several poolings, side by side. Shapes: ``[B, L, D]`` to ``[B, n D]``."""

    def __init__(self, modes: Sequence[str]) -> None:
        super().__init__()
        self.modes = tuple(modes)

    def forward(self, x_BLD: Float[Tensor, "B L D"], real_BL: Real) -> Float[Tensor, "B E"]:
        """Pool."""
        return torch.cat([POOLINGS[mode](x_BLD, real_BL) for mode in self.modes], -1)


ACTIVATIONS: Mapping[str, Callable[[Tensor], Tensor]] = {
    "torch.nn.modules.activation.Tanh": torch.tanh,
    "torch.nn.modules.linear.Identity": lambda x: x,
    "torch.nn.modules.activation.ReLU": F.relu,
    "torch.nn.modules.activation.GELU": F.gelu,
    "torch.nn.modules.activation.SiLU": F.silu,
    "torch.nn.modules.activation.Sigmoid": torch.sigmoid,
}
"""By the name that a folder calls them."""


class Dense(nn.Module):
    """``f(W x + b)``, plus x or ``R x`` where there is a residual. Shapes: ``[B, D]`` to ``[B, E]``."""

    def __init__(self, inputs: int, outputs: int, *, bias: bool, activation: str, residual: bool = False) -> None:
        super().__init__()
        self.linear = nn.Linear(inputs, outputs, bias=bias)
        self.activation, self.adds = activation, residual
        self.residual = nn.Linear(inputs, outputs, bias=False) if residual and inputs != outputs else None

    def forward(self, x_BD: Float[Tensor, "B D"]) -> Float[Tensor, "B E"]:
        """Map."""
        mapped_BE = ACTIVATIONS[self.activation](self.linear(x_BD))
        if not self.adds:
            return mapped_BE
        return mapped_BE + (x_BD if self.residual is None else self.residual(x_BD))


class UnitLength(nn.Module):
    """``x / |x|``. Shapes: unchanged."""

    def forward(self, x_BD: Float[Tensor, "B D"]) -> Float[Tensor, "B D"]:
        """Divide by the length."""
        return F.normalize(x_BD, dim=-1)


@final
class SentenceVectors(nn.Module):
    """``step(... step(pool(x)))``: at least in float32. Shapes: ``[B, L, D]`` to ``[B, E]``."""

    def __init__(self, pooling: Pooling, steps: Sequence[nn.Module] = ()) -> None:
        super().__init__()
        self.pooling, self.steps = pooling, nn.ModuleList(steps)

    def forward(self, x_BLD: Float[Tensor, "B L D"], real_BL: Real) -> Float[Tensor, "B E"]:
        """Pool, and take the steps behind."""
        x_BD = self.pooling(x_BLD.to(torch.promote_types(x_BLD.dtype, torch.float32)), real_BL)
        for step in self.steps:
            x_BD = step(x_BD)
        return x_BD

    @property
    def normalises(self) -> bool:
        """Whether every vector has the length 1."""
        return bool(self.steps) and isinstance(self.steps[-1], UnitLength)


@dataclass(frozen=True)
class Sentences:
    """How a folder makes vectors of texts.

    Attributes:
        vectors: the modules behind the model.
        length: tokens of a row at most, special ones among them; what is longer loses its end. None is the context.
        prompts: texts put in front of a text, by name.
        prompt: the name of that which is taken where none is asked for.
        pools_prompt: whether the tokens of the prompt are pooled too.
        lowercase: whether texts are lowered before they are cut into tokens.
        similarity: how vectors are compared, as the folder says.
        unread: the id of a token that is left out of rows: the unknown one of model2vec's tables.
        given: whether a folder says so; otherwise a text has the mean of its vectors.
    """

    vectors: SentenceVectors
    length: int | None = None
    prompts: Mapping[str, str] = field(default_factory=dict)
    prompt: str | None = None
    pools_prompt: bool = True
    lowercase: bool = False
    similarity: str | None = None
    unread: int | None = None
    given: bool = True


def mean_of_tokens() -> Sentences:
    """Return what makes vectors where no folder says how: the mean over all tokens."""
    return Sentences(SentenceVectors(Pooling(("mean",))), given=False)
