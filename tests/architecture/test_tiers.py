"""The tiers hold what is recorded, a new test runs at once, and who must be alone is alone."""

import json
import re
import threading
from pathlib import Path

import pytest
import torch

import tiers
from cover import placed, smallest_cover, specs, stand_ins
from orrery.families import names
from tiers import (
    FAMILIES,
    LEVELS,
    ROOT,
    TIERS,
    functions_of_families,
    holds_any,
    level,
    nothing_built,
    of_cases,
    of_share,
    record,
    share,
    taken_by_others,
    turn,
)

RECORD = {
    "tests/test_a.py": {"test_one": "quick", "test_two": {"quick": ["gpt2"], "test": ["t5", ""]}, "test_three": "all"}
}


@pytest.fixture
def recorded(monkeypatch, tmp_path) -> Path:
    """A project of one file of tests with a record."""
    (tmp_path / "tests").mkdir()
    monkeypatch.setattr(tiers, "ROOT", tmp_path)
    monkeypatch.setattr(tiers, "RECORD", tmp_path / "tiers.json")
    tiers.RECORD.write_text(json.dumps(RECORD))
    record.cache_clear()
    yield tmp_path / "tests" / "test_a.py"
    record.cache_clear()


@pytest.mark.parametrize(
    ("function", "case", "marks", "expected"),
    [
        ("test_one", "", set(), "quick"),
        ("test_one", "anything", {"slow"}, "quick"),
        ("test_one", "", {"long"}, "long"),
        ("test_two", "gpt2", set(), "quick"),
        ("test_two", "t5", set(), "test"),
        ("test_two", "", set(), "test"),
        ("test_two", "a case that came later", set(), "all"),
        ("test_three", "", set(), "all"),
        ("test_new", "", set(), "quick"),
        ("test_new", "x", {"slow"}, "all"),
    ],
)
def test_a_test_has_the_level_of_its_mark_or_of_the_record_and_a_new_one_is_quick(
    recorded, function, case, marks, expected
):
    assert level("tests/test_a.py", function, case, marks) == expected


def test_a_file_is_read_where_it_holds_a_test_of_the_tier_or_one_that_is_not_known(recorded):
    recorded.write_text("def test_one(): ...\ndef test_three(): ...\n")
    assert holds_any(recorded, TIERS["quick"])
    tiers.RECORD.write_text(json.dumps({"tests/test_a.py": {"test_one": "all", "test_three": "all"}}))
    record.cache_clear()
    assert not holds_any(recorded, TIERS["test"])
    recorded.write_text("def test_one(): ...\nclass TestMore:\n    async def test_new(self): ...\n")
    assert holds_any(recorded, TIERS["quick"])


def test_the_tiers_part_all_tests():
    assert sorted(TIERS["test"] + TIERS["rest"] + TIERS["long"]) == sorted(LEVELS)
    assert set(TIERS["quick"]) < set(TIERS["test"]) < set(TIERS["all"])


class Case:
    """A collected case, as far as the choice of families looks at it."""

    def __init__(self, function: str, family: str, *marks: str) -> None:
        self.path, self.name, self.nodeid = (
            Path("test_a.py"),
            f"{function}[{family}]",
            f"test_a.py::{function}[{family}]",
        )
        self.callspec, self.marks = type("Callspec", (), {"params": {"family": family, "other": 3}})(), marks

    def get_closest_marker(self, name: str) -> str | None:
        """Return a mark, if the case has it."""
        return name if name in self.marks else None


def test_the_families_that_stand_for_others_hold_every_brick_in_every_place():
    held = {name: placed(spec) for name, spec in specs().items()}
    assert frozenset().union(*(held[name] for name in stand_ins())) == frozenset().union(*held.values())
    assert len(stand_ins()) < 0.6 * len(held)


def test_what_is_said_of_every_family_runs_on_those_that_stand_for_others():
    every, few = [Case("test_law", name) for name in names()], [Case("test_few", "llama"), Case("test_few", "gpt2")]
    marked = [Case("test_files", name, "each_family") for name in names()]
    others = sorted(set(names()) - stand_ins())
    assert len(others) > FAMILIES
    taken = taken_by_others(functions_of_families([*every, *few, *marked]))
    assert taken == {f"test_a.py::test_law[{name}]" for name in others}
    assert taken_by_others(functions_of_families(few)) == set()


