"""Prefix tuning (Li and Liang 2021): learned keys and values that every token of a frozen model may read."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor, nn

from orrery.errors import UsageError
from orrery.models.model import Model
from orrery.nn.attention.multihead import MultiHeadAttention
from orrery.nn.attention.operands import KeysValues
from orrery.nn.attention.sources import CrossSource, SelfSource, Source, SourceReading
from orrery.nn.cache.contract import Pair
from orrery.nn.context import Context
from orrery.nn.masks import BoundMask
from orrery.nn.stack import Stack
from orrery.tuning._adapter import Adapter
from orrery.tuning._registry import register


class PrefixedSource(Source):
    """``softmax(q [P_k; K]^T) [P_v; V]``: self-attention that finds learned keys before those of the tokens.

    ``prefix_k`` and ``prefix_v`` ``[P, K C]`` are met as they are, neither normed nor rotated, and are seen by every
    token through every mask, a window too. The cache holds the tokens alone. Li and Liang 2021, section 4.1.
    Shapes: x ``[B, L, D]`` to itself.
    """

    no_decay: ClassVar[tuple[str, ...]] = ("prefix_k", "prefix_v")

    def __init__(self, attention: MultiHeadAttention, tokens: int, rng: torch.Generator) -> None:
        super().__init__()
        self.values, self.head_width = attention.source.values, attention.head_width
        like = next(p for p in attention.parameters() if p.is_floating_point())
        self.prefix_k, self.prefix_v = (
            nn.Parameter(like.new_empty(tokens, attention.k.out_features)) for _ in range(2)
        )
        for parameter in (self.prefix_k, self.prefix_v):
            if not parameter.is_meta:
                parameter.data.copy_(0.02 * torch.randn(parameter.shape, generator=rng))

    def read(self, x_BLD: Float[Tensor, "B L D"], ctx: Context, mask: str) -> SourceReading:
        """Return the tokens themselves; the learned keys and values come before all others."""
        layer = ctx.layer
        assert layer is not None

        def keep(project: Callable[[], Pair]) -> KeysValues:
            kept = layer.extend(mask, *project())
            pairs = ((self.prefix_k, kept.k_BKSC), (self.prefix_v, kept.v_BKSE))
            return KeysValues(*(torch.cat([self._rows(own, there), there], dim=2) for own, there in pairs))

        return SourceReading(x_BLD, self._shown(ctx.masks[mask], x_BLD), keep)

    def _rows(self, own_PE: Float[Tensor, "P E"], there_BKSC: Float[Tensor, "B K S C"]) -> Float[Tensor, "B K P C"]:
        """Return learned keys or values for every row of a batch."""
        own_KPC = own_PE.unflatten(1, (-1, self.head_width)).transpose(0, 1)
        return own_KPC.to(there_BKSC.dtype).expand(len(there_BKSC), -1, -1, -1)

    def _shown(self, mask: BoundMask, x_BLD: Float[Tensor, "B L D"]) -> BoundMask:
        """Return a mask that shows the learned keys as well."""
        if mask.dense is None and not mask.is_causal:
            return mask  # all keys are seen, however many there are
        length = x_BLD.shape[1]
        dense = mask.matrix(length, length, x_BLD.device)
        shown = dense.new_ones(*dense.shape[:3], len(self.prefix_k))
        return BoundMask(dense=torch.cat([shown, dense], dim=3), is_causal=False)


@register
@dataclass(frozen=True, kw_only=True)
class Prefix(Adapter):
    """Learned keys and values before every self-attention's own; all else is frozen but what ``learn`` names.

    The tokens of a text stand behind it: their positions begin at ``tokens``, as in peft, so that a model with a table
    of positions reads texts shorter by as much.

    Attributes:
        tokens: how many keys and values each attention has of its own.
        learn: patterns of parameters of the model that learn too, as a new head must.
    """

    kind: ClassVar[str] = "prefix"
    merges: ClassVar[bool] = False
    tokens: int = 16
    learn: tuple[str, ...] = ()

    def add(self, model: Model, seed: int) -> None:
        """Give every self-attention of every stack a prefix.

        Raises:
            UsageError: the model has no stack of multi-head attentions, or has a prefix.
        """
        rng = torch.Generator().manual_seed(seed)
        stacks = {name: part for name, part in model.named_modules() if isinstance(part, Stack)}
        attentions = [attention for name, stack in stacks.items() for attention in _attentions(name, stack)]
        if not attentions:
            raise UsageError("the model has no stack with attention, so nothing reads a prefix", "take another adapter")
        for attention in attentions:
            attention.source = PrefixedSource(attention, self.tokens, rng).train(attention.training)
        for stack in stacks.values():
            stack.learned_places = self.tokens


def _attentions(name: str, stack: Stack) -> list[MultiHeadAttention]:
    """Return the self-attentions of a stack, which must all be ones that can have a prefix."""
    if stack.learned_places:
        raise UsageError(f"{name} has a prefix already", "apply the transform once")
    attentions = []
    for path, part in stack.named_modules():
        if isinstance(part, MultiHeadAttention) and isinstance(part.source, SelfSource):
            attentions.append(part)
        elif hasattr(part, "mask") and isinstance(part.mask, str) and not _reads_elsewhere(part):
            message = f"{name}.{path} is a {type(part).__name__}, which no prefix of keys and values fits"
            raise UsageError(message, "take another adapter: LoRA, Bottleneck")
    return attentions


def _reads_elsewhere(part: nn.Module) -> bool:
    return isinstance(getattr(part, "source", None), CrossSource)
