"""All checks by the name of their law, and the run that turns them into a report."""

import importlib
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

from orrery.errors import UsageError, there_are
from orrery.laws.evidence import CannotRunError, Evidence, SlideDiffers
from orrery.laws.workers import spread


@dataclass(frozen=True)
class LawCheck:
    """Where a check lives, and whether it is run once or for every family.

    Attributes:
        name: for progress and for the list of what did not run.
        law: the law, or ``golden``.
        target: ``module:function`` inside ``orrery.laws``.
        per: ``family`` where the function takes a family's name.
        default: whether it is part of the subset that runs without ``--all``.
        images: whether it is also for families that read images and write nothing.
    """

    name: str
    law: str
    target: str
    per: Literal["family", "once"] = "family"
    default: bool = True
    images: bool = False

    def run(self, family: str) -> Iterator[Evidence]:
        """Yield the evidence; a crash is evidence too, and it does not stop the others."""
        try:
            check = resolve(self.target)
            if self.per == "family" and not self.images:
                resolve("models:require_tokens")(family)
            yield from check(family) if self.per == "family" else check()
        except CannotRunError:
            raise
        except Exception as error:
            name = f"{self.target} raised {type(error).__name__}: {error}"
            yield Evidence(name, self.law, family, passed=False, value=None, bound=0)


CHECKS = (
    LawCheck("outputs: training, sampling, search", "outputs", "methods:check", "once"),
    LawCheck("outputs", "outputs", "outputs:check", images=True),
    LawCheck("golden: the course", "golden", "golden:check", "once"),
    LawCheck("golden: G11 padding", "golden", "golden:check_padding", "once"),
    LawCheck("golden: G13 Noam rate", "golden", "golden:check_noam", "once"),
    LawCheck("golden: G10 mixture of data", "golden", "mixtures:check", "once"),
    LawCheck("golden: sizes of published models", "golden", "sizes:check", "once"),
    LawCheck("golden: numbers of the lectures", "golden", "lectures:check", "once"),
    LawCheck("stream", "stream", "stream:check", "once"),
    LawCheck("cache", "cache", "cache:check"),
    LawCheck("branching", "branching", "branching:check"),
    LawCheck("padding", "padding", "padding:check"),
    LawCheck("packing", "packing", "packing:check"),
    LawCheck("accumulation", "accumulation", "accumulation:check"),
    LawCheck("ranks", "ranks", "ranks:check", "once", default=False),
    LawCheck("resume", "resume", "resume:check"),
    LawCheck("kernel", "kernel", "kernel:check"),
    LawCheck("kernel: compiled", "kernel", "compiled:check", default=False),
    LawCheck("kernel: compiled step", "kernel", "step:check", default=False),
    LawCheck("precision", "precision", "precision:check", default=False, images=True),
    LawCheck("recurrence", "recurrence", "recurrence:check"),
    LawCheck("checkpoint", "checkpoint", "checkpoint:check"),
    LawCheck("sight", "sight", "sight:check"),
    LawCheck("adapter", "adapter", "adapter:check"),
    LawCheck("doors", "doors", "doors:check"),
)
SLIDES = ("golden:slides", "mixtures:slides", "sizes:slides", "lectures:slides")
LATER = {
    "batching: alone == in any batch": "needs requests that come and go; the tests of the engine run it",
    "ranks: whole runs of N processes": "takes minutes; the tests of training run it",
    "resume: killed at any moment": "kills processes; the tests of training run it",
}
"""Laws that this program cannot check here, and why."""


@dataclass
class Report:
    """Everything that a run of the checks found."""

    checks: list[Evidence] = field(default_factory=list)
    not_run: dict[str, str] = field(default_factory=dict)
    slides: list[SlideDiffers] = field(default_factory=list)
    seconds: dict[tuple[str, str], float] = field(default_factory=dict, compare=False)
    """The processor's time by check and family, which is not the same twice."""

    @property
    def passed(self) -> bool:
        """Say whether every check that ran passed."""
        return all(evidence.passed for evidence in self.checks)

    def as_json(self) -> dict[str, Any]:
        """Return the evidence as the JSON file has it."""
        return {
            "checks": [vars(evidence) for evidence in self.checks],
            "not_run": [{"name": name, "reason": reason} for name, reason in self.not_run.items()],
            "seconds": {"by check": self.seconds_by(0), "by family": self.seconds_by(1)},
        }

    def seconds_by(self, part: Literal[0, 1]) -> dict[str, float]:
        """Return the processor's seconds by check (0) or by family (1), the most first."""
        seconds_of: dict[str, float] = {}
        for key, seconds in self.seconds.items():
            seconds_of[key[part]] = seconds_of.get(key[part], 0.0) + seconds
        return {
            name: round(seconds_of[name], 3)
            for name in sorted(seconds_of, key=seconds_of.__getitem__, reverse=True)
            if name
        }


