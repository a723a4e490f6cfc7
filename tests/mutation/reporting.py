"""Plugins of pytest inside a fork: only the asked tests are run, what they say is written at once, within a time."""

import json
import resource
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest


def plugins(request: dict) -> list[object]:
    """Return the plugins that a request asks for."""
    extensions: list[object] = [Reporter(request)]
    if request.get("trace"):
        from mutation.tracing import Tracer

        extensions.append(Tracer(Path(request["trace"])))
    return extensions


def core_seconds() -> float:
    """Return the processor seconds of this process and of those that it has waited for."""
    of = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + of.ru_utime + of.ru_stime


class Reporter:
    """Writes a line when a test begins and one when it has ended; stops when the time is up."""

    def __init__(self, request: dict) -> None:
        self.said = Path(request["said"])
        self.asked: list[str] | None = request.get("tests")
        self.enough, self.most = request.get("enough", 1e9), request.get("most", 1e9)
        self.failed = request.get("failed", 0)
        self.begun = core_seconds()
        self.source = Path("src").resolve()

    def say(self, *words: object) -> None:
        with self.said.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(words) + "\n")

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.failed += 1
            self.say("broken", report.nodeid)

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        if self.asked is None:
            return
        kept = chosen(items, self.asked)
        ids = {item.nodeid for item in kept}
        config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in ids])
        items[:] = kept
        for test in self.asked:
            if test not in ids:
                self.say("gone", test)

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        start = core_seconds()
        if start - self.begun > (self.enough if self.failed else self.most):
            item.session.shouldstop = "the time of this mutation is up"
        self.outcome = "passed"
        self.say("begun", item.nodeid)
        yield
        self.failed += self.outcome == "failed"
        self.say(self.outcome, item.nodeid, round(core_seconds() - start, 4))

    def pytest_sessionfinish(self) -> None:
        """Say where the program came from, if not from the copy: then nothing that was asked means anything."""
        place = getattr(sys.modules.get("orrery"), "__file__", None)
        if place and not Path(place).is_relative_to(self.source):
            self.say("elsewhere", place)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.outcome = "failed"
        elif report.skipped and self.outcome == "passed":
            self.outcome = "skipped"


def chosen(items: list[pytest.Item], asked: list[str]) -> list[pytest.Item]:
    """Return the asked tests, file by file in the order of the asking, so that a file's fixtures are made once.

    Where the case of a function is gone, for a mutation has changed the name of the case, its other cases stand for it.
    """
    ids = {item.nodeid for item in items}
    functions = {test.partition("[")[0] for test in asked if test not in ids}
    place = {file: n for n, file in enumerate(dict.fromkeys(test.partition("::")[0] for test in asked))}
    wanted = set(asked)
    kept = [i for i in items if i.nodeid in wanted or i.nodeid.partition("[")[0] in functions]
    return sorted(kept, key=lambda item: place.get(item.nodeid.partition("::")[0], len(place)))