class Config:
    """A pytest that was asked for some cases."""

    def __init__(self, **options: object) -> None:
        self.options, self.hook = options, self
        self.left: list[Case] = []

    def getoption(self, name: str) -> object:
        """Return what was asked for."""
        return self.options[name]

    def pytest_deselected(self, items: list[Case]) -> None:
        """Remember what is left out."""
        self.left += items


def test_one_case_of_each_function_and_the_others_are_all_cases():
    every, few = [Case("test_law", name) for name in names()], [Case("test_few", "llama"), Case("test_few", "gpt2")]
    items, functions = [*every, *few], functions_of_families([*every, *few])
    one, others = (Config(**{"--cases": cases}) for cases in ("one", "others"))
    kept = of_cases(one, items, functions)
    assert {case.name for case in kept if case in few} == {"test_few[llama]"}
    assert {case.callspec.params["family"] for case in kept if case in every} >= set(smallest_cover())
    assert of_cases(others, items, functions) == [case for case in items if case not in kept] == one.left
    assert others.left == kept
    assert of_cases(Config(**{"--cases": None}), items, functions) == items


def test_what_is_recorded_exists():
    gone = []
    for file, functions in record().items():
        text = (ROOT / file).read_text(encoding="utf-8") if (ROOT / file).exists() else ""
        names = set(re.findall(r"def (test\w*)\(", text))
        gone += [f"{file}::{name}" for name in functions if name.rpartition("::")[2] not in names]
    assert gone == [], "choose the tiers again: tests/map/choose.py"


def test_no_weight_is_made_while_files_of_tests_are_imported():
    with nothing_built():
        with pytest.raises(RuntimeError, match="Linear is built while a file of tests is imported"):
            torch.nn.Linear(2, 2)
        torch.nn.Linear(2, 2, device="meta")
    assert torch.nn.Linear(2, 2).weight.shape == (2, 2)


def test_who_must_be_alone_waits_for_the_others_and_is_passed_by_none(tmp_path):
    said, first, ready = [], threading.Event(), threading.Event()

    def work(name: str, alone: bool, until: threading.Event) -> None:
        with turn(tmp_path, alone):
            said.append(f"{name} begins")
            ready.set()
            until.wait(5)
            said.append(f"{name} ends")

    now = threading.Event()
    now.set()
    started = [threading.Thread(target=work, args=("beside", False, first))]
    started[0].start()
    assert ready.wait(5)
    started.append(threading.Thread(target=work, args=("alone", True, now)))
    started[1].start()
    while not _is_shut(tmp_path):
        pass
    started.append(threading.Thread(target=work, args=("later", False, now)))
    started[2].start()
    first.set()
    for thread in started:
        thread.join(5)
    assert said == ["beside begins", "beside ends", "alone begins", "alone ends", "later begins", "later ends"]


def _is_shut(folder: Path) -> bool:
    import fcntl

    with (folder / "gate").open("w") as gate:
        try:
            fcntl.flock(gate, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


class _Config:
    """What a selection asks pytest: an option, and a hook that is told what was left out."""

    def __init__(self, share):
        self.share, self.hook, self.left = share, self, []

    def getoption(self, name):
        return self.share

    def pytest_deselected(self, items):
        self.left += items


class _Item:
    def __init__(self, nodeid):
        self.nodeid = nodeid


def test_the_shares_part_the_functions_and_keep_the_cases_of_one_together():
    items = [_Item(f"tests/test_a.py::test_{number}[{case}]") for number in range(60) for case in ("x", "y")]
    configs = [_Config(share(f"{number}/3")) for number in (1, 2, 3)]
    shares = [of_share(config, items) for config in configs]
    assert sorted(item.nodeid for kept in shares for item in kept) == sorted(item.nodeid for item in items)
    assert all(
        kept and len(kept) + len(config.left) == len(items) for kept, config in zip(shares, configs, strict=True)
    )
    for kept in shares:
        ids = {item.nodeid for item in kept}
        assert all(id.replace("[x]", "[y]") in ids for id in ids)
    assert of_share(_Config(None), items) is items


@pytest.mark.parametrize("text", ["0/2", "3/2", "2", "a/b", "1/0"])
def test_a_share_that_is_none_is_refused(text):
    with pytest.raises(ValueError, match=r"no share|values to unpack|invalid literal"):
        share(text)
