"""A pytest plugin that writes which lines each test runs and how long it takes; loaded with ``-p mutation.tracing``."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import coverage
import pytest

FOLDER = "ORRERY_MUTATION_TRACE"


class Tracer:
    """Follows one process: a context of coverage for each test, and its seconds."""

    def __init__(self, folder: Path) -> None:
        self.target = folder / f"{os.environ.get('PYTEST_XDIST_WORKER', 'main')}.json"
        self.seconds: dict[str, float] = {}
        self.coverage = coverage.Coverage(data_file=None, include=["*/src/orrery/*"], config_file=False)
        self.coverage.start()
        self.coverage.switch_context("import")

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self.coverage.switch_context(item.nodeid)
        yield
        self.coverage.switch_context("import")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.outcome == "failed":
            self.seconds.pop(report.nodeid, None)
        elif report.when == "call" and report.outcome == "passed":
            self.seconds[report.nodeid] = report.duration

    def pytest_sessionfinish(self) -> None:
        self.coverage.stop()
        data, lines = self.coverage.get_data(), {}
        bit = {test: 1 << index for index, test in enumerate(self.seconds)}
        for file in data.measured_files():
            name = file.rpartition("/orrery/")[2]
            tests = {
                line: {bit.get(test, 0) for test in found} for line, found in data.contexts_by_lineno(file).items()
            }
            lines[name] = {line: f"{sum(bits):x}" for line, bits in tests.items()}
        self.target.write_text(json.dumps({"seconds": self.seconds, "lines": lines}))


def pytest_configure(config: pytest.Config) -> None:
    controller = hasattr(config.option, "numprocesses") and config.option.numprocesses and not _is_worker()
    if os.environ.get(FOLDER) and not controller:
        config.pluginmanager.register(Tracer(Path(os.environ[FOLDER])), "mutation-tracer")


def _is_worker() -> bool:
    return "PYTEST_XDIST_WORKER" in os.environ
