"""A plugin of pytest that writes which lines each test runs, in the process and in the programs that it starts.

The lines that a fixture of a module or a session runs belong to every test that asks for the fixture, and its seconds
to the file, for whichever of its tests is run pays them.
"""

import hashlib
import json
import os
import sys
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import coverage
import pytest

from mutation.reporting import core_seconds

PROGRAMS = Path(__file__).with_name("programs")
FOLDER, CONTEXT = "ORRERY_TRACED_INTO", "ORRERY_TRACED_FOR"


class Tracer:
    """Follows the tests of one file: a context of coverage for each test and for each shared fixture."""

    def __init__(self, target: Path) -> None:
        self.target, self.programs = target, target.with_suffix(".programs")
        self.tests: dict[str, float] = {}
        self.fixtures: dict[str, set[str]] = {}
        self.shared = self.collected = 0.0
        self.depth = 0
        self.passed: set[str] = set()
        self.failed: list[str] = []
        self.begun = core_seconds()
        self.source = str(Path("src/orrery").resolve())
        self.coverage = coverage.Coverage(data_file=None, include=[f"{self.source}*/*"], config_file=False)
        # A file whose tests run no line of the program is no fault.
        self.coverage.set_option("run:disable_warnings", ["no-data-collected"])
        self.coverage.start()
        self._switch("")

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self.collected = core_seconds() - self.begun
        self.programs.mkdir(parents=True, exist_ok=True)
        os.environ[FOLDER] = str(self.programs)
        os.environ["PYTHONPATH"] = os.pathsep.join([str(PROGRAMS), os.environ.get("PYTHONPATH", "")])

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        start, shared = core_seconds(), self.shared
        self.fixtures[item.nodeid] = set(getattr(item, "fixturenames", ()))
        self._switch(item.nodeid)
        yield
        self._switch("")
        self.tests[item.nodeid] = core_seconds() - start - (self.shared - shared)

    @pytest.hookimpl(hookwrapper=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef, request: pytest.FixtureRequest) -> Iterator[None]:
        if fixturedef.scope == "function":
            yield
            return
        before, start = self.context, core_seconds()
        self.depth += 1
        self._switch(f"fixture {fixturedef.argname}")
        yield
        self._switch(before)
        self.depth -= 1
        if not self.depth:  # one that another asks for is part of the other's time
            self.shared += core_seconds() - start

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed.append(report.nodeid)
        elif report.when == "call" and report.passed:
            self.passed.add(report.nodeid)

    def pytest_sessionfinish(self) -> None:
        self.coverage.stop()
        tests = sorted(self.passed - set(self.failed))
        lines: dict[str, dict[int, int]] = {}
        bits_of: dict[str, int] = {}
        for context, file, line in chain(self._measured(), self._of_programs()):
            if context not in bits_of:
                bits_of[context] = sum(1 << n for n, test in enumerate(tests) if self._belongs(context, test))
            if bits := bits_of[context]:
                at = lines.setdefault(file, {})
                at[line] = at.get(line, 0) | bits
        content = {
            "tests": {test: round(self.tests[test], 3) for test in tests},
            "file_seconds": round(self.collected + self.shared, 3),
            "failed": sorted(set(self.failed)),
            "helpers": self._helpers(),
            "lines": {file: {line: f"{bits:x}" for line, bits in at.items()} for file, at in lines.items()},
        }
        self.target.write_text(json.dumps(content))

    def _switch(self, context: str) -> None:
        self.context = context
        self.coverage.switch_context(context)
        os.environ[CONTEXT] = context

    def _belongs(self, context: str, test: str) -> bool:
        return context == test or context.removeprefix("fixture ") in self.fixtures[test]

    def _measured(self) -> Iterator[tuple[str, str, int]]:
        data = self.coverage.get_data()
        for file in data.measured_files():
            name = os.path.relpath(file, self.source)
            for line, contexts in data.contexts_by_lineno(file).items():
                yield from ((context, name, line) for context in contexts if context)

    def _of_programs(self) -> Iterator[tuple[str, str, int]]:
        for path in sorted(self.programs.glob("*.json")):
            part = json.loads(path.read_text())
            for file, lines in part["lines"].items():
                name = os.path.relpath(file, self.source)
                yield from ((part["context"], name, line) for line in lines if part["context"])

    def _helpers(self) -> dict[str, str]:
        """Return the digest of each file of the tests that was imported: as long as it stays, the trace does."""
        root, digests = Path("tests").resolve(), {}
        for module in list(sys.modules.values()):
            path = getattr(module, "__file__", None)
            if path and Path(path).is_relative_to(root) and not Path(path).is_relative_to(root / "mutation"):
                digests[Path(path).relative_to(root).as_posix()] = hashlib.sha256(Path(path).read_bytes()).hexdigest()[
                    :12
                ]
        return dict(sorted(digests.items()))
