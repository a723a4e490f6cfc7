"""Choose which tests the tiers ``quick`` and ``test`` run, from what a trace and trials of mutations have shown.

    .venv/bin/python tests/map/choose.py --quick 110 --test 480      processor seconds of the chosen tests

Writes ``tiers.json``. A test is worth what only it adds, for its cost: mutations that it catches, lines that it runs,
a test function of which no case runs yet, and, where a function has a case for each family, a case of each family of
the smallest cover. The greedy choice ends when nothing is added or the seconds are used.
"""

import argparse
import heapq
import json
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from zlib import crc32

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from cover import smallest_cover
from mutation.records import ROOT, Records, load
from tiers import FAMILIES

TARGET = Path(__file__).with_name("tiers.json")
WORTH = {"mutant": 3.0, "function": 1.0, "family": 0.5, "line": 0.02}
"""What each kind of need is worth, in the units of the greedy choice."""
COMMON = 200
"""A line that more tests run than this is run by any choice: it decides nothing."""
TIMES = 3
"""Kinds of tests, by their names, of which each line wants one: a line that one test runs is seldom tested."""
START = 0.005
"""Seconds that pytest takes for a test of its own."""

Need = tuple[str, ...]


def needs_of(records: Records, families: Iterable[str]) -> dict[str, set[Need]]:
    """Return what each test can add."""
    needs: dict[str, set[Need]] = {test: {("function", function_of(test))} for test in records.seconds}
    for key, tests in records.caught_by.items():
        for test in tests:
            if test in needs:
                needs[test].add(("mutant", key))
    for file, lines in records.lines.items():
        for line, tests in lines.items():
            if len(tests) <= COMMON:
                for test in tests:
                    needs[test].add(("line", file, str(line), str(crc32(test.encode()) % TIMES)))
    cover = set(families)
    for test, family in family_cases(records.seconds).items():
        if family in cover:
            needs[test].add(("family", function_of(test), family))
    return needs


def family_cases(tests: Iterable[str]) -> dict[str, str]:
    """Return the family of each case of a function that has cases for nearly all families."""
    from orrery.families import names

    known = sorted(names(), key=len, reverse=True)
    of = {test: family for test in tests if (family := _family(test, known))}
    counts: dict[str, set[str]] = {}
    for test, family in of.items():
        counts.setdefault(function_of(test), set()).add(family)
    return {test: family for test, family in of.items() if len(counts[function_of(test)]) >= FAMILIES}


def _family(test: str, known: list[str]) -> str | None:
    """Return the family that a case is named after: the first word of its parameters, or one of them."""
    case = test.partition("[")[2].removesuffix("]")
    return next(
        (name for name in known if case == name or case.startswith(f"{name}-") or f"-{name}-" in f"-{case}-"), None
    )


def function_of(test: str) -> str:
    """Return a test's function: its id without the case."""
    return test.partition("[")[0]


def greedy(needs: Mapping[str, set[Need]], records: Records, seconds: float, begun: Iterable[str] = ()) -> list[str]:
    """Return the tests that add most for their cost, those of ``begun`` first, within the seconds."""
    chosen = list(begun)
    met: set[Need] = set().union(*(needs[test] for test in chosen))
    files = {file_of(test) for test in chosen}
    used = sum(records.seconds[test] + START for test in chosen)
    used += sum(records.trace.file_seconds.get(file, 0.0) for file in files)

    def cost(test: str) -> float:
        shared = 0.0 if file_of(test) in files else records.trace.file_seconds.get(file_of(test), 0.0)
        return records.seconds[test] + shared + START

    def rate(test: str) -> float:
        return -sum(WORTH[need[0]] for need in needs[test] - met) / cost(test)

    waiting = [(rate(test), test) for test in needs.keys() - set(chosen)]
    heapq.heapify(waiting)
    while waiting:
        _, test = heapq.heappop(waiting)
        now = rate(test)
        if now and waiting and now > waiting[0][0]:
            heapq.heappush(waiting, (now, test))
        elif now and used + cost(test) <= seconds:
            used += cost(test)
            files.add(file_of(test))
            met |= needs[test]
            chosen.append(test)
    return chosen


def file_of(test: str) -> str:
    """Return the file of a test."""
    return test.partition("::")[0]


def collected() -> list[str]:
    """Return the ids of all tests."""
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", "tests"]
    output = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [line for line in output.splitlines() if line.startswith("tests/") and "::" in line]


def written(tests: Iterable[str], levels: Mapping[str, Iterable[str]]) -> dict[str, dict[str, object]]:
    """Return the record: for each file and function one level, or the cases of the lower levels."""
    of = {test: level for level, chosen in levels.items() for test in chosen}
    cases: dict[str, dict[str, dict[str, list[str]]]] = {}
    for test in sorted(tests):
        name, _, case = test.partition("[")
        file, _, function = name.rpartition("::")
        by_level = cases.setdefault(file_of(file or name), {}).setdefault(function, {})
        by_level.setdefault(of.get(test, "all"), []).append(case.removesuffix("]"))
    return {
        file: {
            name: next(iter(cases)) if len(cases) == 1 else {k: cases[k] for k in ("quick", "test") if k in cases}
            for name, cases in sorted(functions.items())
        }
        for file, functions in sorted(cases.items())
    }


def text_of(record: Mapping[str, Mapping[str, object]]) -> str:
    """Return the record as text: a line a function, so that a change of it can be read."""
    parts = []
    for file, functions in record.items():
        rows = (f" {json.dumps(name)}: {json.dumps(level, ensure_ascii=False)}" for name, level in functions.items())
        parts.append(f"{json.dumps(file)}: {{\n" + ",\n".join(rows) + "\n}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def rules_of_the_house(seconds: Mapping[str, float], most: float) -> list[str]:
    """Return the tests of what the repository says and holds: no mutation of the program asks for those."""
    return [test for test in seconds if file_of(test).startswith("tests/architecture/") and seconds[test] <= most]


def main() -> None:
    """Choose, write the record, and say what each tier has and lacks."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", type=float, default=110.0, help="processor seconds of the tier quick")
    parser.add_argument("--test", type=float, default=480.0, help="processor seconds of the tier test, quick included")
    parser.add_argument("--work", type=Path, default=ROOT / ".mutants", help="where trace and verdicts are kept")
    parser.add_argument("--output", type=Path, default=TARGET)
    words = parser.parse_args()
    records = load(words.work)
    needs = needs_of(records, smallest_cover())
    quick = greedy(needs, records, words.quick, begun=rules_of_the_house(records.seconds, 0.5))
    known = set(quick)
    more = [test for test in rules_of_the_house(records.seconds, 5) if test not in known]
    test = greedy(needs, records, words.test, begun=[*quick, *more])
    words.output.write_text(text_of(written(collected(), {"test": test, "quick": quick})), encoding="utf-8")
    every = set().union(*needs.values())
    for name, chosen in (("quick", quick), ("test", test)):
        met = set().union(*(needs[test] for test in chosen))
        shares = ", ".join(
            f"{kind}s {sum(n[0] == kind for n in met):,} of {sum(n[0] == kind for n in every):,}" for kind in WORTH
        )
        seconds = sum(records.seconds[test] for test in chosen)
        print(f"{name}: {len(chosen):,} of {len(needs):,} tests, {seconds:.0f} processor seconds; {shares}")


if __name__ == "__main__":
    os.chdir(ROOT)
    main()
