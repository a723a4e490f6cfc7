"""The flags of tasks whose answers are programs, and what is done with them."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from orrery.cli.evaluate._items import Items, carry_out, limits_of
from orrery.cli.evaluate._trust import Trust
from orrery.cli.numbers import ABOVE_ZERO, COUNT, NOT_NEGATIVE, SECONDS
from orrery.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from orrery.evaluation.benchmarks.programs import ProgrammingTask

_K = "The k of pass@k, with commas between."
_DRAWN = "Programs drawn for each problem, at least as many as the greatest k."
_TEMPERATURE = "0 is greedy, for one program a problem; Chen et al. 2021 used 0.8 for pass@100."


@Parameter(name="*")
@dataclass(frozen=True)
class Programs:
    """How programs are drawn and run."""

    k: Annotated[str, Parameter(help=_K)] = "1"
    programs: Annotated[int, COUNT, Parameter(help=_DRAWN)] = 1
    temperature: Annotated[float, NOT_NEGATIVE, Parameter(help=_TEMPERATURE)] = 0.0
    top_p: Annotated[float, ABOVE_ZERO, Parameter(help="The mass of tokens that stays possible.")] = 1.0
    max_new_tokens: Annotated[int, COUNT, Parameter(help="The most tokens of a program.")] = 512
    seconds: Annotated[float, SECONDS, Parameter(help="Of wall time for a program and its tests.")] = 10.0
    memory: Annotated[int, COUNT, Parameter(help="MiB of a program, tests included.")] = 1024


GREEDY = Programs()
"""What is used unless told otherwise."""


def run_programs(
    model: str,
    sources: "Sequence[str]",
    tasks: "list[ProgrammingTask]",
    how: Programs,
    items: Items,
    trust: Trust,
    **facts: Any,
) -> None:
    """Draw programs for the tasks, run them in the sandbox, and print what pass@k is.

    Raises:
        MachineError: this machine cannot isolate generated code; no model is loaded for it.
        UsageError: a k that is no whole number from 1.
    """
    from orrery.evaluation.benchmarks.programs import ProgramSampling, evaluate_programs
    from orrery.sandbox import isolation

    ks = [_whole(part) for part in how.k.split(",")]
    isolation()
    drawing = ProgramSampling(
        how.programs, how.temperature, how.top_p, how.max_new_tokens, trust.seed, items.batch_size
    )
    limits = limits_of(how.seconds, how.memory)
    carry_out(
        model, sources, items, trust,
        lambda lm, done: evaluate_programs(lm, tasks, ks=ks, drawing=drawing, limits=limits, done=done, **facts),
    )  # fmt: skip


def _whole(part: str) -> int:
    text = part.strip()
    if not (text.isascii() and text.isdigit() and 0 < int(text) < 1_000_000):
        raise UsageError(f"--k {part!r}: no whole number from 1", "--k 1,10,100")
    return int(text)
