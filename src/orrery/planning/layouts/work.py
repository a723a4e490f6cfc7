"""What a model is to those who spread it over devices: its sizes, and the weights of one layer."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from orrery.errors import UsageError
from orrery.models.model import ModelSpec
from orrery.nn.feedforward.gated import GatedMLP
from orrery.nn.feedforward.mlp import MLP
from orrery.nn.feedforward.moe import MoE
from orrery.nn.spec import traverse
from orrery.planning.parameters import counts
from orrery.planning.windows import windowed


@dataclass(frozen=True)
class DecoderWork:
    """A decoder of equal layers.

    Attributes:
        name: what tables call it.
        parameters: all of them, each storage once.
        active: those that one token meets.
        layers: how many blocks.
        width: of the residual stream.
        heads: of queries.
        kv_heads: of keys and values.
        head_width: channels of a head.
        hidden: channels of the feed-forward network, or of one expert.
        vocabulary: rows of the table of tokens.
        length: tokens of a sequence.
        experts: of a layer; 1 is a plain feed-forward network.
        chosen: experts that one token meets.
        ups: matrices into the hidden channels: 1, or 2 with a gate.
        branches: that a block adds one after the other: 2, or 1 where attention and feed-forward are parallel.
        tied: whether the head is the table of tokens.
        windows: of those layers that look through one, how many keys a query sees at most.
    """

    name: str
    parameters: int
    active: int
    layers: int
    width: int
    heads: int
    kv_heads: int
    head_width: int
    hidden: int
    vocabulary: int
    length: int
    experts: int = 1
    chosen: int = 1
    ups: int = 1
    branches: int = 2
    tied: bool = True
    windows: tuple[int, ...] = ()

    @property
    def table(self) -> int:
        """The parameters of the table of tokens."""
        return self.vocabulary * self.width

    @property
    def block(self) -> int | float:
        """The parameters of one layer; what stands outside of them (positions, a last norm) is spread over all."""
        tables = self.table * (1 if self.tied else 2)
        return (self.parameters - tables) / self.layers

    @property
    def block_experts(self) -> int | float:
        """The parameters of all experts of one layer; none where there is one."""
        if self.experts == self.chosen:
            return 0.0
        return (self.parameters - self.active) / self.layers * self.experts / (self.experts - self.chosen)

    @property
    def block_active(self) -> int | float:
        """The parameters of one layer that a token meets."""
        return self.block - (self.parameters - self.active) / self.layers

    @property
    def cached(self) -> int:
        """The numbers that a token leaves in the cache of one layer: its keys and values."""
        return 2 * self.kv_heads * self.head_width

    def operations(self, length: int, counted: int | float = 1.0) -> int | float:
        """Return the operations of a trained token: ``6 N + 12 layers heads head_width length``.

        Chowdhery et al. 2022, appendix B. N is what a token is multiplied by: the active parameters, without a table
        that is only looked up.

        Args:
            length: tokens of a sequence.
            counted: the share of all keys that is counted: 1, or a half for those that a causal mask shows.
        """
        multiplied = self.active - (0 if self.tied else self.table)
        return 6 * multiplied + 12 * self.layers * self.heads * self.head_width * self.keys(length, counted)

    def keys(self, length: int, counted: int | float = 1.0) -> int | float:
        """Return the keys that are counted for a query, the mean over the layers: ``w - (1 - counted) w^2 / length``.

        ``w`` is the window, or the length where a layer has none or it is shorter: then this is ``counted length``.
        """
        seen = [min(window, length) for window in self.windows]
        outside = (self.layers - len(seen)) * length * counted
        return (outside + sum(w - (1 - counted) * w * w / length for w in seen)) / self.layers


def work_of(spec: ModelSpec, name: str) -> DecoderWork:
    """Return the work of an architecture.

    Raises:
        UsageError: it is no decoder of text, or its layers have no heads or no feed-forward network of a known kind.
    """
    vocabulary = spec.vocabulary
    if not spec.writes or spec.reads_source or vocabulary is None:
        hint = "give a decoder that writes text, such as gpt3-175b or a llama"
        raise UsageError(f"{name} has no parallel layouts here: they are for models that read and write one text", hint)
    stack = spec.answering
    block = stack.blocks[-1]
    attention, feed_forward = _attention(block.residuals, name), _feed_forward(block.residuals, name)
    counted = counts(spec)
    mixture = feed_forward if isinstance(feed_forward, MoE.Spec) else None
    inner: Any = mixture.expert if mixture else feed_forward
    return DecoderWork(
        name=name,
        parameters=counted.trained + counted.fixed,
        active=counted.active,
        layers=len(stack.blocks),
        width=spec.width,
        heads=attention.heads,
        kv_heads=getattr(attention, "kv_heads", attention.heads),
        head_width=attention.head_width,
        hidden=inner.hidden,
        vocabulary=vocabulary,
        length=spec.context,
        experts=mixture.router.experts if mixture else 1,
        chosen=mixture.router.choice.chosen if mixture else 1,
        ups=2 if isinstance(inner, GatedMLP.Spec) else 1,
        branches=len(block.residuals),
        tied=bool(getattr(getattr(spec, "head", None), "tied", False)),
        windows=tuple(layer.keys for layer in windowed(spec)),
    )


def _attention(residuals: Any, name: str) -> Any:
    """Return the attention of a block."""
    for part in _parts(residuals):
        if hasattr(part, "heads") and hasattr(part, "head_width"):
            return part
    hint = "tensor and context parallelism cut heads and their keys: give a model of multi-head attention"
    raise UsageError(f"{name} has a layer without heads of a width", hint)


def _feed_forward(residuals: Any, name: str) -> Any:
    """Return the feed-forward network of a block, a mixture before its expert."""
    for part in _parts(residuals):
        inner = part.expert if isinstance(part, MoE.Spec) else part
        if isinstance(inner, MLP.Spec | GatedMLP.Spec):
            return part
    hint = "its activations are counted for a plain or gated network, or a mixture of such experts"
    raise UsageError(f"{name} has a layer without a feed-forward network of a known kind", hint)


def _parts(residuals: Any) -> Iterator[Any]:
    return (part for _, part in traverse(residuals))
