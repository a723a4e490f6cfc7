"""Which tests a tier runs, and how those that must be alone keep the other worker out.

``--tier quick`` and ``--tier test`` run what ``tests/map/tiers.json`` names for them, ``--tier all`` what is not long,
``--tier rest`` what ``all`` has beyond ``test``, ``--tier long`` what is long. Without ``--tier`` pytest runs what it
is given. A test that the file does not know yet runs in ``quick`` and ``test``, unless it is marked slow or long.

What a function says of every family runs in ``all`` on those families that hold every brick in every place
(``cover.stand_ins``) and in ``long`` on the others. One that is marked ``each_family`` runs in ``all`` on every
family: it says something of a family's own file, which no other stands for.

``--share 2/3`` leaves the second of three shares of what is chosen, function by function: ``.ci/run`` asks for one on
a machine that is too slow for all of it.
"""

import fcntl
import json
import re
import shutil
import tempfile
import uuid
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
RECORD = ROOT / "tests" / "map" / "tiers.json"
LEVELS = ("quick", "test", "all", "long")
TIERS = {
    "quick": ("quick",),
    "test": ("quick", "test"),
    "rest": ("all",),
    "all": ("quick", "test", "all"),
    "long": ("long",),
}
FAMILIES = 30
"""A function with cases for at least so many families is one that runs for every family."""
FamilyCases = dict[str, dict[str, str]]
"""Functions that run for every family, each with the family of every case, by their ids."""
_TEST = re.compile(r"^(?:    )?(?:async )?def (test\w*)\(", re.MULTILINE)

Level = str | dict[str, list[str]]
"""One level for every case of a function, or the cases of the lower levels; other cases are of the level ``all``."""


@cache
def record() -> dict[str, dict[str, Level]]:
    """Return the level of each test function, by file."""
    return json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.exists() else {}


def level(file: str, function: str, case: str, marks: set[str]) -> str:
    """Return the level of one test: marks first, then the record; what is in neither is new, and quick."""
    if "long" in marks:
        return "long"
    known = record().get(file, {}).get(function, "all" if "slow" in marks else "quick")
    if isinstance(known, str):
        return known
    return next((name for name, cases in known.items() if case in cases), "all")


def level_of(item: pytest.Item) -> str:
    """Return the level of a collected test."""
    file = item.path.relative_to(ROOT).as_posix()
    function, _, case = item.name.partition("[")
    return level(file, function, case.removesuffix("]"), {mark.name for mark in item.iter_markers()})


def functions_of_families(items: Iterable[pytest.Item]) -> FamilyCases:
    """Return the functions that run for every family, each with the family of every case."""
    from orrery.families import names

    known = set(names())
    cases_of: FamilyCases = {}
    for item in items:
        given = item.callspec.params.values() if hasattr(item, "callspec") else ()
        family = next((value for value in given if isinstance(value, str) and value in known), None)
        if family is not None and item.get_closest_marker("each_family") is None:
            cases_of.setdefault(function_of(item), {})[item.nodeid] = family
    return {function: cases for function, cases in cases_of.items() if len(set(cases.values())) >= FAMILIES}


def function_of(item: pytest.Item) -> str:
    """Return a test's function: its id without the case."""
    return item.nodeid.partition("[")[0]


def taken_by_others(functions: FamilyCases) -> set[str]:
    """Return the ids of the cases of every-family functions whose family other families stand for."""
    from cover import stand_ins

    stay = stand_ins() if functions else frozenset()
    return {id for cases in functions.values() for id, family in cases.items() if family not in stay}


def one_of_each(items: Iterable[pytest.Item], functions: FamilyCases) -> set[str]:
    """Return the ids of one case of each function, or, where it runs for every family, of those of a small cover."""
    from cover import smallest_cover

    cover = set(smallest_cover()) if functions else set()
    chosen: dict[str, set[str]] = {}
    for item in items:
        function = function_of(item)
        if function not in chosen or functions.get(function, {}).get(item.nodeid) in cover:
            chosen.setdefault(function, set()).add(item.nodeid)
    return set().union(*chosen.values())


