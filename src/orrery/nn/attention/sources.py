"""What an attention reads: its own tokens or the encoder's output; and who keeps the keys and values of it."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import ClassVar, NamedTuple

from jaxtyping import Float
from torch import Tensor, nn

from orrery.nn.attention.operands import KeysValues
from orrery.nn.cache.contract import Pair
from orrery.nn.context import Context
from orrery.nn.masks import BoundMask
from orrery.nn.parting import Grain
from orrery.nn.residual import Identity
from orrery.nn.spec import ModuleSpec, spec


class SourceReading(NamedTuple):
    """What one call of an attention reads.

    Attributes:
        stream_BSD: what keys and values are made of.
        mask: which of it each query may see.
        keep: from a projection of the stream to all keys and values that the mask may show, those kept among them.
    """

    stream_BSD: Float[Tensor, "B S D"]
    mask: BoundMask
    keep: Callable[[Callable[[], Pair]], KeysValues]


class Source(nn.Module, ABC):
    """What is read; ``values`` is applied to the values, all heads in a row. Shapes: x ``[B, L, D]``."""

    values: nn.Module

    @abstractmethod
    def read(self, x_BLD: Float[Tensor, "B L D"], ctx: Context, mask: str) -> SourceReading:
        """Return what the queries of ``x`` read under the mask of this name."""


class SelfSource(Source):
    """Self-attention: the same tokens, whose keys and values are appended to this layer's cache.

    Shapes: x ``[B, L, D]`` to itself.
    """

    parting: ClassVar = Grain.NUMBER

    @spec
    class Spec(ModuleSpec):
        """``values`` is applied to the values, all heads in a row, as ``qk_norm`` is to queries and keys."""

        values: ModuleSpec = Identity.Spec()

        def build(self, width: int) -> "SelfSource":
            """Return the source of keys and values of ``width`` channels."""
            return SelfSource(self, width)

    def __init__(self, spec: Spec, width: int) -> None:
        super().__init__()
        self.values = spec.values.build(width)

    def read(self, x_BLD: Float[Tensor, "B L D"], ctx: Context, mask: str) -> SourceReading:
        """Return the tokens themselves; their keys and values come after those of earlier calls."""
        layer = ctx.layer
        assert layer is not None
        return SourceReading(x_BLD, ctx.masks[mask], lambda project: layer.extend(mask, *project()))


class CrossSource(Source):
    """Cross-attention: the encoder's output, whose keys and values are made once a session (Vaswani et al. 3.2.3).

    Shapes: x ``[B, L, D]`` to the encoder states ``[B, S, M]``.
    """

    parting: ClassVar = Grain.NUMBER

    @spec
    class Spec(ModuleSpec):
        """How wide the encoder's output is, where it is not as wide as what looks at it (TrOCR)."""

        width: int | None = None

        def build(self, width: int) -> "CrossSource":
            """Return the source; it has no parameters."""
            return CrossSource()

    def __init__(self) -> None:
        super().__init__()
        self.values = Identity()

    def read(self, x_BLD: Float[Tensor, "B L D"], ctx: Context, mask: str) -> SourceReading:
        """Return the encoder's output."""
        assert ctx.layer is not None
        assert ctx.encoder_states is not None
        assert ctx.encoder_mask is not None
        return SourceReading(ctx.encoder_states, ctx.encoder_mask, ctx.layer.cross_attention_keys)
