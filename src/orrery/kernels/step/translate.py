"""From a finished stack to the instructions of its step: one rule for each brick; what has none is refused by name."""

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from orrery.kernels.step import instructions as code
from orrery.kernels.step.codes import (
    ACTIVATIONS,
    CLAMP,
    CLAMP_ABOVE,
    SCALED,
    SCALED_SIGMOID,
    SCALED_SUM,
    SOFT_CAP,
    TIMES,
)
from orrery.kernels.step.listing import (
    BLOCK_MODULES,
    Listing,
    NotRunnableError,
    WorkspaceSlice,
    block_row,
    kind_of,
    padded,
)
from orrery.nn.activations import ACTIVATIONS as DEFINITIONS
from orrery.nn.attention.multihead import MultiHeadAttention, NoGate, NoSinks
from orrery.nn.attention.sources import SelfSource
from orrery.nn.block import Block
from orrery.nn.elementwise import Activation, Clamp, FixedBias, Projection, SoftCap
from orrery.nn.embeddings import TokenEmbedding
from orrery.nn.feedforward.clamped import ClampedGatedMLP
from orrery.nn.feedforward.gated import GatedMLP
from orrery.nn.feedforward.mlp import MLP
from orrery.nn.heads import LanguageModelHead
from orrery.nn.masks import Both, Causal, Full, Mask, Window
from orrery.nn.norms import HeadNorm, LayerNorm, PerHeadNorm, PlainRMSNorm, RMSNorm
from orrery.nn.positions.alibi import Alibi, RoundedAlibi
from orrery.nn.positions.learned import LearnedPositions
from orrery.nn.positions.relative import RelativeBias
from orrery.nn.positions.rotary import Rotary
from orrery.nn.positions.sinusoidal import SinusoidalPositions
from orrery.nn.positions.sinusoidal_table import SinusoidalTable
from orrery.nn.residual import Dropout, Gated, Identity, Normed, NoSkip, Residual, Scale, Sum
from orrery.nn.stack import Stack

ADDED = (LearnedPositions, SinusoidalPositions, SinusoidalTable)
BIASED = (Alibi, RoundedAlibi, RelativeBias)
_NAMES = {function: name for name, function in DEFINITIONS.items()}

Rule = Callable[["ListingTranslation", Any, WorkspaceSlice], WorkspaceSlice]


class ListingTranslation:
    """The writing of one listing.

    Args:
        stack: whose blocks are run.
        embed: the table of the tokens.
        head: what makes logits of the final stream.

    Raises:
        NotRunnableError: a part has no rule.
    """

    def __init__(self, stack: Stack, embed: nn.Module, head: nn.Module) -> None:
        self.listing, self.stack, self.depth = Listing(), stack, 0
        if type(embed) is not TokenEmbedding:
            raise NotRunnableError(f"an embedding of the kind {type(embed).__name__}")
        if type(head) is not LanguageModelHead:
            raise NotRunnableError(f"a head of the kind {type(head).__name__}")
        if stack.learned_places:
            raise NotRunnableError("a tuned prefix")
        self.listing.schemes = list(stack.positions)
        for name, scheme in stack.positions.items():
            if type(scheme) not in (Rotary, *ADDED, *BIASED):
                raise NotRunnableError(f"positions {name!r} of the kind {type(scheme).__name__}")
        self.windows = {name: window_of(name, mask) for name, mask in stack.masks.items()}
        x = self._entered(embed.token)
        for self.depth, number in enumerate(stack.order):
            block = stack.blocks[number]
            if type(block) is not Block:
                raise NotRunnableError(f"a block of the kind {type(block).__name__}")
            for residual in block.children():
                _residual(self, residual, x)
        x = self.part(head.transform, self.part(stack.final, x))
        (x,) = self.listing.products(x, [head.vocabulary])
        self.logits = self.part(head.cap, x)

    def _entered(self, table: nn.Embedding) -> WorkspaceSlice:
        """Look the tokens up and bring them to the first block."""
        weight = table.weight.detach()
        x = self.listing.stream(table.embedding_dim)
        self.listing.alive.append(weight)
        if type(table) in BLOCK_MODULES:
            kind_of(table.get_buffer("floats"), "a stream")  # which keys and values are kept in too
            kind, many = block_row(table)
            self.listing.add(code.EMBED_BLOCKS, None, None, x, kind, many, weight.data_ptr(), weight.stride(0))
        else:
            kind = kind_of(weight, "the embeddings")
            self.listing.add(code.EMBED, None, None, x, kind, x.width, weight.data_ptr())
        x = self.part(self.stack.enter, x)
        for number, scheme in enumerate(self.stack.positions.values()):
            if isinstance(scheme, ADDED):
                self.listing.add(code.GIVEN, x, None, x, SCALED_SUM, x.width, 0, 0, number)
        return self.part(self.stack.start, x)

    def part(self, module: nn.Module, x: WorkspaceSlice) -> WorkspaceSlice:
        """Write what a module makes of each token; the stream that it gets may be overwritten only by its owner."""
        if type(module) not in PARTS:
            raise NotRunnableError(f"a {type(module).__name__}")
        return PARTS[type(module)](self, module, x)

    def branch(self, module: nn.Module, x: WorkspaceSlice) -> WorkspaceSlice:
        """Write what a module of a block makes of the stream."""
        if type(module) not in BRANCHES:
            raise NotRunnableError(f"a {type(module).__name__}")
        return BRANCHES[type(module)](self, module, x)

    def activation(self, function: Any) -> int:
        """Return the number of an activation."""
        name = _NAMES.get(function)
        if name not in ACTIVATIONS:
            raise NotRunnableError(f"the activation {name}")
        return ACTIVATIONS.index(name)


