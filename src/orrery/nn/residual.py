"""The algebra of blocks: Residual, Sum, Normed and Gated. Every sublayer of every Transformer is made of these."""

from collections.abc import Mapping
from typing import ClassVar

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from orrery.nn.context import Context
from orrery.nn.parting import Grain
from orrery.nn.several_depths import BesideEntry, BranchChain, BranchInput, ByTurn
from orrery.nn.spec import ModuleSpec, spec


class Identity(nn.Module):
    """``x``: an empty slot. Shapes: unchanged."""

    parting: ClassVar = Grain.NUMBER

    @spec
    class Spec(ModuleSpec):
        """It has no settings."""

        def build(self, width: int) -> "Identity":
            """Return the empty slot."""
            return Identity()

    def forward(self, x: Tensor) -> Tensor:
        """Return ``x``."""
        return x


class NoSkip(nn.Module):
    """``0``: no residual connection, so that the branch alone goes on. Shapes: unchanged.

    Differs from ``Scale`` by zero, which makes NaN of what is not finite.
    """

    parting: ClassVar = Grain.NUMBER

    @spec
    class Spec(ModuleSpec):
        """It has no settings."""

        def build(self, width: int) -> "NoSkip":
            """Return the missing connection."""
            return NoSkip()

    def forward(self, x: Tensor) -> Tensor:
        """Return zeros."""
        return torch.zeros_like(x)


class Scale(nn.Module):
    """``factor * x``: DeepNorm's skip, Granite's residual multiplier, Gemma's embedding scale. Shapes: unchanged."""

    parting: ClassVar = Grain.NUMBER

    @spec
    class Spec(ModuleSpec):
        """The factor."""

        factor: float

        def build(self, width: int) -> "Scale":
            """Return the scale."""
            return Scale(self.factor)

    def __init__(self, factor: float) -> None:
        super().__init__()
        self.factor = factor

    def forward(self, x: Tensor) -> Tensor:
        """Return ``factor * x``."""
        return self.factor * x


