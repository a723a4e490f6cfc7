"""How many processes share a run and what each of them has of it: the degrees that ``orrery plan`` plans."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from orrery.errors import UsageError
from orrery.schema.numbers import MOST, AboveZero, NoTruth, Positive
from orrery.schema.section import Section

REST = -1
"""As ``data``: all processes that the other degrees leave."""
Degree = Annotated[int, Field(ge=REST, le=MOST), NoTruth]
STAGE = "a stage is not shared further yet; take data for copies of the stages, or leave pipeline out"
UNJOINED = {
    ("expert", "tensor"): "experts are shared whole, and tensor cuts them; take one of the two",
    ("pipeline", "fsdp"): STAGE,
    ("pipeline", "tensor"): STAGE,
    ("pipeline", "context"): STAGE,
    ("pipeline", "expert"): STAGE,
}
"""Pairs of degrees that the planner joins and a run does not, with why, or what to do instead."""


class ParallelSettings(Section):
    """Degrees of parallelism; their product is the number of processes that ``torchrun`` starts.

    ``data`` processes have copies of the model and share the batch; -1, as usual, stands for all that the other degrees
    leave. ``fsdp`` processes share the batch and, with ``zero`` 3, the weights, gradients and optimizer; with 2 the
    weights stay whole from the first pass of a step to its last (Rajbhandari et al. 2020). ``tensor`` processes compute
    each layer together (Shoeybi et al. 2019), with ``sequence`` what stands between the matrices too (Korthikanti et
    al. 2022). ``context`` processes share the tokens of each row (Dubey et al. 2024, section 3.3.2). Of the ``data`` x
    ``fsdp`` processes, each ``expert`` neighbours share the experts of a layer, each has some whole (Lepikhin et al.
    2020).
    ``micro`` is taken in the place of ``training.micro_batch``.
    A process that waits for the others for ``timeout`` seconds ends with an error.
    ``recompute`` computes again in the backward pass what attention makes of its keys (``selective``), or whole blocks.
    ``compile`` has torch compile the blocks, of a run of one process too.
    ``pipeline`` processes have neighbouring blocks, each ``interleave`` pieces of these (Narayanan et al. 2021), and
    pass on ``micro`` rows at a time. ``zero`` 1 is refused where ``fsdp`` shares, and so are some pairs of degrees.
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
    compile: bool = False
    timeout: AboveZero = 1800.0

    @model_validator(mode="after")
    def _built(self) -> "ParallelSettings":
        if self.data == 0:
            raise PydanticCustomError("degree", "data 0 is no degree; give a number from 1, or -1 for what is left")
        unbuilt = unjoined(self.model_dump())
        for name, instead in unbuilt.items():
            parts = {"name": name, "value": str(getattr(self, name)), "instead": instead}
            raise PydanticCustomError("degree", "{name} {value}: {instead}", parts)
        return self

    @property
    def usual(self) -> bool:
        """Whether nothing is said of how processes share the run: each then has the whole model."""
        return self.data == REST and not shown(self)


def unjoined(degrees: Mapping[str, Any]) -> dict[str, str]:
    """Return which degrees, by all their names, do not go with another one, each with why."""
    found = {
        one: f"with {other} {degrees[other]}: {why}"
        for (one, other), why in UNJOINED.items()
        if degrees[one] > 1 and degrees[other] > 1
    }
    if degrees["expert"] > 1 and degrees["expert"] % degrees["fsdp"]:
        found["expert"] = f"with fsdp {degrees['fsdp']}: an expert is not shared further; take a multiple of fsdp"
    if degrees["interleave"] > 1 and degrees["pipeline"] == 1:
        found["interleave"] = "it cuts the stages of a pipeline, and there is none; give pipeline too"
    if degrees["zero"] == 1 and degrees["fsdp"] > 1:
        found["zero"] = "gradients are always shared among the processes of fsdp; take 2 or 3"
    return found


def uncompiled(degrees: ParallelSettings, *, judged: bool) -> str | None:
    """Return what does not go with compiled blocks, and why.

    Args:
        degrees: of the recipe.
        judged: whether the model learns from its own answers.
    """
    for name in ("tensor", "pipeline", "context", "expert"):
        if getattr(degrees, name) > 1:
            return f"parallel.{name} {getattr(degrees, name)}: blocks whose insides are shared are not compiled"
    if degrees.recompute == "selective":
        return "parallel.recompute selective: take full, or none: what is compiled chooses itself what it keeps"
    if judged:
        return "rewards: the model that learns would be some rounding off the one that wrote"
    return None


def settled(degrees: ParallelSettings, processes: int, rows: int | None) -> ParallelSettings:
    """Return the degrees with as many copies of the model as the processes make.

    Args:
        degrees: of the recipe.
        processes: of the run.
        rows: of a global batch, where all have as many.

    Raises:
        UsageError: the degrees are those of another number of processes, or do not divide the rows.
    """
    shares = degrees.fsdp * degrees.tensor * degrees.context * degrees.pipeline
    said = " x ".join(f"parallel.{name} {getattr(degrees, name)}" for name in shown(degrees) or ["fsdp"])
    if degrees.data == REST and processes % shares:
        message = f"{said} does not divide the number of processes, {processes}"
        raise UsageError(message, f"would fit: {near(divisors(processes), shares)}; {_start(shares)}")
    copies = processes // shares if degrees.data == REST else degrees.data
    if copies * shares != processes:
        message = f"parallel.data {copies} x {said} are {copies * shares:,} processes"
        raise UsageError(f"{message}, and there are {processes:,}", _start(copies * shares))
    sharing = copies * degrees.fsdp
    if sharing % degrees.expert:
        message = f"parallel.expert {degrees.expert} does not divide the {sharing:,} processes of data x fsdp"
        raise UsageError(message, f"would fit: {near(divisors(sharing), degrees.expert)}")
    if rows is not None and not degrees.usual:
        refuse_uneven(rows, copies, degrees.fsdp, degrees.micro or 1)
    return degrees.model_copy(update={"data": copies})


def shown(degrees: ParallelSettings) -> list[str]:
    """Return the names of the degrees beside ``data`` whose product is that of the processes, where they are said."""
    return [name for name in ("fsdp", "tensor", "context", "pipeline") if getattr(degrees, name) > 1]


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
