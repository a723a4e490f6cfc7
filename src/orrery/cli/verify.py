"""``orrery verify``: run the golden numbers and the laws, and show what kept its bound."""

import json as json_format
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter
from rich import box
from rich.console import Console
from rich.table import Table

from orrery.cli.numbers import COUNT

GOLDEN = "golden"

if TYPE_CHECKING:
    from orrery.laws.evidence import Evidence
    from orrery.laws.registry import Report


def verify(
    *,
    json: Path | None = None,
    family: str | None = None,
    everything: Annotated[bool, Parameter(name="--all", negative="")] = False,
    overwrite: bool = False,
    workers: Annotated[int | None, COUNT] = None,
    device: str = "cpu",
) -> int:
    """Check golden outputs of the reference, golden numbers of the course, and the laws that every family obeys.

    Exits with 1 if a check fails. What cannot run here is listed with its reason and counts as nothing.

    Parameters
    ----------
    json
        File for the evidence: every value and its bound, and the processor's seconds by check and by family.
    family
        Only the laws of this model family.
    everything
        Also every training precision, and what needs a C++ compiler or several processes.
    overwrite
        Replace the file of --json.
    workers
        Processes over which the families are spread, at most one a core; by default that, but no more than eight.
        With one, all checks run in this process.
    device
        Where the models of the laws compute: cpu or cuda.
    """
    from orrery.checkpoints.outputs import OutputFile

    target = OutputFile(json, overwrite=overwrite) if json is not None else None
    from orrery.exchange.reading.placement import choose_device
    from orrery.laws.registry import verify as run
    from orrery.laws.workers import MOST, cores

    where = str(choose_device(device))
    console = Console(soft_wrap=True, width=None if sys.stdout.isatty() else 120)
    started = time.perf_counter()
    with _progress(console) as say:
        report = run(family, everything=everything, workers=min(workers or MOST, cores()), device=where, say=say)
    show(report, console)
    if target is not None:
        target.write(json_format.dumps(report.as_json(), indent=1, allow_nan=False) + "\n")
    failed = sum(not evidence.passed for evidence in report.checks)
    verdict = f"{failed} of {len(report.checks)} checks FAILED" if failed else f"all {len(report.checks)} checks passed"
    console.print(f"{verdict} in {time.perf_counter() - started:.1f} s")
    return int(not report.passed)


@contextmanager
def _progress(console: Console) -> Iterator[Callable[[str], None]]:
    """Yield what tells the user which check is running: one moving line on a terminal, else plain lines."""
    if console.is_terminal:
        with console.status("checking") as status:
            yield lambda line: status.update(f"checking {line}")
    else:
        yield lambda line: print(f"checking {line}", file=sys.stderr, flush=True)


def show(report: "Report", console: Console) -> None:
    """Print the matrix of laws and families, the failures, the slides that differ, and what did not run."""
    if general := _general(report.checks):
        console.print(f"checks that passed: {general}, and by family and law:")
    console.print(_matrix(report.checks))
    for evidence in report.checks:
        if not evidence.passed:
            where = f" ({evidence.family})" if evidence.family else ""
            line = f"FAIL {evidence.law}{where}: {evidence.name}: {evidence.value} is not within {evidence.bound}"
            console.print(line, style="red", markup=False)
    for slide in report.slides:
        line = f"slide differs: {slide.name}: the slide {slide.slide}, here {slide.ours}; {slide.why}"
        console.print(line, style="yellow", markup=False, highlight=False)
    for line in _recorded(report.checks):
        console.print(line, markup=False, highlight=False)
    console.print(f"processor seconds: {_seconds(report.seconds_by(0))}", highlight=False)
    if report.not_run:
        console.print("not run:")
    for reason, names in _by_reason(report.not_run).items():
        console.print(f"  {', '.join(_together(names))}: {reason}", markup=False, highlight=False)


def _recorded(checks: "list[Evidence]") -> list[str]:
    """Return what was recorded of the references whose golden outputs were compared: no reference runs here."""
    from orrery.laws import exactness

    families = {evidence.family for evidence in checks if evidence.law == "outputs"} - {""}
    if len(families) > 1:
        return [f"recorded: {exactness.summary()}"]
    return [f"recorded: {said}" for family in families if (said := exactness.sentence(family))]


def _seconds(by_check: dict[str, float]) -> str:
    """Return what the checks cost, the dearest first; what is below one in fifty of all stands together."""
    total = sum(by_check.values())
    large = {name: seconds for name, seconds in by_check.items() if 50 * seconds >= total}
    rest = total - sum(large.values())
    return ", ".join([*(f"{name} {seconds:.1f}" for name, seconds in large.items()), f"all others {rest:.1f}"])


def _by_reason(not_run: dict[str, str]) -> dict[str, list[str]]:
    """Return what did not run, those with one reason together."""
    by_reason: dict[str, list[str]] = {}
    for name, reason in not_run.items():
        by_reason.setdefault(reason, []).append(name)
    return by_reason


def _together(names: list[str]) -> list[str]:
    """Return checks by name; one that did not run for more than three families stands there once, with their number."""
    by_check: dict[str, list[str]] = {}
    for name in names:
        by_check.setdefault(name.partition(" (")[0], []).append(name)
    return [
        name
        for check, each in by_check.items()
        for name in (each if len(each) <= 3 else [f"{check} ({len(each)} families)"])
    ]


def _matrix(checks: "list[Evidence]") -> Table:
    """Return a row a family and a column a law; there are many families and few laws."""
    laws = dict.fromkeys(evidence.law for evidence in checks if evidence.family and evidence.law != GOLDEN)
    table = Table(box=box.SIMPLE, padding=(0, 1), collapse_padding=True, pad_edge=False)
    table.add_column("family", no_wrap=True)
    for law in laws:
        table.add_column(law, justify="right", no_wrap=True)
    for family in sorted({evidence.family for evidence in checks} - {""}):
        table.add_row(family, *(_cell([e for e in checks if (e.law, e.family) == (law, family)]) for law in laws))
    return table


def _general(checks: "list[Evidence]") -> str:
    """Return one line for golden numbers and for what belongs to no family."""
    general = [evidence for evidence in checks if evidence.law == GOLDEN or not evidence.family]
    laws = dict.fromkeys(evidence.law for evidence in general)
    return ", ".join(f"{law} {_cell([e for e in general if e.law == law])}" for law in laws)


def _cell(checks: "list[Evidence]") -> str:
    """Return how many checks passed, and how many failed; a dash where the law has no use for the family."""
    if not checks:
        return "-"
    failed = sum(not evidence.passed for evidence in checks)
    return f"[red]{failed} of {len(checks)} FAIL[/]" if failed else f"[green]{len(checks)}[/]"
