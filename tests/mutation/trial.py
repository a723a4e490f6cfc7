"""One mutation in a copy of the project, and which tests notice it."""

import json
import shutil
import time
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path

from mutation.checkout import Checkout
from mutation.operators import Mutation
from mutation.server import Server

TIER = "not slow and not long and not alone"
# Types are not checked at run time, as in `make test`. Asserts are not rewritten: what they say is not read, and the
# rewriting of every file costs more than its tests.
WORDS = [
    "-o", "addopts=--strict-markers --strict-config --import-mode=importlib",
    "-q", "--tb=no", "-p", "no:cacheprovider", "-p", "no:xdist", "--assert=plain", "--continue-on-collection-errors",
    "-m", TIER,
]  # fmt: skip
_START = 120.0  # until the first test begins, on a busy machine
_PASSED, _SOME_FAILED, _INTERRUPTED, _NONE_LEFT = 0, 1, 2, 5


@dataclass
class Verdict:
    """What became of a mutation: the tests that fail with it, those asked, and what it cost."""

    mutation: Mutation
    caught_by: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    core_seconds: float = 0.0
    seconds: float = 0.0
    remarks: list[str] = field(default_factory=list)

    def row(self) -> dict:
        """Return the verdict as it is written; the tests that were asked as their number alone."""
        fields = asdict(self.mutation)
        times = {"core_seconds": round(self.core_seconds, 1), "seconds": round(self.seconds, 1)}
        counts = {"asked": len(self.asked), "caught_by": self.caught_by, "remarks": self.remarks}
        return {"key": key_of(self.mutation), "name": self.mutation.name, **fields, **counts, **times}


def key_of(mutation: Mutation) -> str:
    """Return what tells a mutation from all others of the same source: its name and its place."""
    return f"{mutation.name} @{mutation.line}:{mutation.column}"


@dataclass
class Worker:
    """One copy of the project and the warm process that runs its tests."""

    checkout: Checkout
    server: Server
    seconds: dict[str, float]
    enough: float = 30.0
    most: float = 150.0
    unsound: set[str] = field(default_factory=set)

    def attempt(self, mutation: Mutation, stages: list[list[str]]) -> Verdict:
        """Break the copy, ask stage after stage until the time is up, mend the copy, and doubt a lone catch."""
        verdict, begun, waiting = Verdict(mutation), time.perf_counter(), list(stages)
        while waiting and self._has_time(verdict):
            try:
                self.checkout.mutate(mutation)
                while waiting and self._has_time(verdict):
                    self._ask([test for test in waiting.pop(0) if test not in self.unsound], verdict)
            finally:
                self.checkout.mend(mutation)
            if not self._doubtful(verdict):
                break
        if not verdict.asked:
            verdict.remarks.append("no test runs it")
        verdict.seconds = time.perf_counter() - begun
        return verdict

    def _has_time(self, verdict: Verdict) -> bool:
        return verdict.core_seconds < (self.enough if verdict.caught_by else self.most)

    def _doubtful(self, verdict: Verdict) -> bool:
        """Ask a lone test that failed, or one that hung, without the mutation; say whether nothing is left of them."""
        if verdict.caught_by and (len(verdict.caught_by) == 1 or verdict.remarks):
            self._doubt(verdict)
            return not verdict.caught_by
        return False

    def _doubt(self, verdict: Verdict) -> None:
        """Ask the first tests that failed again without the mutation: what fails all the same has caught nothing."""
        again = Verdict(verdict.mutation)
        self._ask(verdict.caught_by[:3], again)
        verdict.core_seconds += again.core_seconds
        self.unsound |= set(again.caught_by)
        if again.caught_by:
            verdict.remarks.append(f"fails without the mutation too: {', '.join(again.caught_by)}")
            verdict.caught_by = [test for test in verdict.caught_by if test not in again.caught_by]

    def _ask(self, tests: list[str], verdict: Verdict) -> None:
        """Run tests against the copy as it is, in as many forks as it takes to get behind what hangs or crashes."""
        while tests and self._has_time(verdict):
            limits = {"enough": self.enough - verdict.core_seconds, "most": self.most - verdict.core_seconds}
            begun = time.perf_counter()
            ended, outcomes = self.run(tests, limits | {"failed": len(verdict.caught_by)})
            # A hanging test costs time on the clock, whether or not it uses the processor.
            verdict.core_seconds += time.perf_counter() - begun if ended.hung_in else ended.core_seconds
            asked = [test for test in outcomes if not outcomes[test].startswith("not ")]
            failed = [test for test in asked if outcomes[test] not in ("passed", "skipped")]
            verdict.remarks += [f"{outcomes[t]}: {t}" for t in failed if outcomes[t] != "failed"][:3]
            verdict.caught_by += [test for test in failed if test not in verdict.caught_by]
            verdict.asked += [test for test in asked if test not in verdict.asked]
            if ended.code in (_PASSED, _SOME_FAILED, _INTERRUPTED, _NONE_LEFT):
                return
            tests = [test for test in tests if test not in outcomes]

    def run(self, tests: list[str], limits: dict) -> tuple:
        """Run tests once; return how the run ended and what became of each test, as far as the run came."""
        folder = self.server.folder / "trial"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        files = list(dict.fromkeys(test.partition("::")[0] for test in tests))
        files = [file for file in files if (self.checkout.folder / file).exists()]
        request = {
            "words": [*WORDS, f"--basetemp={folder / 'tests'}", *files],
            "tests": tests,
            "said": str(folder / "said.jsonl"),
            "log": str(folder / "log.txt"),
            "environment": {"TMPDIR": str(folder)},
            **limits,
        }
        ended = self.server.run(request, self.seconds, _START)
        outcomes = outcomes_of(folder / "said.jsonl", tests, ended.code, ended.hung_in)
        return ended, outcomes


def outcomes_of(said: Path, tests: list[str], code: int | None, hung_in: str) -> dict[str, str]:
    """Return what became of each test that a run came to; where it could not begin, every test has failed."""
    outcomes: dict[str, str] = {}
    running, begun = "", False
    for word, name, *_ in lines_of(said):
        if word == "elsewhere":
            raise RuntimeError(f"the tests ran {name} and not the copy that was broken")
        if word == "broken":
            outcomes |= {t: "cannot be imported" for t in tests if t.startswith(name)} if name else {}
        elif word == "gone":
            outcomes.setdefault(name, "not there any more")
        elif word == "begun":
            running, begun = name, True
        else:
            outcomes[name], running = word, ""
    if code in (_PASSED, _SOME_FAILED, _INTERRUPTED, _NONE_LEFT):
        return outcomes
    if not begun:
        return outcomes | {test: "hung" if hung_in else "cannot begin" for test in tests}
    if running:
        outcomes[running] = "hung" if hung_in else "crashed"
    elif hung_in or code:  # between two tests, as in a fixture of the next or at the end: of the last that ran
        last = next(reversed([name for name, word in outcomes.items() if word != "not there any more"]), tests[0])
        outcomes[last] = "hung" if hung_in else "crashed"
    return outcomes


def lines_of(said: Path) -> list[list]:
    """Return what a run has said, but for a last line that it did not end."""
    with suppress(OSError):
        return [json.loads(line) for line in said.read_text(encoding="utf-8").split("\n")[:-1]]
    return []
