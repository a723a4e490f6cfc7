"""A family and a brick of one's own: a decoder whose branches begin at zero (ReZero, Bachlechner et al. 2020)."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import nn

from orrery.checkpoints.rules import Rule, rename
from orrery.models.decoder import Decoder
from orrery.nn import spec as parts
from orrery.nn.attention.multihead import MultiHeadAttention
from orrery.nn.block import Block
from orrery.nn.embeddings import TokenEmbedding
from orrery.nn.feedforward.mlp import MLP
from orrery.nn.heads import LanguageModelHead
from orrery.nn.masks import Causal
from orrery.nn.positions.sinusoidal import SinusoidalPositions
from orrery.nn.residual import Residual
from orrery.nn.stack import Stack, repeat


@parts.register
class ReZero(nn.Module):
    """``a * x`` with one learned number ``a``, at first 0: a block begins as the identity. Shapes: unchanged."""

    @parts.spec
    class Spec(parts.ModuleSpec):
        """The number at first."""

        first: float = 0.0

        def build(self, width: int) -> "ReZero":
            """Return the brick."""
            return ReZero(self.first)

    def __init__(self, first: float) -> None:
        super().__init__()
        self.a = nn.Parameter(torch.tensor(first))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return ``a * x``."""
        return self.a * x


ARCHITECTURE = "ReZeroLanguageModel"
LIBRARY = "rezero"
DEFAULTS: Mapping[str, Any] = {
    "vocab_size": 1000,
    "hidden_size": 128,
    "num_layers": 12,
    "num_heads": 4,
    "max_position_embeddings": 256,
}
TINY = {"vocab_size": 61, "hidden_size": 16, "num_layers": 2, "num_heads": 2, "max_position_embeddings": 48}


def spec(config: Mapping[str, Any]) -> Decoder.Spec:
    """Return the architecture that a configuration describes."""
    c = {**DEFAULTS, **config}
    width, heads = c["hidden_size"], c["num_heads"]
    branches = {
        "attention": MultiHeadAttention.Spec(heads=heads, kv_heads=heads, head_width=width // heads),
        "feed_forward": MLP.Spec(hidden=4 * width),
    }
    block = Block.Spec(
        residuals={name: Residual.Spec(branch=branch, post=ReZero.Spec()) for name, branch in branches.items()}
    )
    return Decoder.Spec(
        width=width,
        context=c["max_position_embeddings"],
        embed=TokenEmbedding.Spec(vocabulary=c["vocab_size"]),
        stack=Stack.Spec(
            blocks=repeat(block, c["num_layers"]),
            positions={"sinusoidal": SinusoidalPositions.Spec()},
            masks={"causal": Causal()},
        ),
        head=LanguageModelHead.Spec(vocabulary=c["vocab_size"]),
    )


_BLOCK = "stack.blocks.{i}"
WEIGHTS: tuple[Rule, ...] = (
    rename("embed.token.weight", "embed.token.weight"),
    *(rename(f"{_BLOCK}.{name}.post.a", f"{_BLOCK}.{name}.post.a") for name in ("attention", "feed_forward")),
    *(
        rename(f"{_BLOCK}.attention.branch.{x}.weight", f"{_BLOCK}.attention.branch.{x}.weight")
        for x in ("q", "k", "v", "out")
    ),
    *(
        rename(f"{_BLOCK}.feed_forward.branch.{x}.{y}", f"{_BLOCK}.feed_forward.branch.{x}.{y}")
        for x in ("up", "down")
        for y in ("weight", "bias")
    ),
)
"""From the names in files to those of the model: here they are the same."""
