"""The map from each source file to the tests that are worth running after a change of it, within a time."""

import heapq
import json
import os
from pathlib import Path

from mutation.drawing import package_of
from mutation.records import Records

SECONDS = 40.0
MOST_BYTES = 400_000
_MOST_TESTS = 40


def write_map(path: Path, records: Records, source: Path, complete: bool = True) -> str:
    """Write the map, with as many tests for each file as its size allows; return what was written, in words.

    Where the trace is not of all tests, only packages whose own unit tests it holds are written: of the others it knows
    no more than what runs them by the way.
    """
    files = sorted(os.path.relpath(file, source) for file in source.parent.glob("orrery*/**/*.py"))
    known = {test.split("/")[2] for test in records.seconds if test.startswith("tests/unit/")}
    chosen = {f: worth_running(f, records) if complete or package_of(f) in known else [] for f in files}
    for most in range(_MOST_TESTS, 0, -1):
        text = _text({file: tests[:most] for file, tests in chosen.items() if tests}, records)
        if len(text.encode()) <= MOST_BYTES:
            break
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    count = sum(bool(tests) for tests in chosen.values())
    partly = "" if complete else " (not all tests are traced: only packages whose own are)"
    return f"{count} of {len(files)} source files{partly}, at most {most} tests each, {len(text.encode()):,} bytes"


def worth_running(file: str, records: Records, seconds: float = SECONDS) -> list[str]:
    """Return the tests that caught mutations of a file, then those that run its lines; the most for a second first."""
    seen: dict[str, set[object]] = {}
    for key, tests in records.caught_by.items():
        if key.startswith(f"{file}:"):
            for test in tests:
                seen.setdefault(test, set()).add(key)
    ran: dict[str, set[object]] = {}
    for line, tests in records.lines.get(file, {}).items():
        for test in tests:
            ran.setdefault(test, set()).add(line)
    chosen: list[str] = []
    for cover in (seen, ran):
        chosen = _greedy(cover, records, chosen, seconds)
    return chosen


def _greedy(cover: dict[str, set[object]], records: Records, chosen: list[str], seconds: float) -> list[str]:
    """Add to the chosen what covers most for its cost until all is covered or the time is up."""
    chosen = list(chosen)
    covered = set().union(*(cover.get(test, set()) for test in chosen))
    files = {test.partition("::")[0] for test in chosen}
    used = sum(records.seconds.get(test, 0.0) for test in chosen)
    used += sum(records.trace.file_seconds.get(file, 0.0) for file in files)

    def cost(test: str) -> float:
        file = test.partition("::")[0]
        return records.seconds[test] + (0.0 if file in files else records.trace.file_seconds.get(file, 0.0)) + 0.01

    # What a test adds only shrinks, and what it costs only falls once, when its file is chosen: both are looked at
    # again when the test is the best that is left.
    waiting = [(-len(c) / cost(test), test) for test, c in cover.items() if test in records.seconds]
    heapq.heapify(waiting)
    while waiting:
        _, test = heapq.heappop(waiting)
        worth = -len(cover[test] - covered) / cost(test)
        if waiting and worth and (worth, test) > waiting[0]:
            heapq.heappush(waiting, (worth, test))
        elif worth and used + cost(test) <= seconds:
            used += cost(test)
            files.add(test.partition("::")[0])
            covered |= cover[test]
            chosen.append(test)
    return chosen


def _text(chosen: dict[str, list[str]], records: Records) -> str:
    """Return the map as text: each test is named once, under its file, and numbered in that order."""
    tests = sorted({test for names in chosen.values() for test in names})
    number = {test: n for n, test in enumerate(tests)}
    by_file: dict[str, dict[str, float]] = {}
    for test in tests:
        file, _, name = test.partition("::")
        by_file.setdefault(file, {})[name] = round(records.seconds[test], 2)
    costs = {file: round(records.trace.file_seconds.get(file, 0.0), 2) for file in by_file}
    lines = {file: [number[test] for test in names] for file, names in sorted(chosen.items())}
    parts = [_rows("tests", by_file), _rows("file_seconds", costs), _rows("files", lines)]
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _rows(name: str, content: dict) -> str:
    """Return one table with a row a line, so that a change of it is read line by line."""
    rows = (f"{json.dumps(key)}: {json.dumps(value, separators=(',', ':'))}" for key, value in content.items())
    return f'"{name}": {{\n' + ",\n".join(rows) + "\n}"