def random_bits(x: Tensor) -> Int[Tensor, "N"]:
    """Return 16 random bits for each number of ``x`` from the generator of its device, four a draw; N >= the numbers.

    It takes ``x`` so that one draw comes after the other in a compiled graph too.
    """
    draws = torch.empty(x.numel() // 4 + 1, dtype=torch.long, device=x.device).random_(-(2**63), None)
    return draws.view(torch.int16)


class Dropout(nn.Module):
    """``x * keep / (1 - rate)`` in training, ``x`` otherwise; each ``keep`` is 0 with probability ``rate``.

    Srivastava et al. 2014, scaled in training as is usual now. Differs from torch: a mask element takes 16 random bits,
    four elements a draw, so that the rate is rounded to 1/65,536 and a processor, which draws one number after the
    other, is done in less than half the time. Shapes: unchanged.
    """

    parting: ClassVar = Grain.NUMBER

    @spec
    class Spec(ModuleSpec):
        """The share of channels that is zeroed in training."""

        rate: float

        def build(self, width: int) -> nn.Module:
            """Return the dropout, or nothing at rate zero."""
            return Dropout(self.rate) if self.rate else Identity()

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.rate = rate
        self.threshold = round(rate * 2**16) - 2**15

    def forward(self, x: Tensor) -> Tensor:
        """Zero some channels and scale up the rest."""
        if not self.training:
            return x
        keep = random_bits(x)[: x.numel()].view(x.shape) >= self.threshold
        return x * keep.to(x.dtype).div_(1 - self.rate)


class Chain(nn.Module):
    """``g(f(x))``: several slots one after the other. Shapes: ``[B, L, D]`` to ``[B, L, D]``."""

    @spec
    class Spec(ModuleSpec):
        """The parts in order."""

        parts: tuple[ModuleSpec, ...]

        def build(self, width: int) -> nn.Module:
            """Return the parts as a sequence."""
            modules = []
            for part in self.parts:
                modules.append(part.build(width))
                width = part.out_width(width)
            return nn.Sequential(*modules)

        def out_width(self, width: int) -> int:
            """Return the channels after the last part."""
            for part in self.parts:
                width = part.out_width(width)
            return width


class Residual(nn.Module):
    """``out(skip(x) + dropout(post(branch(pre(x)))))``: the one line of every Transformer sublayer.

    Post-LN (Vaswani et al. 2017) fills ``out``; pre-LN (Xiong et al. 2020) fills ``pre``; the sandwich (Gemma 2)
    fills ``pre`` and ``post``; OLMo 2 fills ``post``; DeepNorm scales ``skip``. Shapes: ``[B, L, D]`` unchanged.
    """

    parting: ClassVar = Grain.TOKEN
    role: str = ""

    @spec
    class Spec(ModuleSpec):
        """A branch and four slots; an empty slot is the identity."""

        branch: ModuleSpec
        pre: ModuleSpec = Identity.Spec()
        post: ModuleSpec = Identity.Spec()
        out: ModuleSpec = Identity.Spec()
        skip: ModuleSpec = Identity.Spec()
        dropout: float = 0.0

        def build(self, width: int) -> "Residual":
            """Return the sublayer."""
            return Residual(self, width)

    def __init__(self, spec: Spec, width: int) -> None:
        super().__init__()
        self.width = width
        self.pre, self.branch, self.post = (part.build(width) for part in (spec.pre, spec.branch, spec.post))
        self.skip, self.out = spec.skip.build(width), spec.out.build(width)
        self.dropout = Dropout.Spec(rate=spec.dropout).build(width)

    def forward(self, x_BLD: Float[Tensor, "B L D"], ctx: Context) -> Float[Tensor, "B L D"]:
        """Add what the branch makes of ``x`` to the stream."""
        added_BLD = self.dropout(self.post(self.branch(self.pre(x_BLD), ctx)))
        added_BLD = ctx.tap(self, "added", added_BLD)
        return ctx.tap(self, "resid", self.out(self.skip(x_BLD) + added_BLD))


class Sum(nn.Module):
    """``a(x) + b(x) + ...``, from left to right: parallel branches (GPT-J, PaLM). Shapes: ``[B, L, D]`` unchanged.

    The order counts: floating-point addition is not associative.
    """

    parting: ClassVar = Grain.TOKEN

    @spec
    class Spec(ModuleSpec):
        """The branches by role, in the order of addition."""

        branches: Mapping[str, ModuleSpec]

        def build(self, width: int) -> "Sum":
            """Return the sum."""
            return Sum(self, width)

    def __init__(self, spec: Spec, width: int) -> None:
        super().__init__()
        for role, branch in spec.branches.items():
            self.add_module(role, branch.build(width))

    def forward(self, x_BLD: Float[Tensor, "B L D"], ctx: Context) -> Float[Tensor, "B L D"]:
        """Add up the branches."""
        first, *others = self.children()
        total_BLD = first(x_BLD, ctx)
        for branch in others:
            total_BLD = total_BLD + branch(x_BLD, ctx)
        return total_BLD


class Normed(nn.Module):
    """``post(branch(norm(x)))``: a branch with a norm of its own (GPT-NeoX), or multipliers (Falcon-H1).

    Shapes: ``[B, L, D]`` to as many channels as the last part writes, nearly always ``D``.
    """

    parting: ClassVar = Grain.TOKEN

    @spec
    class Spec(ModuleSpec):
        """The norm, the branch and what stands behind it; an empty slot is the identity."""

        norm: ModuleSpec
        branch: ModuleSpec
        post: ModuleSpec = Identity.Spec()

        def build(self, width: int) -> "Normed":
            """Return the normed branch."""
            return Normed(self, width)

        def out_width(self, width: int) -> int:
            """Return the channels that come out behind the branch."""
            return self.post.out_width(self.branch.out_width(self.norm.out_width(width)))

    def __init__(self, spec: Spec, width: int) -> None:
        super().__init__()
        self.norm = spec.norm.build(width)
        inner = spec.norm.out_width(width)
        self.branch, self.post = spec.branch.build(inner), spec.post.build(spec.branch.out_width(inner))

    def forward(self, x_BLD: Float[Tensor, "B L D"], ctx: Context) -> Float[Tensor, "B L E"]:
        """Normalise, then branch."""
        return self.post(self.branch(self.norm(x_BLD), ctx))


class Gated(nn.Module):
    """``sigmoid(w x) * branch(x)``: a branch that each token turns up or down (Qwen 2 MoE's shared expert).

    Shapes: ``[B, L, D]`` unchanged.
    """

    parting: ClassVar = Grain.TOKEN

    @spec
    class Spec(ModuleSpec):
        """The branch."""

        branch: ModuleSpec

        def build(self, width: int) -> "Gated":
            """Return the branch and its gate."""
            return Gated(self, width)

    def __init__(self, spec: Spec, width: int) -> None:
        super().__init__()
        self.gate = nn.Linear(width, 1, bias=False)
        self.branch = spec.branch.build(width)

    def forward(self, x_BLD: Float[Tensor, "B L D"], ctx: Context) -> Float[Tensor, "B L D"]:
        """Weigh what the branch makes of ``x``."""
        return torch.sigmoid(self.gate(x_BLD)) * self.branch(x_BLD, ctx)


def give_role(module: nn.Module, role: str) -> None:
    """Name a branch for the taps: a leaf takes its residual's name, the parts of a sum their own."""
    module.role = role  # type: ignore[assignment]
    if isinstance(module, Sum | BranchChain):
        for name, branch in module.named_children():
            give_role(branch, name)
    elif isinstance(module, Residual | Normed | Gated | BesideEntry | BranchInput):
        give_role(module.branch, role)
    elif isinstance(module, ByTurn):
        for branch in module.turns:
            give_role(branch, role)