def holds_any(path: Path, levels: tuple[str, ...]) -> bool:
    """Say whether a file may hold a test of these levels, from the record and the names in its text."""
    known = record().get(path.relative_to(ROOT).as_posix(), {})
    reached = {name for value in known.values() for name in ([value] if isinstance(value, str) else value)}
    return bool(reached & set(levels)) or any(name not in known for name in _TEST.findall(path.read_text("utf-8")))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--tier", choices=sorted(TIERS), help="run the tests of one tier: see tests/tiers.py")
    parser.addoption("--cases", choices=("one", "others"), help="of each function one case, or all but that one")
    parser.addoption("--share", type=share, help="K/N: the Kth of N shares of the functions")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave files without any test of the tier unread: importing them is what a quick tier would wait for."""
    tier = config.getoption("--tier")
    if tier not in ("quick", "test") or not collection_path.name.startswith("test_") or collection_path.is_dir():
        return None
    return None if holds_any(collection_path, TIERS[tier]) else True


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    tier = config.getoption("--tier")
    if tier is None:
        return
    levels = TIERS[tier]
    functions = functions_of_families(items) if {"all", "long"} & set(levels) else {}
    taken = taken_by_others(functions)
    kept, left = [], []
    for item in items:
        level = level_of(item)
        level = "long" if level == "all" and item.nodeid in taken else level
        (kept if level in levels else left).append(item)
    config.hook.pytest_deselected(items=left)
    # Those that must be alone come last: before, each would wait with every worker for the longest test under way.
    items[:] = sorted(of_share(config, of_cases(config, kept, functions)), key=must_be_alone)


def must_be_alone(item: pytest.Item) -> bool:
    """Say whether no other test may run beside this one."""
    return item.get_closest_marker("alone") is not None


def of_cases(config: pytest.Config, items: list[pytest.Item], functions: FamilyCases) -> list[pytest.Item]:
    """Return what ``--cases`` asks for, and report the rest as deselected."""
    cases = config.getoption("--cases")
    if cases is None:
        return items
    one = one_of_each(items, functions)
    kept, left = [], []
    for item in items:
        (kept if (item.nodeid in one) == (cases == "one") else left).append(item)
    config.hook.pytest_deselected(items=left)
    return kept


def share(text: str) -> tuple[int, int]:
    """Read ``K/N`` as two numbers, of which the first is from 1 to the second."""
    number, of = map(int, text.split("/"))
    if not 1 <= number <= of:
        raise ValueError(f"no share {number} of {of}")
    return number, of


def of_share(config: pytest.Config, items: list[pytest.Item]) -> list[pytest.Item]:
    """Return the functions that ``--share`` asks for, the same on every machine, and report the rest as deselected."""
    if config.getoption("--share") is None:
        return items
    number, of = config.getoption("--share")
    kept, left = [], []
    for item in items:
        (kept if zlib.crc32(function_of(item).encode()) % of == number - 1 else left).append(item)
    config.hook.pytest_deselected(items=left)
    return kept


@contextmanager
def nothing_built() -> Iterator[None]:
    """Refuse to make weights: while files of tests are imported, every worker would make them, and no test yet asks."""
    import torch

    register = torch.nn.Module.register_parameter

    def refused(self: torch.nn.Module, name: str, value: torch.nn.Parameter | None) -> None:
        if value is not None and not value.is_meta:
            what = type(self).__name__
            raise RuntimeError(
                f"{what} is built while a file of tests is imported: build it in a fixture or cached function"
            )
        register(self, name, value)

    torch.nn.Module.register_parameter = refused  # type: ignore[method-assign]
    try:
        yield
    finally:
        torch.nn.Module.register_parameter = register  # type: ignore[method-assign]


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Iterator[None]:
    if not isinstance(collector, pytest.Module):
        return (yield)
    with nothing_built():
        return (yield)


@contextmanager
def turn(folder: Path, alone: bool) -> Iterator[None]:
    """Hold a place beside other tests, or, ``alone``, the only one.

    Who wants to be alone keeps the gate shut while he waits, so that the others cannot pass him for ever.
    """
    with (folder / "gate").open("w") as gate, (folder / "place").open("w") as place:
        fcntl.flock(gate, fcntl.LOCK_EX)
        fcntl.flock(place, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        if not alone:
            fcntl.flock(gate, fcntl.LOCK_UN)
        yield


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Let a test that is marked ``alone`` wait for the other worker's, and the other worker for it."""
    if not hasattr(item.config, "workerinput"):
        return (yield)
    folder = _shared_by_workers(item.config.workerinput["testrunuid"])
    folder.mkdir(exist_ok=True)
    with turn(folder, must_be_alone(item)):
        return (yield)


def pytest_configure(config: pytest.Config) -> None:
    """Name the run before its workers begin, so that what they share can be taken away after them."""
    if not hasattr(config, "workerinput") and config.getoption("testrunuid", None) is None:
        config.option.testrunuid = uuid.uuid4().hex


def pytest_unconfigure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        shutil.rmtree(_shared_by_workers(config.option.testrunuid), ignore_errors=True)


def _shared_by_workers(run: str) -> Path:
    return Path(tempfile.gettempdir()) / f"orrery-tests-{run}"
