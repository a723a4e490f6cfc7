"""What a block needs that stands at several depths with some parameters of each, and reads the embeddings (Zamba)."""

from collections.abc import Mapping

import torch
from jaxtyping import Float
from torch import Tensor, nn

from orrery.errors import UsageError
from orrery.nn.context import Context
from orrery.nn.spec import ModuleSpec, spec


class BranchChain(nn.Module):
    """``c(b(a(x)))``: branches one after the other without additions between them. Shapes: ``[B, L, D]`` to the last's.

    It is ``Chain`` for parts that read the context.
    """

    @spec
    class Spec(ModuleSpec):
        """The branches by role, in order."""

        branches: Mapping[str, ModuleSpec]

        def build(self, width: int) -> "BranchChain":
            """Return the chain."""
            return BranchChain(self, width)

        def out_width(self, width: int) -> int:
            """Return the channels after the last branch."""
            for branch in self.branches.values():
                width = branch.out_width(width)
            return width

    def __init__(self, spec: Spec, width: int) -> None:
        super().__init__()
        for role, branch in spec.branches.items():
            self.add_module(role, branch.build(width))
            width = branch.out_width(width)

    def forward(self, x_BLD: Float[Tensor, "B L D"], ctx: Context) -> Float[Tensor, "B L E"]:
        """Run the branches in order."""
        for branch in self.children():
            x_BLD = branch(x_BLD, ctx)
        return x_BLD


class BranchInput(nn.Module):
    """``x + branch(x)``: an addition to what the next branch of a chain reads, and not to the stream.

    Differs from ``Residual``, which shows the recorder an addition to the stream. Shapes: ``[B, L, D]`` unchanged.
    """

    @spec
    class Spec(ModuleSpec):
        """The branch whose answer is added."""

        branch: ModuleSpec

        def build(self, width: int) -> "BranchInput":
            """Return the sum."""
            return BranchInput(self, width)

    def __init__(self, spec: Spec, width: int) -> None:
        super().__init__()
        self.branch = spec.branch.build(width)

    def forward(self, x_BLD: Float[Tensor, "B L D"], ctx: Context) -> Float[Tensor, "B L D"]:
        """Add what the branch makes of ``x``."""
        return x_BLD + self.branch(x_BLD, ctx)


class BesideEntry(nn.Module):
    """``branch([x, e])``: a branch that reads the stream beside what entered the stack (Zamba; Glorioso et al. 2024).

    ``e`` is what the first block reads. Shapes: ``[B, L, D]`` through ``[B, L, 2 D]`` to the branch's.
    """

    @spec
    class Spec(ModuleSpec):
        """The branch, of twice the width."""

        branch: ModuleSpec

        def build(self, width: int) -> "BesideEntry":
            """Return the branch and what it reads."""
            return BesideEntry(self, width)

        def out_width(self, width: int) -> int:
            """Return the channels that come out of the branch."""
            return self.branch.out_width(2 * width)

    def __init__(self, spec: Spec, width: int) -> None:
        super().__init__()
        self.branch = spec.branch.build(2 * width)

    def forward(self, x_BLD: Float[Tensor, "B L D"], ctx: Context) -> Float[Tensor, "B L E"]:
        """Read both side by side."""
        assert ctx.entered is not None
        return self.branch(torch.cat([x_BLD, ctx.entered], -1), ctx)


class ByTurn(nn.Module):
    """``branch_t(x)`` at the t-th depth at which its block stands: copies that share some of their parts.

    Shapes: those of the branch.
    """

    @spec
    class Spec(ModuleSpec):
        """The branch, at how many depths it stands, and the paths in it of what is one and the same at all of them."""

        branch: ModuleSpec
        turns: int
        shared: tuple[str, ...] = ()

        def build(self, width: int) -> "ByTurn":
            """Return the copies.

            Raises:
                UsageError: there is no turn, or no such part.
            """
            if self.turns < 1:
                raise UsageError(f"a branch of {self.turns} turns", "let it have one at least")
            return ByTurn(self, width)

        def out_width(self, width: int) -> int:
            """Return the channels that come out of the branch."""
            return self.branch.out_width(width)

    def __init__(self, spec: Spec, width: int) -> None:
        super().__init__()
        self.turns = nn.ModuleList(spec.branch.build(width) for _ in range(spec.turns))
        for path in spec.shared:
            parent, _, name = path.rpartition(".")
            try:
                one = self.turns[0].get_submodule(path)
            except AttributeError as error:
                raise UsageError(f"the branch has no part {path!r} to share", "name a path inside it") from error
            for other in self.turns[1:]:
                other.get_submodule(parent).add_module(name, one)

    def forward(self, x_BLD: Float[Tensor, "B L D"], ctx: Context) -> Float[Tensor, "B L E"]:
        """Run the copy of this depth."""
        assert ctx.layer is not None
        return self.turns[ctx.layer.turn](x_BLD, ctx)