def families() -> list[str]:
    """Return the families, each of which brings the tiny configuration that the laws are tried on."""
    from orrery.families import names

    return names()


Pair = tuple[int, str]
"""The number of a check, and the family that it is run for; no family where it is run once."""


def verify(
    family: str | None = None,
    *,
    everything: bool = False,
    workers: int = 1,
    device: str = "cpu",
    say: Callable[[str], None] = lambda line: None,
) -> Report:
    """Run the checks and return what they found.

    Args:
        family: only the laws of this family; golden numbers and laws without a family are left out.
        everything: also what takes minutes or a compiler.
        workers: over how many processes the families are spread; families registered from Python want one.
        device: where the models of the laws compute, as ``cuda``.
        say: called with a line before each check, or, with several processes, after each family.

    Raises:
        UsageError: there is no such family, or no worker.
        MachineError: a worker was killed.
    """
    if workers < 1:
        raise UsageError(f"{workers} workers check nothing", "take at least 1")
    known = families()
    if family is not None and family not in known:
        raise UsageError(f"no laws are known for the family {family!r}", there_are(family, known))
    chosen = [family] if family is not None else known
    groups = [[(n, "")] for n, check in enumerate(CHECKS) if check.per == "once" and family is None]
    groups += [[(n, each) for n, check in enumerate(CHECKS) if check.per == "family"] for each in chosen]
    if workers == 1 or family is not None:
        parts = {pair: part for group in groups for pair, part in _answers(group, everything, device, say).items()}
    else:
        parts = _spread(groups, everything, device, workers, say)
    report = Report(not_run=dict(LATER))
    for part in (parts[pair] for pair in sorted(parts)):
        report.checks.extend(part.checks)
        report.not_run |= part.not_run
        report.seconds |= part.seconds
    if family is None:
        report.slides = [slide for target in SLIDES for slide in resolve(target)()]
    return report


def _spread(
    groups: list[list[Pair]], everything: bool, device: str, workers: int, say: Callable[[str], None]
) -> dict[Pair, Report]:
    """Return what the pairs gave, each group in a process."""
    count = iter(range(1, len(groups) + 1))
    names = [group[0][1] or CHECKS[group[0][0]].name for group in groups]
    answers = spread(
        [partial(_answers, group, everything, device) for group in groups],
        workers,
        lambda number: say(f"{names[number]}: done, {next(count)} of {len(groups)}"),
    )
    return {pair: part for answer in answers for pair, part in answer.items()}


def _answers(
    group: list[Pair], everything: bool, device: str, say: Callable[[str], None] = lambda line: None
) -> dict[Pair, Report]:
    """Return what each pair of a check and a family gives."""
    from orrery.laws.place import on_device

    reports = {}
    with one_thread():
        for number, family in group:
            with on_device(device if family else "cpu"):  # what has no family counts and compares, and computes little
                reports[number, family] = _run(CHECKS[number], family, everything, say)
    return reports


def first_failure() -> str | None:
    """Run the default checks in their order until one fails; return its law, family and name, or nothing."""
    with one_thread():
        for check in CHECKS:
            for family in [""] if check.per == "once" else families() if check.default else []:
                with suppress(CannotRunError):
                    for evidence in check.run(family):
                        if not evidence.passed:
                            return f"{evidence.law} ({evidence.family}): {evidence.name}"
    return None


@contextmanager
def one_thread() -> Iterator[None]:
    """Let torch compute on one thread: with models this small, several spend half their time waiting for each other."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _run(check: LawCheck, family: str, everything: bool, say: Callable[[str], None]) -> Report:
    if not (check.default or everything):
        return Report(not_run={check.name: "takes a minute, a compiler or several processes; --all runs it"})
    label = f"{check.name} ({family})" if family else check.name
    say(label)
    report, began = Report(), time.thread_time()
    try:
        report.checks.extend(check.run(family))
    except CannotRunError as reason:
        report = Report(not_run={label: f"{reason.message}; {reason.hint}"})
    report.seconds[check.name, family] = time.thread_time() - began
    return report


def resolve(target: str) -> Callable[..., Any]:
    """Return the function behind ``module:function`` of this package."""
    module, _, name = target.partition(":")
    function: Callable[..., Any] = getattr(importlib.import_module(f"{__package__}.{module}"), name)
    return function
