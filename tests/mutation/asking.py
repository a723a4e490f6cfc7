"""Which tests are asked about a mutation, and in which order: near and cheap ones first, in stages of growing cost."""

from pathlib import Path

from mutation.drawing import package_of
from mutation.operators import Mutation
from mutation.records import SOURCE, Trace

STAGES = (10.0, 30.0, 80.0, 150.0)
"""Processor seconds after which a stage ends, all stages before it included; a fork of its own runs each."""
# What no test goes through, the defaults in the fields of a class and the lines of a module: tests that hold them.
TABLES = {
    "nn": "tests/unit/nn/test_spec_defaults.py",
    "training": "tests/unit/training/test_recipe_defaults.py",
    "serving": "tests/unit/serving/test_defaults.py",
    "errors.py": "tests/unit/test_errors.py",
    "settings.py": "tests/unit/test_settings.py",
    "__init__.py": "tests/unit/test_package.py",
    "__main__.py": "tests/unit/test_package.py",
}


def stages(mutation: Mutation, trace: Trace, source: Path = SOURCE) -> list[list[str]]:
    """Return the tests to ask, stage by stage, as many as the time allows."""
    package = package_of(mutation.file)
    tests = sorted(trace.through(mutation, source) & trace.seconds.keys(), key=lambda t: (trace.seconds[t], t))
    own, folder = Path(mutation.file).stem.strip("_"), f"tests/unit/{package}/"
    near = [test for test in tests if test.startswith(folder)]
    nearest = [test for test in near if own in test.partition("::")[0].removeprefix(folder)]
    held = package.endswith(".py") or not trace.passes(mutation)
    tables = [test for test in trace.seconds if held and test.startswith(f"{TABLES.get(package)}::")]
    ordered = [*tables, *spread(nearest, trace), *spread(near, trace), *spread(tests, trace)]
    return _cut(list(dict.fromkeys(ordered)), trace)


def spread(tests: list[str], trace: Trace) -> list[str]:
    """Take the tests of each file in turn, so that the cheapest file does not use up the time of all.

    In each turn the cheapest comes first, where the first of a file also pays what the file costs.
    """
    turns: dict[str, int] = {}
    keyed = []
    for test in tests:
        file = test.partition("::")[0]
        turns[file] = turn = turns.get(file, 0) + 1
        keyed.append((turn, trace.seconds[test] + (trace.file_seconds.get(file, 0.0) if turn == 1 else 0.0), test))
    return [test for *_, test in sorted(keyed)]


def _cut(tests: list[str], trace: Trace) -> list[list[str]]:
    """Part the tests into stages; what does not fit into the last is not asked, but one test always is."""
    by_stage: list[list[str]] = [[] for _ in STAGES]
    used, files = 0.0, set()
    for test in tests:
        file = test.partition("::")[0]
        cost = trace.seconds[test] + (0.0 if file in files else trace.file_seconds.get(file, 0.0))
        if used + cost > STAGES[-1] and any(by_stage):
            continue
        used += cost
        files.add(file)
        stage = next((n for n, limit in enumerate(STAGES) if used <= limit), len(STAGES) - 1)
        by_stage[stage].append(test)
    return [stage for stage in by_stage if stage]
