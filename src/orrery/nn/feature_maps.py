"""What becomes of the pictures that the stages of a hierarchical encoder leave, each coarser than the one before."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import interpolate

from orrery.nn.activations import activation
from orrery.nn.batch_norm import BatchNorm
from orrery.nn.residual import Dropout
from orrery.nn.spec import ModuleSpec, spec

Maps = Sequence[Float[Tensor, "B _ _ _"]]
"""One picture a stage, the finest first."""


@spec
class MapsSpec(ModuleSpec):
    """What joins the maps of stages; it is built with the width of every stage."""

    def build(self, width: int) -> nn.Module:
        """Return what joins maps of which the last, and no other, has a width."""
        return self.build_on((width,))

    @abstractmethod
    def build_on(self, widths: Sequence[int]) -> "JoinedMaps":
        """Return what joins maps of these widths."""


class JoinedMaps(nn.Module, ABC):
    """From the maps of all stages to what a head reads.

    Shapes: maps ``[B, C, R, W]`` of each stage to ``[B, ..., E]``.
    """

    @abstractmethod
    def forward(self, maps: Maps) -> Float[Tensor, "B ... E"]:
        """Join the maps."""


class LastMap(JoinedMaps):
    """The map of the last stage as a row of tokens, in the order of reading. Shapes: to ``[B, L, D]``."""

    @spec
    class Spec(MapsSpec):
        """It has no settings."""

        def build_on(self, widths: Sequence[int]) -> "LastMap":
            """Return the module; it has no parameters."""
            return LastMap()

    def forward(self, maps: Maps) -> Float[Tensor, "B L D"]:
        """Return the last map as a row."""
        return maps[-1].flatten(2).mT


class FusedMaps(JoinedMaps):
    """``dropout(relu(norm(W [up(A_n x_n); ...; up(A_1 x_1)])))`` at every place of the first map.

    Xie et al. 2021, 3.2: each map is projected to one width and enlarged bilinearly to the size of the first; the
    coarsest stands first.
    Shapes: maps ``[B, E_i, rows_i, columns_i]`` to ``[B, rows_1, columns_1, width]``.
    """

    @spec
    class Spec(MapsSpec):
        """The width of the joined map, and the dropout behind it."""

        width: int
        dropout: float = 0.0

        def build_on(self, widths: Sequence[int]) -> "FusedMaps":
            """Return the projections, the matrix that joins, and its norm."""
            return FusedMaps(self, widths)

        def out_width(self, width: int) -> int:
            """Return the width of the joined map."""
            return self.width

    def __init__(self, spec: Spec, widths: Sequence[int]) -> None:
        super().__init__()
        self.projections = nn.ModuleList(nn.Linear(width, spec.width) for width in widths)
        self.join = nn.Linear(len(widths) * spec.width, spec.width, bias=False)
        self.norm = BatchNorm(spec.width)
        self.activation = activation("relu")
        self.dropout = Dropout.Spec(rate=spec.dropout).build(spec.width)

    def forward(self, maps: Maps) -> Float[Tensor, "B rows columns E"]:
        """Bring the maps to one size and join them, place by place."""
        size = maps[0].shape[2:]
        maps_of_one_size = []
        for one, project in zip(maps, self.projections, strict=True):
            projected = project(one.movedim(1, -1)).movedim(-1, 1)
            maps_of_one_size.append(interpolate(projected, size=size, mode="bilinear", align_corners=False))
        joined = self.join(torch.cat(maps_of_one_size[::-1], dim=1).movedim(1, -1))
        return self.dropout(self.activation(self.norm(joined)))
