"""Heads over the patches of a picture: a label for each pixel, a thing with its box for each patch."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from orrery.nn.positions.grid import PatchGrid
from orrery.nn.spec import ModuleSpec, spec

Real = Bool[Tensor, "B L"] | None


def on_grid(x_BLD: Float[Tensor, "B L D"], grid: PatchGrid) -> Float[Tensor, "B rows columns D"]:
    """Return the vectors of the patches at their places, without the tokens around them."""
    patches_BND = x_BLD[:, grid.before : grid.before + grid.rows * grid.columns]
    return patches_BND.unflatten(1, (grid.rows, grid.columns))


class PixelHead(nn.Module):
    """``W x_patch + b``: a score of every label for every pixel of a patch, laid out as the picture is.

    The linear decoder of Strudel et al. 2021, section 3.2, but for its bilinear enlarging: here the map itself gives
    each pixel of the patch its own scores. Shapes: ``[B, L, D]`` to ``[B, labels, rows, columns]``.
    """

    @spec
    class Spec(ModuleSpec):
        """The number of labels and their names, where the patches lie, and the rows and columns of one."""

        labels: int
        grid: PatchGrid
        patch: tuple[int, int]
        names: tuple[str, ...] = ()

        def build(self, width: int) -> "PixelHead":
            """Return the head."""
            return PixelHead(self, width)

    def __init__(self, spec: Spec, width: int) -> None:
        super().__init__()
        self.grid, self.patch = spec.grid, spec.patch
        self.labels = nn.Linear(width, spec.labels * spec.patch[0] * spec.patch[1])

    def forward(self, x_BLD: Float[Tensor, "B L D"], real_BL: Real = None) -> Float[Tensor, "B N rows columns"]:
        """Score the labels of every pixel."""
        cut = self.labels(on_grid(x_BLD, self.grid)).unflatten(-1, (-1, *self.patch))
        return cut.permute(0, 3, 1, 4, 2, 5).flatten(4, 5).flatten(2, 3)


class BoxHead(nn.Module):
    """For each patch ``[W x + b; sigmoid(MLP(x) + logit(its middle, 2 grid cells))]``: what is there, and its box.

    Each patch is a query that says one thing or, by the last label, nothing; which is to say what is settled by the
    matching (Carion et al. 2020, 3.1). The box is as far from the patch's own place as the network says (Zhu et al.
    2021, A.3). A box is the middle, the width and the height as shares of the picture's sides.
    Shapes: ``[B, L, D]`` to ``[B, patches, labels + 1 + 4]``.
    """

    @spec
    class Spec(ModuleSpec):
        """The number of labels without the one for nothing, their names, and where the patches lie."""

        labels: int
        grid: PatchGrid
        names: tuple[str, ...] = ()

        @property
        def queries(self) -> int:
            """How many things can be told at most: one a patch."""
            return self.grid.rows * self.grid.columns

        def build(self, width: int) -> "BoxHead":
            """Return the head."""
            return BoxHead(self, width)

    def __init__(self, spec: Spec, width: int) -> None:
        super().__init__()
        self.grid = spec.grid
        self.labels = nn.Linear(width, spec.labels + 1)
        self.inner, self.box = nn.Linear(width, width), nn.Linear(width, 4)

    def forward(self, x_BLD: Float[Tensor, "B L D"], real_BL: Real = None) -> Float[Tensor, "B N E"]:
        """Return the scores of the labels, the last of which is nothing, and the box of every patch."""
        x_BND = on_grid(x_BLD, self.grid).flatten(1, 2)
        away = self.box(torch.relu(self.inner(x_BND)))
        places = _middles(self.grid).to(away).logit()
        return torch.cat([self.labels(x_BND), (away + places).sigmoid()], -1)


def _middles(grid: PatchGrid) -> Float[Tensor, "N 4"]:
    """Return where each patch lies, and a width and a height of two patches, below the whole."""
    rows, columns = torch.meshgrid(torch.arange(grid.rows), torch.arange(grid.columns), indexing="ij")
    wide, high = (torch.full(rows.shape, min(0.9, 2 / count)) for count in (grid.columns, grid.rows))
    middles = ((columns + 0.5) / grid.columns, (rows + 0.5) / grid.rows)
    return torch.stack([*middles, wide, high], -1).flatten(0, 1)
