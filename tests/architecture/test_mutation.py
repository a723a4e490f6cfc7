"""The tool that breaks the program: what it changes, what it leaves alone, and that it ends with the text it found."""

from collections import Counter

import pytest

from mutation.asking import STAGES, TABLES, stages
from mutation.drawing import BEFORE, drawn, drawn_before, packages, placed_again, quota, with_effect
from mutation.kinds import every_mutation
from mutation.named import ONCE_SURVIVED, named
from mutation.operators import mutations
from mutation.records import SOURCE, Trace

TEXT = '''"""Docstring with 1 + 2."""
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
AGREED = """
Name = Literal["a", "b"]


class Spec:
    width: int = 8
    name: "Literal[1]" = "spec"
    sizes: tuple[int, ...] = (1, 2)


async def read(table: dict["a", 1], most: int | None = None, *, exact: bool = False, rest: list = None) -> str:
    found = table["key"]
    table["kept"] = found
    await send(found, most)
    return table.get("name", most), table.get("other"), found[1:most], found[:-1], Tensor["B L"], max(found, most)


def refuse(path: str) -> None:
    if path:
        raise UsageError(f"no {path}", hint="name another")
    raise DataError("empty", "fill it")
"""


def test_every_kind_of_operator_is_changed_and_what_only_words_something_is_left_alone():
    changes = {(m.old, m.new) for m in mutations("x.py", TEXT)}
    assert changes == {
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


def test_what_two_places_agree_on_is_changed_too():
    other = "__import__('orrery.errors', fromlist=['errors'])"
    changes = {
        (m.kind, m.old, m.new) for m in every_mutation("x.py", AGREED) if m.kind not in ("function", "statement")
    }
    assert changes - {("constant", "1", "2"), ("constant", "2", "3")} == {
        ("default", "8", "9"),
        ("default", '"spec"', "'specx'"),
        ("default", "(1, 2)", "()"),
        ("default", "None", "1"),
        ("default", "False", "True"),
        ("key", '"key"', "'key_'"),
        ("key", 'table.get("name", most)', "(most)"),
        ("key", 'table.get("other")', "None"),
        ("await", "await send(found, most)", "(send(found, most))"),
        ("arguments", "found, most", "most, found"),
        ("slice", "1", "2"),
        ("slice", "most", "(most) - 1"),
        ("message", 'f"no {path}"', "'it went wrong'"),
        ("message", '"name another"', "'try something else'"),
        ("message", '"empty"', "'it went wrong'"),
        ("message", '"fill it"', "'try something else'"),
        ("error class", "UsageError", f"{other}.DataError"),
        ("error class", "DataError", f"{other}.ModelFileError"),
    }


@pytest.mark.parametrize("text", [TEXT, AGREED])
def test_each_change_stands_alone_and_compiles(text):
    for mutation in every_mutation("x.py", text):
        changed = mutation.apply(text)
        assert changed != text
        compile(changed, "x.py", "exec")
        with pytest.raises(ValueError, match="holds"):
            mutation.apply("# a line more\n" + text)


def test_every_package_and_single_module_has_its_share():
    by_package = packages(SOURCE)
    top = {path.name for path in SOURCE.iterdir() if path.suffix == ".py" or any(path.rglob("*.py"))}
    assert set(by_package) == top - {"__pycache__"}
    shares = {name: quota(path.read_text(encoding="utf-8") for path in files) for name, files in by_package.items()}
    assert min(shares.values()) >= 10
    assert sum(shares.values()) > 530, "some packages have fewer than ten; five hundred are to be tried"
    assert shares["nn"] > shares["rewards"]


def test_the_draw_is_the_same_for_a_seed_and_fair_to_every_kind():
    chosen = drawn(SOURCE, 1337, only="rewards")
    assert chosen == drawn(SOURCE, 1337, only="rewards") != drawn(SOURCE, 1, only="rewards")
    assert len(chosen) == len(set(chosen)) >= 10
    kinds = Counter(m.kind for m in chosen)
    assert max(kinds.values()) <= 2
    assert len({(m.file, m.function) for m in chosen}) >= 8


def test_few_of_a_rare_kind_are_drawn_beside_the_shares_of_packages(tmp_path):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        awaited = "".join(f"async def f{n}():\n    await g({n})\n\n\n" for n in range(20))
        (tmp_path / name / "a.py").write_text(awaited, encoding="utf-8")
    assert Counter(m.kind for m in drawn(tmp_path, 1))["await"] >= 10


def test_the_draw_of_before_can_be_repeated(tmp_path):
    (tmp_path / "nn").mkdir()
    (tmp_path / "nn/x.py").write_text(TEXT, encoding="utf-8")
    assert {m.kind for m in drawn_before(tmp_path, 1337)} <= {m.kind for m in mutations("nn/x.py", TEXT)}
    assert set(BEFORE) <= set(packages(SOURCE))


def test_what_decides_nothing_is_not_counted():
    text = "a = zip(x, y, strict=True)\nb = json.dumps(x, ensure_ascii=False, indent=1)\n"
    assert [m.old for m in with_effect(text, mutations("x.py", text))] == ["1"]


def test_what_once_survived_still_stands_in_the_source():
    for mutation in named(SOURCE):
        text = (SOURCE / mutation.file).read_text(encoding="utf-8")
        compile(mutation.apply(text), mutation.file, "exec")
    assert len(named(SOURCE)) == len(ONCE_SURVIVED)


def test_a_mutation_is_found_again_where_its_line_has_moved(tmp_path):
    (tmp_path / "x.py").write_text("# a line more\n" + TEXT, encoding="utf-8")
    (mutation, *_) = [m for m in mutations("x.py", TEXT) if m.kind == "comparison"]
    (again,) = placed_again(tmp_path, [(mutation.name, mutation.line), ("x.py:gone: 1 -> 2", 3), ("y.py:f: a -> b", 1)])
    assert (again.name, again.line) == (mutation.name, mutation.line + 1)


def test_the_tests_of_a_mutation_are_those_that_run_its_line_the_nearest_first(tmp_path):
    (tmp_path / "nn").mkdir()
    (tmp_path / "nn/x.py").write_text(TEXT, encoding="utf-8")
    (mutation, *_) = [m for m in mutations("nn/x.py", TEXT) if m.kind == "comparison"]
    near, far, other = "tests/unit/nn/test_x.py::a", "tests/parity/test_y.py::b", "tests/unit/nn/test_x.py::c"
    lines = {"nn/x.py": {mutation.line: {near, far}, 1: {other}}}
    trace = Trace({near: 1.0, far: 0.1, other: 0.1}, lines)
    assert stages(mutation, trace, tmp_path) == [[near, far]]
    long = Trace({near: STAGES[0] - 0.5, far: 1.0, other: 0.1}, lines, {"tests/parity/test_y.py": STAGES[1]})
    assert stages(mutation, long, tmp_path) == [[near], [far]]


def test_a_default_is_asked_of_those_that_run_its_function_and_a_field_of_the_tables(tmp_path):
    (tmp_path / "nn").mkdir()
    (tmp_path / "nn/x.py").write_text(TEXT.replace("= None", "= 7"), encoding="utf-8")
    test, table = "tests/unit/nn/test_x.py::a", f"{TABLES['nn']}::b"
    (body,) = [n for n, line in enumerate(TEXT.split("\n"), start=1) if "append" in line]
    trace = Trace({test: 1.0, table: 1.0}, {"nn/x.py": {body: {test}}})
    every = every_mutation("nn/x.py", (tmp_path / "nn/x.py").read_text(encoding="utf-8"))
    assert stages(next(m for m in every if m.kind == "default"), trace, tmp_path) == [[table, test]]
    assert stages(next(m for m in every if m.line == 4), trace, tmp_path) == [[table, test]]