def window_of(name: str, mask: Mask) -> int | None:
    """Return how many tokens back a mask shows, or nothing where it shows all.

    Raises:
        NotRunnableError: it is more than that.
    """
    if isinstance(mask, Both):
        windows = [window_of(name, rule) for rule in (mask.first, mask.second)]
        return min((window for window in windows if window is not None), default=None)
    if isinstance(mask, Window):
        return mask.length
    if not isinstance(mask, Causal | Full):
        raise NotRunnableError(f"the mask {name!r} of the kind {type(mask).__name__}")
    return None


def _norm(
    t: ListingTranslation, x: WorkspaceSlice, module: Any, groups: int, gain: Any, bias: Any, *, centred: bool
) -> WorkspaceSlice:
    """Write a norm of ``groups`` groups of channels; a gain or bias of one group serves all."""
    width = x.width // groups
    own = 1 if gain is None or gain.numel() == width else groups
    ones = torch.ones(own, width) if gain is None else gain
    zeros = torch.zeros(own, width) if bias is None else bias
    out = t.listing.stream(x.width)  # the newest stream: what is written behind its end stands nowhere else yet
    step = 4 * padded(width) if own > 1 else 0
    numbers = (int(centred), width, t.listing.numbers(ones, own), t.listing.numbers(zeros, own), step)
    t.listing.add(code.NORM, x, WorkspaceSlice(groups, 0), out, *numbers, reals=[module.eps])
    return out


def _gain(module: RMSNorm | LayerNorm) -> torch.Tensor | None:
    return None if module.weight is None else module.weight.detach().float() + module.offset


def _head_norm(t: ListingTranslation, module: HeadNorm, x: WorkspaceSlice) -> WorkspaceSlice:
    inner, groups = module.norm, x.width // module.head_width
    if type(inner) is RMSNorm:
        return _norm(t, x, inner, groups, _gain(inner), None, centred=False)
    if type(inner) is PlainRMSNorm:
        return _norm(t, x, inner, groups, None, None, centred=False)
    if type(inner) is LayerNorm:
        return _norm(t, x, inner, groups, _gain(inner), inner.bias, centred=True)
    raise NotRunnableError(f"a {type(inner).__name__} of each head")


def _per_head_norm(t: ListingTranslation, module: PerHeadNorm, x: WorkspaceSlice) -> WorkspaceSlice:
    gains = torch.cat([gain.detach() for gain in module.gains])
    return _norm(t, x, module, len(module.gains), gains, None, centred=True)


def _sequence(t: ListingTranslation, module: nn.Sequential, x: WorkspaceSlice) -> WorkspaceSlice:
    for part in module:
        x = t.part(part, x)
    return x


def _simple(number: int, parameter: Callable[[Any], float]) -> Rule:
    """Return the rule of an elementwise function; the result is a stream of its own."""
    return lambda t, module, x: t.listing.elementwise(number, x, None, t.listing.stream(x.width), parameter(module))


def _fixed_bias(t: ListingTranslation, module: FixedBias, x: WorkspaceSlice) -> WorkspaceSlice:
    out = t.listing.stream(x.width)
    address = t.listing.numbers(module.shift)
    t.listing.add(code.ELEMENTWISE, x, None, out, SCALED_SUM, x.width, address, reals=[1.0])
    return out


PARTS: dict[type, Rule] = {
    Identity: lambda t, module, x: x,
    Dropout: lambda t, module, x: x,
    nn.Sequential: _sequence,
    nn.Linear: lambda t, module, x: t.listing.products(x, [module])[0],
    Projection: lambda t, module, x: t.listing.products(x, [module.linear])[0],
    Scale: _simple(SCALED, lambda module: module.factor),
    SoftCap: _simple(SOFT_CAP, lambda module: module.cap),
    Clamp: _simple(CLAMP, lambda module: module.bound),
    FixedBias: _fixed_bias,
    Activation: lambda t, m, x: t.listing.elementwise(t.activation(m.activation), x, None, t.listing.stream(x.width)),
    LayerNorm: lambda t, m, x: _norm(t, x, m, 1, _gain(m), m.bias, centred=True),
    RMSNorm: lambda t, m, x: _norm(t, x, m, 1, _gain(m), None, centred=False),
    PlainRMSNorm: lambda t, m, x: _norm(t, x, m, 1, None, None, centred=False),
    HeadNorm: _head_norm,
    PerHeadNorm: _per_head_norm,
}
"""The rules of what sees each token alone."""


