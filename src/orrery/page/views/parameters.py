"""The numbers that a model consists of: by kind, layer and head, and each matrix itself."""

from collections.abc import Iterable
from functools import cache
from typing import Annotated, Any, ClassVar

import torch
from jaxtyping import Float
from pydantic import Field
from torch import Tensor

from orrery.errors import UsageError
from orrery.inspection.checks import Check
from orrery.models.model import Model
from orrery.page.views._payload import Payload
from orrery.page.views._view import View, ViewSubject, register
from orrery.planning.matrices import LECTURE, Convention, Matrix, matrices, matrices_of, total
from orrery.planning.presets import gpt3
from orrery.schema.section import Section
from orrery.tuning import BlockEmbedding, TransformedLinear, numbers_of

SIDE = 256
"""Rows and columns of a picture; of a larger matrix each cell shows the number of the greatest size in it."""
BINS = 61
"""Bars of a histogram; an odd number, so that zero has one of its own."""
GPT3 = (175_181_291_520, 27_938, 174_604_259_328)
"""Numbers and matrices of GPT-3 as lectures count them, and its numbers as a file holds them."""


class ParametersSettings(Section):
    """What can be asked.

    Attributes:
        matrix: the name of one tensor; without it the table of all of them.
        head: a head of it.
        row: with a column: the cells themselves from here on, instead of an overview.
        column: where they begin.
    """

    matrix: str | None = None
    head: Annotated[int, Field(ge=0)] | None = None
    row: Annotated[int, Field(ge=0)] | None = None
    column: Annotated[int, Field(ge=0)] | None = None


@register
class ParametersView(View):
    """Every storage counts once."""

    kind: ClassVar[str] = "parameters"
    screen: ClassVar[str] = "model"
    order: ClassVar[int] = 20
    Settings: ClassVar[type[Section]] = ParametersSettings

    def fits(self, subject: ViewSubject) -> bool:
        """Say that every model has parameters."""
        return True

    def payload(self, subject: ViewSubject, settings: ParametersSettings) -> Payload:
        """Return the table of all matrices, or one of them."""
        model = subject.lm.model
        if settings.matrix is not None:
            return _one(model, matrices(model), settings)
        table = matrices(model)
        numbers = numbers_of(model)
        facts = {
            "matrices": [_told(one) for one in table],
            "numbers": numbers,
            "example": [_told(one) for one in _gpt3()],
        }
        return Payload(facts, checks=[_sum(table, numbers), *_golden()])


def _told(one: Matrix) -> dict[str, Any]:
    return {**vars(one), "numel": one.numel}


def _sum(table: Iterable[Matrix], numbers: int) -> Check:
    return Check(
        "the table adds up to the parameters of the loaded model",
        float(abs(total(table, Convention())[0] - numbers)),
        0.0,
    )


@cache
def _gpt3() -> list[Matrix]:
    return matrices_of(gpt3(12_288, 96, 96))


def _golden() -> list[Check]:
    """Compare the counts of GPT-3 with what is known of them."""
    lecture, file = total(_gpt3(), LECTURE), total(_gpt3(), Convention())
    off = [abs(lecture[0] - GPT3[0]), abs(lecture[1] - GPT3[1]), abs(file[0] - GPT3[2])]
    name = f"GPT-3: {GPT3[0]:,} in {GPT3[1]:,} matrices by the lecture, {GPT3[2]:,} in a file"
    return [Check(name, float(sum(off)), 0.0)]


@torch.no_grad()
def _one(model: Model, table: list[Matrix], settings: ParametersSettings) -> Payload:
    """Return a matrix, or one head of it, as a picture with its histogram."""
    numbers = _numbers(model, str(settings.matrix))
    weight_RC = _head(numbers, next((one for one in table if one.path == settings.matrix), None), settings.head)
    rows, columns = weight_RC.shape
    if settings.row is None or settings.column is None:
        cells_RC, step = _overview(weight_RC), _steps(weight_RC)
    else:
        cells_RC, step = weight_RC[settings.row : settings.row + SIDE, settings.column : settings.column + SIDE], [1, 1]
        if cells_RC.numel() == 0:
            raise UsageError(f"there is no cell {settings.row}, {settings.column}", f"{rows} rows, {columns} columns")
    finite = weight_RC[weight_RC.isfinite()].double()
    most = float(finite.abs().max()) if finite.numel() else 0.0
    bins = torch.histc(finite, BINS, -most or -1.0, most or 1.0)
    facts = {
        "matrix": settings.matrix,
        "shape": [rows, columns],
        "step": step,
        "row": settings.row or 0,
        "column": settings.column or 0,
        "mean": float(finite.mean()),
        "deviation": float(finite.std(correction=0)),
        "norm": float(finite.norm()),
        "most": most,
        "broken": weight_RC.numel() - finite.numel(),
    }
    check = Check("the bars count every finite number once", float(abs(int(bins.sum()) - finite.numel())), 0.0)
    return Payload(facts, {"cells": cells_RC.float(), "bins": bins.float()}, [check])


def _numbers(model: Model, name: str) -> Tensor:
    """Return a tensor by its name, as floats where it is a matrix that is stored in another form."""
    tensors = dict(model.named_parameters(remove_duplicate=False))
    if name not in tensors:
        raise UsageError(f"the model has no tensor {name[:100]!r}", "the table lists their names")
    owner = model.get_submodule(name.rpartition(".")[0])
    if tensors[name] is not getattr(owner, "weight", None):
        return tensors[name]
    if isinstance(owner, BlockEmbedding):
        return owner.matrix()
    return owner.stored() if isinstance(owner, TransformedLinear) else tensors[name]


def _head(weight: Tensor, about: Matrix | None, head: int | None) -> Float[Tensor, "R C"]:
    """Return a tensor as a matrix, or the part of it that belongs to one head."""
    weight_RC = weight[None] if weight.dim() < 2 else weight.flatten(1)
    if head is None:
        return weight_RC
    heads = 1 if about is None else about.heads
    if about is None or head >= heads:
        raise UsageError(f"there is no head {head}", f"this matrix has {heads}")
    return weight_RC.chunk(heads, dim=about.axis)[head]


def _steps(weight_RC: Float[Tensor, "R C"]) -> list[int]:
    return [-(-size // SIDE) for size in weight_RC.shape]


def _overview(weight_RC: Float[Tensor, "R C"]) -> Float[Tensor, "r c"]:
    """Return a matrix of at most ``SIDE`` rows and columns: of each cell the number of the greatest size."""
    down, across = _steps(weight_RC)
    if (down, across) == (1, 1):
        return weight_RC
    rows, columns = -(-weight_RC.shape[0] // down), -(-weight_RC.shape[1] // across)
    padded_RC = torch.zeros(rows * down, columns * across, dtype=weight_RC.dtype, device=weight_RC.device)
    padded_RC[: weight_RC.shape[0], : weight_RC.shape[1]] = weight_RC
    cells_rcN = padded_RC.unflatten(0, (rows, down)).unflatten(2, (columns, across)).transpose(1, 2).flatten(2)
    return cells_rcN.gather(2, cells_rcN.abs().argmax(-1, keepdim=True))[..., 0]
