"""The map from each source file to the tests that are worth running after a change of it, within a time."""

import heapq
import json
import os
from pathlib import Path

from mutation.drawing import package_of
from mutation.records import Records

SECONDS = 40.0
MOST_BYTES = 1_000_000
_MOST_TESTS = 40
_ROUNDS = 4


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
    """Return the tests that caught mutations of a file, then those of its name, then all that run its lines.

    A line that one test runs may be broken and pass: after all lines are covered they are covered again, first by
    tests of other functions, until the time is up. Of each kind the most for a second comes first.
    """
    seen: dict[str, set[object]] = {}
    for key, tests in records.caught_by.items():
        if key.startswith(f"{file}:"):
            for test in tests:
                seen.setdefault(test, set()).add(key)
    ran: dict[str, set[object]] = {}
    for line, tests in records.lines.get(file, {}).items():
        for test in tests:
            ran.setdefault(test, set()).add(line)
    chosen = _greedy(seen, records, [], seconds)
    chosen += [test for test in _own(ran, file, records) if test not in chosen]
    for number in range(_ROUNDS):  # the last ones with further cases of the functions chosen before
        had = {test if number >= _ROUNDS // 2 else _function(test) for test in chosen}
        others = {t: lines for t, lines in ran.items() if t not in had and _function(t) not in had}
        chosen = _greedy(others, records, chosen, seconds)
    return chosen


def _function(test: str) -> str:
    return test.partition("[")[0]


def _own(ran: dict[str, set[object]], file: str, records: Records, seconds: float = SECONDS / 2) -> list[str]:
    """Return tests of a file's own name, in ``test_NAME.py`` or the case ``[NAME]``, that run most of it."""
    stem = Path(file).stem.strip("_")
    named = [t for t in ran if Path(t.partition("::")[0]).name.startswith(f"test_{stem}") or t.endswith(f"[{stem}]")]
    chosen, used, files = [], 0.0, set()
    for test in sorted(named, key=lambda test: (-len(ran[test]), records.seconds.get(test, seconds))):
        place = test.partition("::")[0]
        cost = records.seconds.get(test, seconds) + (records.trace.file_seconds.get(place, 0.0) * (place not in files))
        if used + cost <= seconds and len(chosen) < _MOST_TESTS // 2:
            used += cost
            files.add(place)
            chosen.append(test)
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