def _residual(t: ListingTranslation, module: nn.Module, x: WorkspaceSlice) -> None:
    """Write a residual, which changes the stream in place."""
    if type(module) is not Residual:
        raise NotRunnableError(f"a {type(module).__name__} in a block")
    before = t.listing.used
    added = t.part(module.post, t.branch(module.branch, t.part(module.pre, x)))
    if type(module.skip) is NoSkip:
        factor = 0.0
    elif type(module.skip) in (Identity, Scale):
        factor = getattr(module.skip, "factor", 1.0)
    else:
        raise NotRunnableError(f"a {type(module.skip).__name__} as a residual connection")
    if factor == 0.0:
        t.listing.elementwise(SCALED, added, None, x, 1.0)
    else:
        t.listing.elementwise(SCALED_SUM, x, added, x, factor)
    out = t.part(module.out, x)
    if out != x:
        t.listing.elementwise(SCALED, out, None, x, 1.0)
    t.listing.used = before


def _sum(t: ListingTranslation, module: Sum, x: WorkspaceSlice) -> WorkspaceSlice:
    first, *others = (t.branch(branch, x) for branch in module.children())
    for other in others:
        t.listing.elementwise(SCALED_SUM, first, other, first, 1.0)
    return first


def _gated(t: ListingTranslation, module: Gated, x: WorkspaceSlice) -> WorkspaceSlice:
    raise NotRunnableError("a gated branch")


def _attention(t: ListingTranslation, module: MultiHeadAttention, x: WorkspaceSlice) -> WorkspaceSlice:
    listing, width = t.listing, module.head_width
    if type(module.source) is not SelfSource:
        raise NotRunnableError(f"an attention that reads a {type(module.source).__name__}")
    if type(module.gate) is not NoGate:
        raise NotRunnableError("an attention with a gate")
    q, k, v = listing.products(x, [module.q, module.k, module.v])
    q, k, v = t.part(module.q_norm, q), t.part(module.k_norm, k), t.part(module.source.values, v)
    heads, kv_heads = q.width // width, k.width // width
    bias = -1
    if module.position != "none":
        number = listing.schemes.index(module.position)
        scheme = t.stack.positions[module.position]
        if isinstance(scheme, Rotary):
            apart = scheme.width // 2 if scheme.rotate_pairs.__name__ == "_rotate_halves" else 1
            for stream, many in ((q, heads), (k, kv_heads)):
                listing.add(code.ROTATE, stream, None, None, many, width, scheme.width, apart, number)
        elif isinstance(scheme, BIASED):
            bias = number
            if t.windows[module.mask] is not None:
                raise NotRunnableError("a bias of the scores under a window")
    listing.depths[t.depth] = (module.mask, kv_heads, width)
    listing.heads = max(listing.heads, heads)
    listing.add(code.STORE, k, v, None, t.depth, kv_heads, width)
    mixed = listing.stream(heads * width)
    sinks = 0 if isinstance(module.sinks, NoSinks) else listing.numbers(module.sinks.get_parameter("weight"))
    reals = [module.scale, module.cap or 0.0]
    listing.add(code.ATTEND, q, WorkspaceSlice(width, 0), mixed, t.depth, heads, kv_heads, bias, sinks, reals=reals)
    return listing.products(mixed, [module.out])[0]


def _mlp(t: ListingTranslation, module: MLP, x: WorkspaceSlice) -> WorkspaceSlice:
    (hidden,) = t.listing.products(x, [module.up])
    t.listing.elementwise(t.activation(module.activation), hidden)
    return t.listing.products(hidden, [module.down])[0]


def _gated_mlp(t: ListingTranslation, module: GatedMLP, x: WorkspaceSlice) -> WorkspaceSlice:
    gate, up = t.listing.products(x, [module.gate, module.up])
    gate = t.part(module.before, gate)
    t.listing.elementwise(TIMES + t.activation(module.activation), gate, up)
    return t.listing.products(gate, [module.down])[0]


def _clamped(t: ListingTranslation, module: ClampedGatedMLP, x: WorkspaceSlice) -> WorkspaceSlice:
    gate, up = t.listing.products(x, [module.gate, module.up])
    t.listing.elementwise(CLAMP_ABOVE, gate, p=module.limit)
    t.listing.elementwise(CLAMP, up, p=module.limit)
    t.listing.elementwise(SCALED_SIGMOID, gate, p=module.slope)
    # g (u + 1) = g u + g
    t.listing.elementwise(TIMES, up, gate)
    t.listing.elementwise(SCALED_SUM, gate, up, gate, 1.0)
    return t.listing.products(gate, [module.down])[0]


BRANCHES: dict[type, Rule] = {
    Sum: _sum,
    Normed: lambda t, module, x: t.part(module.post, t.branch(module.branch, t.part(module.norm, x))),
    Gated: _gated,
    MultiHeadAttention: _attention,
    MLP: _mlp,
    GatedMLP: _gated_mlp,
    ClampedGatedMLP: _clamped,
}
"""The rules of what stands in blocks."""
