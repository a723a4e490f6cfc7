"""The tool that breaks the program: what it changes, what it leaves alone, and that it ends with the text it found."""

import pytest

from mutation.named import ONCE_SURVIVED, named
from mutation.operators import mutations
from mutation.selection import QUOTA, TABLES, Trace, batches, drawn
from mutation.trial import ROOT

SOURCE = '''"""Docstring with 1 + 2."""
from typing import TYPE_CHECKING

LIMIT: "tuple[1 + 1]" = 3

if TYPE_CHECKING:
    X = 1 + 1


def share(count: int, most: int | None = None) -> float | None:
    """Return 1 / count."""
    if count < 1:
        raise ValueError(f"{count + 1} is below {1 + 1}")
    values.append(count)
    return max(count, 2) / 3 if not most and count else -count
'''


def test_every_kind_of_change_is_found_and_what_only_words_something_is_left_alone():
    found = {(m.old, m.new) for m in mutations("x.py", SOURCE)}
    assert found == {
        ("3", "4"),
        ("1", "2"),
        ("2", "3"),
        ("count < 1", "count <= 1"),
        ("values.append(count)", "pass"),
        ("values.append(count)", "values.extend(count)"),
        ("max(count, 2)", "min(count, 2)"),
        ("max(count, 2) / 3", "(max(count, 2) * 3)"),
        ("not most", "(most)"),
        ("not most and count", "(not most or count)"),
        ("-count", "(count)"),
        (
            "max(count, 2) / 3 if not most and count else -count",
            "(-count if not most and count else max(count, 2) / 3)",
        ),
    }


def test_each_change_stands_alone_and_compiles():
    for mutation in mutations("x.py", SOURCE):
        changed = mutation.apply(SOURCE)
        assert changed != SOURCE
        compile(changed, "x.py", "exec")
        with pytest.raises(ValueError, match="holds"):
            mutation.apply("# a line more\n" + SOURCE)


def test_the_draw_is_the_same_for_a_seed_and_has_every_package():
    source = ROOT / "src" / "orrery"
    chosen = drawn(source, 1337)
    assert chosen == drawn(source, 1337) != drawn(source, 1)
    assert 150 <= len(chosen) == len(set(chosen)) <= sum(QUOTA.values())
    assert {m.file.split("/")[0] for m in chosen} == set(QUOTA)


def test_what_decides_nothing_is_not_counted():
    source = ROOT / "src" / "orrery"
    for mutation in drawn(source, 1337):
        line = (source / mutation.file).read_text(encoding="utf-8").splitlines()[mutation.line - 1]
        assert not line[: mutation.column].endswith(("strict=", "ensure_ascii=")), mutation.name


def test_what_once_survived_still_stands_in_the_source():
    source = ROOT / "src" / "orrery"
    for mutation in named(source):
        text = (source / mutation.file).read_text(encoding="utf-8")
        compile(mutation.apply(text), mutation.file, "exec")
    assert len(named(source)) == len(ONCE_SURVIVED)


def test_the_tests_of_a_mutation_are_those_that_run_its_line_the_nearest_first():
    (mutation, *_) = [m for m in mutations("nn/x.py", SOURCE) if m.kind == "comparison"]
    near, far, other = "tests/unit/nn/test_x.py::a", "tests/parity/test_y.py::b", "tests/unit/nn/test_x.py::c"
    trace = Trace({near: 1.0, far: 0.1, other: 0.1}, {"nn/x.py": {mutation.line: {near, far}, 1: {other}}})
    assert batches(mutation, trace) == [[near], [far]]


def test_the_fields_of_a_class_are_held_by_the_tables_of_defaults():
    field = next(m for m in mutations("nn/x.py", SOURCE) if m.line == 4)
    trace = Trace({"tests/unit/nn/test_x.py::a": 1.0}, {"nn/x.py": {9: {"tests/unit/nn/test_x.py::a"}}})
    assert batches(field, trace) == [TABLES["nn"], ["tests/unit/nn/test_x.py::a"]]
