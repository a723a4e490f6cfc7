"""The battery of bad inputs: no unexpected exception, no loss, no silence, whatever is typed, spoilt or closed."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from battery import places, recipe_keys, spoilt, surroundings, verbs, world
from battery.case import Case, faults

GROUPS: dict[str, Callable[[], Iterator[Case]]] = {
    "flags": verbs.of_flags,
    "positions": verbs.of_positions,
    "keys": recipe_keys.cases,
    "runs": spoilt.of_runs,
    "models": spoilt.of_models,
    "places": places.cases,
}
PARTS, OFTEN = 8, 1
"""How many parts the battery falls into, and how many of them the slow tier tries; the long one tries all."""
pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]


def every_case() -> list[Case]:
    return [case for group in GROUPS.values() for case in group()]


@pytest.fixture(scope="module")
def small_world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return world.build(tmp_path_factory.mktemp("battery") / "world")


def test_the_battery_is_large_and_each_case_has_a_name() -> None:
    cases = every_case()
    assert len(cases) >= 1000
    assert len({case.name for case in cases}) == len(cases)
    said = {name for name, _ in verbs.verbs()}
    assert said == set(verbs.BASES)


@pytest.mark.parametrize(
    "part", [pytest.param(part, marks=[pytest.mark.long] if part >= OFTEN else []) for part in range(PARTS)]
)
def test_bad_input(part: int, small_world: Path) -> None:
    by_case = {}
    for number, case in enumerate(every_case()[part::PARTS]):
        if wrong := faults(case, small_world, small_world.parent / f"case-{part}-{number}"):
            by_case[case.name] = wrong
    assert by_case == {}


@pytest.mark.parametrize(
    ("place", "words"), surroundings.pairs(), ids=lambda part: getattr(part, "name", None) or " ".join(part)[:30]
)
def test_surroundings(place: surroundings.Place, words: list[str], small_world: Path, tmp_path: Path) -> None:
    assert surroundings.faults(place, words, surroundings.copied(small_world, tmp_path / "here")) == []
