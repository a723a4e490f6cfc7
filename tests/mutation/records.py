"""What a trace and the trials found out, read from the folder in which they are kept.

``load(work)`` gives all of it: which tests catch a mutation, which tests run a line, and how long a test takes.
"""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from mutation.operators import Mutation
from mutation.source import functions_of, importers, statement_around

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "orrery"
VERSION = 1  # of the parts; older ones are made again


@dataclass
class Trace:
    """The lines that each test of a sound run went through, its seconds, and those of its file for all its tests."""

    seconds: dict[str, float] = field(default_factory=dict)
    lines: dict[str, dict[int, set[str]]] = field(default_factory=dict)
    file_seconds: dict[str, float] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)

    def through(self, mutation: Mutation, source: Path = SOURCE) -> set[str]:
        """Return the tests that run the mutated lines, or else those that most likely depend on them."""
        by_line = self.lines.get(mutation.file, {})
        ran = self._union(mutation.file, range(mutation.line, mutation.end_line + 1))
        if ran:
            return ran
        path = source / mutation.file
        within = [f for f in functions_of(path).values() if f.first <= mutation.line <= f.last]
        if within:
            statement = statement_around(path.read_text(encoding="utf-8"), mutation.line)
            function = range(within[0].first, within[0].last + 1)
            ran = self._union(mutation.file, statement) or self._union(mutation.file, function)
            if ran:
                return ran
        ran = set().union(*by_line.values())
        return ran or set().union(*(self._union(file) for file in importers(source).get(mutation.file, ())))

    def passes(self, mutation: Mutation) -> bool:
        """Say whether any test runs the mutated lines."""
        return bool(self._union(mutation.file, range(mutation.line, mutation.end_line + 1)))

    def only(self, wanted: Iterable[str]) -> "Trace":
        """Return the trace of some tests alone, named by their ids, their functions or their files."""
        names = set(wanted)
        kept = {t for t in self.seconds if names & {t, t.partition("[")[0], t.partition("::")[0]}}
        lines = {file: {line: tests & kept for line, tests in by_line.items()} for file, by_line in self.lines.items()}
        return Trace({t: s for t, s in self.seconds.items() if t in kept}, lines, self.file_seconds, self.failed)

    def _union(self, file: str, lines: Iterable[int] | None = None) -> set[str]:
        by_line = self.lines.get(file, {})
        return set().union(*(by_line.get(line, set()) for line in (by_line if lines is None else lines)))


@dataclass
class Records:
    """All that is known: the tests that catch each mutation, and the trace."""

    caught_by: dict[str, list[str]]
    trace: Trace

    @property
    def lines(self) -> dict[str, dict[int, set[str]]]:
        """Return, for each file and line, the tests that run it."""
        return self.trace.lines

    @property
    def seconds(self) -> dict[str, float]:
        """Return the processor seconds of each test, measured under the tracer."""
        return self.trace.seconds


def load(work: Path, verdicts: Iterable[Path] | None = None) -> Records:
    """Return what the folder holds; of verdicts all, or those of some files."""
    caught_by: dict[str, list[str]] = {}
    for row in rows_of(work.glob("verdicts-*.jsonl") if verdicts is None else verdicts):
        tests = caught_by.setdefault(row["key"], [])
        tests += [test for test in row["caught_by"] if test not in tests]
    return Records(caught_by, read_trace(work / "trace"))


def rows_of(paths: Iterable[Path]) -> list[dict]:
    """Return the verdicts of some files; a last line that a kill has cut off is none."""
    rows = []
    for path in sorted(paths):
        for line in path.read_text(encoding="utf-8").split("\n")[:-1]:
            rows.append(json.loads(line))
    return rows


def digest_of(path: Path) -> str:
    """Return a short digest of a file, empty where there is none."""
    return hashlib.sha256(path.read_bytes()).hexdigest()[:12] if path.exists() else ""


def part_of(folder: Path, test_file: str) -> Path:
    """Return where the trace of one file of tests is kept."""
    return folder / f"{test_file.removeprefix('tests/').removesuffix('.py').replace('/', '~')}.part.json"


def keep(raw: Path, test_file: str, target: Path, root: Path = ROOT) -> None:
    """Write one part of the trace, its lines counted from the beginning of the function that they stand in."""
    part = json.loads(raw.read_text())
    kept: dict[str, dict[str, list]] = {}
    for file, lines in part.pop("lines").items():
        for name, function in functions_of(root / "src" / "orrery" / file).items():
            tests: dict[str, list[int]] = {}
            for line in range(function.body, function.last + 1):
                if str(line) in lines:
                    tests.setdefault(lines[str(line)], []).append(line - function.first)
            if tests:
                kept.setdefault(file, {})[name] = [function.digest, tests]
    part |= {"version": VERSION, "functions": kept, "digest": digest_of(root / test_file)}
    written = target.with_suffix(".new")
    written.write_text(json.dumps(part))
    written.rename(target)


def is_fresh(path: Path, test_file: str, root: Path = ROOT) -> bool:
    """Say whether a part was made of the present test, its helpers, and the present functions that it runs."""
    if not path.exists():
        return False
    part = json.loads(path.read_text())
    if part.get("version") != VERSION or part["digest"] != digest_of(root / test_file):
        return False
    if any(digest_of(root / "tests" / helper) != digest for helper, digest in part["helpers"].items()):
        return False
    for file, functions in part["functions"].items():
        now = functions_of(root / "src" / "orrery" / file)
        if any(name not in now or now[name].digest != digest for name, (digest, _) in functions.items()):
            return False
    return True


def read_trace(folder: Path, source: Path = SOURCE) -> Trace:
    """Return the trace of all parts; of a function that has changed, every line counts for all tests that ran it."""
    trace = Trace()
    for path in sorted(folder.glob("*.part.json")):
        part = json.loads(path.read_text())
        tests = list(part["tests"])
        trace.seconds |= part["tests"]
        trace.failed += part["failed"]
        if tests:
            trace.file_seconds[tests[0].partition("::")[0]] = part["file_seconds"]
        sets = {}
        for file, functions in part["functions"].items():
            now, by_line = functions_of(source / file), trace.lines.setdefault(file, {})
            for name, (digest, by_tests) in functions.items():
                if name not in now:
                    continue
                first, body, last = now[name].first, now[name].body, now[name].last
                for bits, offsets in by_tests.items():
                    if bits not in sets:
                        number = int(bits, 16)
                        sets[bits] = [test for n, test in enumerate(tests) if number >> n & 1]
                    same = digest == now[name].digest
                    for line in (first + offset for offset in offsets) if same else range(body, last + 1):
                        by_line.setdefault(line, set()).update(sets[bits])
    return trace
