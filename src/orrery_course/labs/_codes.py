"""The codes of positions that the lab `positions` compares, each as numbers and as a part of one small model."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from orrery.families import load_family
from orrery.nn.masks import Mask, TokenPositions
from orrery.nn.positions.alibi import Alibi
from orrery.nn.positions.learned import LearnedPositions
from orrery.nn.positions.onehot import OneHotPositions
from orrery.nn.positions.relative import Backward, RelativeBias
from orrery.nn.positions.rotary import Rotary
from orrery.nn.positions.scheme import Added, BoundPosition, PositionCall, PositionScheme, PositionSpec
from orrery.nn.positions.sinusoidal import SinusoidalPositions
from orrery.nn.spec import spec

WIDTH, HEADS, LIMIT, REACH = 32, 4, 64, 1024
"""A code that ends has ``LIMIT`` places; every other is tried over ``REACH``."""
CONFIG = {
    "n_embd": WIDTH, "n_head": HEADS, "n_positions": REACH, "tie_word_embeddings": False,
    "resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0,
}  # fmt: skip


class IndexPositions(PositionScheme):
    """``x_i + i e_0``: the number of the place itself in one channel. Shapes: added to ``[B, L, D]``."""

    @spec
    class Spec(PositionSpec):
        """It has no settings."""

        def build(self, width: int) -> "IndexPositions":
            """Return the scheme."""
            return IndexPositions(width)

    def __init__(self, width: int) -> None:
        super().__init__()
        self.width = width

    def bind(self, call: PositionCall) -> BoundPosition:
        """Put the numbers into the first channel."""
        return Added(self.added(call.query.positions.to(call.dtype)))

    def added(self, number_BL: Tensor) -> Tensor:
        """Return vectors whose first channel is the number."""
        return torch.nn.functional.pad(number_BL[..., None], (0, self.width - 1))


class NormalisedPositions(PositionScheme):
    """``x_i + i / (n - 1) e_0`` in a text of n tokens, from 0 to 1. Shapes: added to ``[B, L, D]``."""

    @spec
    class Spec(PositionSpec):
        """It has no settings."""

        def build(self, width: int) -> "NormalisedPositions":
            """Return the scheme."""
            return NormalisedPositions(width)

    def __init__(self, width: int) -> None:
        super().__init__()
        self.index = IndexPositions(width)

    def bind(self, call: PositionCall) -> BoundPosition:
        """Divide by the last place."""
        return Added(self.index.added(call.query.positions.to(call.dtype) / max(1, call.length - 1)))


@dataclass(frozen=True)
class PositionCode:
    """A code: the spec of its scheme, and whether attention asks for it or the embeddings have it."""

    scheme: PositionSpec | None
    in_attention: bool = False


CODES: Mapping[str, PositionCode] = {
    "none": PositionCode(None),
    "one-hot": PositionCode(OneHotPositions.Spec(length=LIMIT)),
    "index": PositionCode(IndexPositions.Spec()),
    "normalised index": PositionCode(NormalisedPositions.Spec()),
    "sinusoidal": PositionCode(SinusoidalPositions.Spec()),
    "learned": PositionCode(LearnedPositions.Spec(length=LIMIT)),
    "rotary": PositionCode(Rotary.Spec(width=WIDTH // HEADS), in_attention=True),
    "ALiBi": PositionCode(Alibi.Spec(heads=HEADS), in_attention=True),
    "T5": PositionCode(RelativeBias.Spec(heads=HEADS, buckets=Backward(count=16, furthest=64)), in_attention=True),
}


def model_spec(name: str, mask: Mask, vocabulary: int, layers: int) -> Any:
    """Return a small decoder with a code; all have the same size but for the code itself."""
    code = CODES[name]
    model: Any = load_family("gpt2").spec({**CONFIG, "vocab_size": vocabulary, "n_layer": layers})
    width = WIDTH + (code.scheme.extra_width if code.scheme else 0)
    attention = replace(
        model.stack.blocks[0].residuals["attention"].branch, position="code" if code.in_attention else "none"
    )
    blocks = tuple(
        replace(
            block, residuals={**block.residuals, "attention": replace(block.residuals["attention"], branch=attention)}
        )
        for block in model.stack.blocks
    )
    positions = {"code": code.scheme} if code.scheme else {}
    stack = replace(model.stack, blocks=blocks, positions=positions, masks={"causal": mask})
    return replace(model, stack=stack, width=width)


def vectors(name: str, length: int) -> Float[Tensor, "L E"]:
    """Return the code of each place in a text of ``length`` tokens, in float64.

    What is added to an embedding of zeros; of rotary a head whose pairs have length one, turned; of a bias what each
    head adds for a key so many places back.

    Raises:
        UsageError: the code does not reach so far.
    """
    scheme = CODES[name].scheme
    assert scheme is not None
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        module: Any = scheme.build(WIDTH + scheme.extra_width).double()
    at = TokenPositions(torch.arange(length)[None])
    bound = module.bind(PositionCall(at, {"causal": at}, length, torch.float64))
    bias = bound.bias("causal")
    if bias is not None:
        codes: Tensor = bias[0, :, -1].flip(-1).T
        return codes.detach()
    units_1HLC = torch.full((1, 1, length, WIDTH // HEADS), 2**-0.5, dtype=torch.float64)
    turned = bound.rotate(units_1HLC)[0, 0]
    added = bound.embed(torch.zeros(1, length, WIDTH, dtype=torch.float64))[0]
    return torch.as_tensor(turned if CODES[name].in_attention else added).detach()
