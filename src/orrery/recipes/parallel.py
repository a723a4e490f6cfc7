"""How many processes share a run and what each of them has of it: the degrees that ``orrery plan`` plans."""

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from orrery.errors import UsageError
from orrery.schema.numbers import MOST, AboveZero, NoTruth, Positive
from orrery.schema.section import Section

REST = -1
"""As ``data``: all processes that the other degrees leave."""
Degree = Annotated[int, Field(ge=REST, le=MOST), NoTruth]
NOT_YET = {
    "pipeline": "the layers are not divided into stages yet; fsdp shares the weights instead",
    "context": "no sequence is shared by processes yet; lower batches.length, or training.micro_batch",
    "expert": "the experts of a layer are not divided yet; fsdp shares their weights too",
    "interleave": "it cuts the stages of a pipeline, and there is none yet",
}
"""Degrees that the planner knows and a run does not have yet, with what to do instead."""


class ParallelSettings(Section):
    """Degrees of parallelism; their product is the number of processes that ``torchrun`` starts.

    ``data`` processes have copies of the model and share the batch; -1, as usual, stands for all that the other degrees
    leave. ``fsdp`` processes share the batch and, with ``zero`` 3, the weights, gradients and optimizer; with 2 the
    weights stay whole from the forward to the backward pass (Zhao et al. 2023). ``tensor`` processes compute each layer
    together (Shoeybi et al. 2019), with ``sequence`` what stands between the matrices too (Korthikanti et al. 2022).
    ``micro`` is taken in the place of ``training.micro_batch``.
    A process that waits for the others for ``timeout`` seconds ends with an error.
    ``recompute`` computes again in the backward pass what attention makes of its keys (``selective``), or whole blocks.
    ``pipeline``, ``context``, ``expert`` and ``interleave`` are those of a plan; above 1 they are refused, as is
    ``zero`` 1.
    """

    data: Degree = REST
    fsdp: Positive = 1
    tensor: Positive = 1
    pipeline: Positive = 1
    context: Positive = 1
    expert: Positive = 1
    zero: Annotated[int, Field(ge=1, le=3), NoTruth] = 3
    micro: Positive | None = None
    interleave: Positive = 1
    sequence: bool = True
    recompute: Literal["none", "selective", "full"] = "none"
    timeout: AboveZero = 1800.0

    @model_validator(mode="after")
    def _built(self) -> "ParallelSettings":
        if self.data == 0:
            raise PydanticCustomError("degree", "data 0 is no degree; give a number from 1, or -1 for what is left")
        unbuilt = {name: reason for name, reason in NOT_YET.items() if getattr(self, name) > 1}
        if self.zero == 1 and self.fsdp > 1:
            unbuilt["zero"] = "gradients are always shared among the processes of fsdp; take 2 or 3"
        for name, instead in unbuilt.items():
            parts = {"name": name, "value": str(getattr(self, name)), "instead": instead}
            raise PydanticCustomError("degree", "{name} {value}: {instead}", parts)
        return self

    @property
    def usual(self) -> bool:
        """Whether nothing is said of how processes share the run: each then has the whole model."""
        return self.data == REST and self.fsdp == self.tensor == 1


def settled(degrees: ParallelSettings, processes: int, rows: int | None) -> ParallelSettings:
    """Return the degrees with as many copies of the model as the processes make.

    Args:
        degrees: of the recipe.
        processes: of the run.
        rows: of a global batch, where all have as many.

    Raises:
        UsageError: the degrees are those of another number of processes, or do not divide the rows.
    """
    shares = degrees.fsdp * degrees.tensor
    said = " x ".join(f"parallel.{name} {getattr(degrees, name)}" for name in shown(degrees))
    if degrees.data == REST and processes % shares:
        message = f"{said} does not divide the number of processes, {processes}"
        raise UsageError(message, f"would fit: {near(divisors(processes), shares)}; {_start(shares)}")
    copies = processes // shares if degrees.data == REST else degrees.data
    if copies * shares != processes:
        message = f"parallel.data {copies} x {said} are {copies * shares:,} processes"
        raise UsageError(f"{message}, and there are {processes:,}", _start(copies * shares))
    if rows is not None and not degrees.usual:
        refuse_uneven(rows, copies, degrees.fsdp, degrees.micro or 1)
    return degrees.model_copy(update={"data": copies})


def shown(degrees: ParallelSettings) -> list[str]:
    """Return the names of the degrees beside ``data`` that an error names."""
    return ["fsdp"] if degrees.tensor == 1 else ["fsdp", "tensor"] if degrees.fsdp > 1 else ["tensor"]


def _start(processes: int) -> str:
    return f"start {processes:,} processes: torchrun --nproc-per-node {processes} on one machine"


def refuse_uneven(sequences: int, data: int, fsdp: int, micro: int) -> None:
    """Refuse degrees that do not divide the rows of a global batch.

    Raises:
        UsageError: which ones do not, and which would.
    """
    each = data * fsdp * micro
    if sequences % each:
        parts = f"data={data} x fsdp={fsdp} x micro={micro} = {each:,}"
        hint = f"would fit: {near(divisors(sequences), each)}"
        raise UsageError(f"{parts} does not divide the {sequences:,} sequences of a batch", hint)


def divisors(number: int) -> list[int]:
    """Return all divisors, the least first."""
    small = [n for n in range(1, int(number**0.5) + 1) if number % n == 0]
    return sorted({*small, *(number // n for n in small)})


def near(fitting: Sequence[int], wanted: int) -> str:
    """Return up to six of the numbers that fit, those next to what was wanted."""
    nearest = sorted(fitting, key=lambda n: (abs(n - wanted), n))[:6]
    return ", ".join(f"{n:,}" for n in sorted(nearest))
