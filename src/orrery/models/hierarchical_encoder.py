"""The hierarchical encoder: stages that read pictures, each the coarser picture that the one before left."""

from collections.abc import Sequence
from typing import Any

from torch import Tensor, nn

from orrery.models.encoder import Encoder
from orrery.models.inputs import Batch, Inputs
from orrery.models.kernel_choice import default_kernel
from orrery.models.model import Model, ModelSpec
from orrery.nn.attention.kernels import Kernel
from orrery.nn.context import Execution
from orrery.nn.feature_maps import FusedMaps, LastMap
from orrery.nn.spec import spec
from orrery.nn.stack import Stack


class HierarchicalEncoder(Model):
    """``head(join(x_1, ..., x_n))``, where stage i makes the picture ``x_i`` of ``x_{i-1}`` (Xie et al. 2021).

    A stage is an encoder whose tokens are the points of its picture. Shapes: images ``[B, channels, rows, columns]`` to
    what the head gives: of each row, or of each place of the finest map, ``[B, rows, columns, labels]``.
    """

    how = frozenset[str]()

    @spec
    class Spec(ModelSpec):
        """The whole architecture; ``join`` makes what the heads read of the pictures of all stages."""

        stages: tuple[Encoder.Spec, ...]
        join: LastMap.Spec | FusedMaps.Spec = LastMap.Spec()

        @property
        def inputs(self) -> Inputs:
            """The images that the first stage reads."""
            return self.stages[0].inputs

        @property
        def answering(self) -> Stack.Spec:
            """The stack of the last stage."""
            return self.stages[-1].stack

        def build(self, width: int = 0) -> "HierarchicalEncoder":
            """Return the model, its weights as torch leaves them; the width is the spec's own."""
            return HierarchicalEncoder(self)

    def __init__(self, spec: Spec) -> None:
        super().__init__()
        self.spec = spec
        self.kernel: Kernel = default_kernel(spec)
        built = [stage.build() for stage in spec.stages]
        self.stages = nn.ModuleList(built)
        self.join = spec.join.build_on([stage.width for stage in spec.stages])
        width = spec.join.out_width(spec.width)
        self.heads = nn.ModuleDict({name: head.build(width) for name, head in spec.heads.items()})
        for number, stage in enumerate(built[:-1]):
            stage.stack.path = f"stage{number}."
            stage.stack.role = f"stage{number}"

    @property
    def stack(self) -> Stack:  # type: ignore[override]
        """The stack of the last stage."""
        last: Any = self.stages[-1]
        return last.stack

    def maps(self, images: Tensor, execution: Execution) -> Sequence[Tensor]:
        """Return the picture that each stage leaves, ``[B, width, rows, columns]``."""
        found: list[Tensor] = []
        for stage in self.stages:
            assert isinstance(stage, Encoder)
            x_BLD, ctx = stage.prepare(images, execution=execution.by_default(self.kernel, self.scan))
            assert ctx.grid is not None
            images = stage.stack(x_BLD, ctx).mT.unflatten(2, ctx.grid)
            found.append(images)
        return found

    def stream(self, batch: Batch, execution: Execution) -> Tensor:
        """Return what the heads read of the images."""
        return self.join(self.maps(batch["images"], execution))
