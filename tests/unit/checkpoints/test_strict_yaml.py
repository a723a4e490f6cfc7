"""YAML of strangers: what is plain is read, everything else is one error with its place."""

import contextlib
import time
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

import bombs
from orrery.checkpoints import strict_yaml

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**12), 10**12) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=8),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(st.text("abc", min_size=1, max_size=3), inner, max_size=3),
    max_leaves=12,
)  # fmt: skip


@given(PLAIN)
def test_plain_values_come_back(value: object) -> None:
    assert strict_yaml.parse(yaml.safe_dump(value)) == value


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{[a]: 1}", "cannot be a key"),
        ("? {a: b}\n: 1", "cannot be a key"),
        ("a: 1\na: 2", "'a' twice"),
        ("[" * 3000 + "]" * 3000, "nested"),
        ("[" * 3000, "nested"),
        ("9" * 5000, "digits"),
        ("0x" + "f" * 400, "beyond all numbers"),
        ("1.0e+400", "no finite number"),
        ("[.nan]", "no finite number"),
        ("-.inf", "no finite number"),
        ("12:30", "base 8 or 60"),
        ("010", "base 8 or 60"),
        ("!!binary aGk=", "no kind of value"),
        ("!!set {a}", "no kind of value"),
        ("!!python/object/apply:os.getcwd []", "no kind of value"),
        ("!!int x", "'x'"),
        ("!!map 1", ""),
        ("&a [*a]", "holds itself"),
        ("&a {b: *a}", "holds itself"),
        ('"a\\0b"', "no text has"),
        ('"\\ud800"', "no text has"),
        ("x" * 1_000_001, "characters"),
        ("a: 1\n---\nb: 2", "another document"),
    ],
)
def test_what_is_not_plain_is_one_error(text: str, problem: str) -> None:
    with pytest.raises(yaml.YAMLError) as caught:
        strict_yaml.parse(text)
    assert problem in str(getattr(caught.value, "problem", caught.value))


def test_a_date_stays_a_word() -> None:
    assert strict_yaml.parse("2026-11-22") == "2026-11-22"


def test_aliases_are_counted_as_what_they_stand_for() -> None:
    levels = "".join(f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 9)}]\n" for n in range(1, 9))
    began = time.process_time()
    with pytest.raises(yaml.YAMLError, match="more than 30,000 values"):
        strict_yaml.parse(f"l0: &l0 [1, 2, 3, 4, 5, 6, 7, 8, 9]\n{levels}")
    assert time.process_time() - began < 5


@given(st.text(max_size=60) | st.text("[]{}:,&*!|>-? a1.\n'\"", max_size=40))
def test_any_text_is_a_value_or_an_error_of_yaml(text: str) -> None:
    with contextlib.suppress(yaml.YAMLError):
        strict_yaml.parse(text)


LONG = 900_000
BOMBS = {
    "a list": "[" + "a," * (LONG // 2) + "]",
    "pairs": "[" + "a: b," * (LONG // 5) + "]",
    "empty lists": "[" + "[]," * (LONG // 3) + "]",
    "lines of a list": "- a\n" * (LONG // 4),
    "nulls": "-\n" * (LONG // 2),
    "keys": "".join(f"k{number}: 1\n" for number in range(LONG // 10)),
    "keys in braces": "{" + "".join(f"a{number}," for number in range(LONG // 7)) + "}",
    "anchors": "[" + "".join(f"&a{number} b," for number in range(LONG // 10)) + "]",
    "aliases": "- &a b\n" + "- *a\n" * (LONG // 5),
    "aliases of aliases": "a0: &a0 [b, b]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 40)),
    "merges of merges": "a0: &a0 {b: c}\n" + "".join(
        f"a{n}: &a{n} {{<<: [*a{n - 1}, *a{n - 1}], k{n}: d}}\n" for n in range(1, 40)
    ),
    "documents": "---\n" * (LONG // 4),
}  # fmt: skip


@pytest.mark.parametrize("name", BOMBS)
def test_more_values_than_anybody_writes_are_counted_before_they_are_built(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """900 kB of a list took more than 40 seconds and a gigabyte to become values."""
    composed: list[object] = []
    monkeypatch.setattr(strict_yaml._Plain, "construct_document", lambda loader, node: composed.append(node))
    began = time.process_time()
    with pytest.raises(yaml.YAMLError):
        strict_yaml.parse(BOMBS[name])
    assert time.process_time() - began < 5
    assert not composed


def test_as_many_values_as_may_be_are_read() -> None:
    assert strict_yaml.parse("[" + "a," * 29_999 + "]") == ["a"] * 29_999
    with pytest.raises(yaml.YAMLError, match="more than 30,000 values"):
        strict_yaml.parse("[" + "a," * 30_000 + "]")


@pytest.mark.slow
def test_all_of_them_take_seconds_and_no_gigabyte(tmp_path: Path) -> None:
    files = [tmp_path / f"{number}.yaml" for number in range(len(BOMBS))]
    for file, bomb in zip(files, BOMBS.values(), strict=True):
        file.write_text(bomb)
    refused = bombs.refusals("from orrery.checkpoints import strict_yaml", "strict_yaml.parse(path.read_text())", files)
    assert all(
        issubclass(getattr(yaml, kind, None) or getattr(strict_yaml, kind), yaml.YAMLError) for kind, _ in refused
    )
