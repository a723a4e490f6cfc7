"""A brick that asks the context for everything it has: attention by cosines, and a small decoder made of it."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from orrery.checkpoints.rules import Rule, rename
from orrery.models.decoder import Decoder
from orrery.nn import spec as parts
from orrery.nn.attention.operands import KeysValues, Operands
from orrery.nn.block import Block
from orrery.nn.context import Context
from orrery.nn.embeddings import TokenEmbedding
from orrery.nn.feedforward.mlp import MLP
from orrery.nn.heads import LanguageModelHead
from orrery.nn.masks import Causal
from orrery.nn.norms import RMSNorm
from orrery.nn.positions.rotary import Rotary
from orrery.nn.residual import Residual
from orrery.nn.stack import Stack, repeat


@parts.register
class CosineAttention(nn.Module):
    """``softmax(t cos(q, k)) v`` for each head, with one learned number ``t``. Shapes: ``[B, L, D]`` unchanged."""

    role: str = ""

    @parts.spec
    class Spec(parts.ModuleSpec):
        """Heads, the temperature at first, and the names of the stack's position and mask."""

        heads: int
        head_width: int
        temperature: float = 10.0
        position: str = "rotary"
        mask: str = "causal"

        @property
        def cached(self) -> int:
            """Return the numbers that a token leaves in the cache: its keys and values."""
            return 2 * self.heads * self.head_width

        def build(self, width: int) -> "CosineAttention":
            """Return the brick."""
            return CosineAttention(self, width)

    def __init__(self, spec: Spec, width: int) -> None:
        super().__init__()
        inner = spec.heads * spec.head_width
        self.q, self.k, self.v = (nn.Linear(width, inner, bias=False) for _ in range(3))
        self.out = nn.Linear(inner, width, bias=False)
        self.t = nn.Parameter(torch.tensor(spec.temperature))
        self.head_width, self.position, self.mask = spec.head_width, spec.position, spec.mask

    def forward(self, x_BLD: Tensor, ctx: Context) -> Tensor:
        """Let every token read what it may see."""
        assert ctx.layer is not None
        position = ctx.positions[self.position]
        q_BHLC, k_BHLC = (normalize(self.split(part(x_BLD)), dim=-1) for part in (self.q, self.k))
        k_BHSC, v_BHSC = ctx.layer.extend(self.mask, position.rotate(k_BHLC), self.split(self.v(x_BLD)))
        q_BHLC = ctx.tap(self, "q", self.t * position.of_queries.rotate(q_BHLC))
        kv = KeysValues(ctx.tap(self, "k", k_BHSC), ctx.tap(self, "v", v_BHSC))
        operands = Operands(
            mask=ctx.masks[self.mask], scale=1.0, bias_BHLS=position.bias(self.mask), tap=partial(ctx.tap, self)
        )
        mixed_BHLC = ctx.tap(self, "mixed", ctx.kernel(q_BHLC, kv, operands))
        return self.out(mixed_BHLC.transpose(1, 2).flatten(2))

    def split(self, x_BLE: Tensor) -> Tensor:
        """Cut the channels into heads, ``[B, H, L, C]``."""
        return x_BLE.unflatten(-1, (-1, self.head_width)).transpose(1, 2)


ARCHITECTURE = "CosineLanguageModel"
LIBRARY = "cosine"
DEFAULTS: Mapping[str, Any] = {
    "vocab_size": 1000,
    "hidden_size": 128,
    "num_layers": 4,
    "num_heads": 4,
    "max_position_embeddings": 256,
}
TINY = {"vocab_size": 61, "hidden_size": 16, "num_layers": 2, "num_heads": 2, "max_position_embeddings": 48}


def spec(config: Mapping[str, Any]) -> Decoder.Spec:
    """Return the architecture that a configuration describes."""
    c = {**DEFAULTS, **config}
    width, head_width = c["hidden_size"], c["hidden_size"] // c["num_heads"]
    branches = {
        "attention": CosineAttention.Spec(heads=c["num_heads"], head_width=head_width),
        "feed_forward": MLP.Spec(hidden=4 * width, bias=False),
    }
    block = Block.Spec(
        residuals={name: Residual.Spec(branch=branch, pre=RMSNorm.Spec()) for name, branch in branches.items()}
    )
    return Decoder.Spec(
        width=width,
        context=c["max_position_embeddings"],
        embed=TokenEmbedding.Spec(vocabulary=c["vocab_size"]),
        stack=Stack.Spec(
            blocks=repeat(block, c["num_layers"]),
            final=RMSNorm.Spec(),
            positions={"rotary": Rotary.Spec(width=head_width)},
            masks={"causal": Causal()},
        ),
        head=LanguageModelHead.Spec(vocabulary=c["vocab_size"], tied=True),
    )


_NAMES = [
    "embed.token.weight",
    "stack.final.weight",
    *(f"stack.blocks.{{i}}.{name}.pre.weight" for name in ("attention", "feed_forward")),
    *(
        f"stack.blocks.{{i}}.attention.branch.{name}"
        for name in ("q.weight", "k.weight", "v.weight", "out.weight", "t")
    ),
    *(f"stack.blocks.{{i}}.feed_forward.branch.{name}.weight" for name in ("up", "down")),
]
WEIGHTS: tuple[Rule, ...] = tuple(rename(name, name) for name in _NAMES)
"""From the names in files to those of the model: here they are the same."""
