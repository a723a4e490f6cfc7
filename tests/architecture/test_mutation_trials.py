"""The tool that breaks the program, on a project of two files: the trace, the forks, the verdicts, and going on."""

import json
import textwrap

import pytest

from mutation import server
from mutation.campaign import Campaign
from mutation.kinds import every_mutation
from mutation.records import load, part_of, read_trace, rows_of
from mutation.report import report
from mutation.traced import files_of_tests, stale

TOY = """
LIMIT = 3


def double(x):
    return x * 2


def shared(x):
    return x + 40


def spin(x):
    while x > 1:
        x = x - 1
    return x


def unseen(x):
    return x - 7
"""
TESTS = """
import subprocess
import sys

import pytest

from orrery import toy


@pytest.fixture(scope="module")
def made():
    return toy.shared(2)


def test_double():
    assert toy.double(2) == 4


def test_double_again():
    assert toy.double(3) == 6


def test_first_of_the_fixture(made):
    assert made > 0


def test_second_of_the_fixture(made):
    assert made == 42


def test_spin():
    assert toy.spin(3) == 1


def test_a_program():
    code = "from orrery import toy; print(toy.double(5))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "10\\n"


def test_fails_without_any_mutation():
    raise AssertionError


@pytest.mark.slow
def test_slow():
    toy.unseen(1)
"""
FILE = "tests/unit/test_toy.py"
NAMES = {"double": [f"{FILE}::test_a_program", f"{FILE}::test_double", f"{FILE}::test_double_again"]}
INI = "[pytest]\nmarkers =\n  slow: x\n  long: x\n  alone: x\n"


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    root = tmp_path_factory.mktemp("toy")
    for name, text in (
        ("src/orrery/__init__.py", ""),
        ("src/orrery/toy.py", TOY),
        (FILE, textwrap.dedent(TESTS)),
        ("pytest.ini", INI),
    ):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    return root


@pytest.fixture(scope="module")
def campaign(project):
    """A campaign whose trace is made; the tool's own libraries are few, and it is impatient."""
    campaign_of_toy = Campaign(project / ".mutants", 1, project, libraries="pytest coverage")
    campaign_of_toy.trace([])
    return campaign_of_toy


def mutation_of(function, kind):
    every = every_mutation("toy.py", TOY)
    return next(m for m in every if (m.function, m.kind) == (function, kind))


def test_a_trace_knows_the_lines_of_tests_of_their_fixtures_and_of_programs(campaign, project):
    known = read_trace(campaign.work / "trace", project / "src/orrery")
    line = {name: n for n, text in enumerate(TOY.split("\n"), start=1) for name in ("x * 2", "x + 40") if name in text}
    assert sorted(known.lines["toy.py"][line["x * 2"]]) == NAMES["double"]
    assert sorted(known.lines["toy.py"][line["x + 40"]]) == [
        f"{FILE}::test_first_of_the_fixture",
        f"{FILE}::test_second_of_the_fixture",
    ]
    assert known.failed == [f"{FILE}::test_fails_without_any_mutation"]
    assert f"{FILE}::test_slow" not in known.seconds
    assert known.seconds[f"{FILE}::test_double"] < known.seconds[f"{FILE}::test_a_program"]
    assert known.file_seconds[FILE] > 0


def test_a_trace_is_made_again_only_when_its_functions_or_tests_change(campaign, project):
    folder, source = campaign.work / "trace", project / "src/orrery/toy.py"
    files = files_of_tests([], project)
    assert stale(files, folder, project) == []
    edits = {TOY.replace("x - 7", "x - 8"): [], "# more\n" + TOY: [], TOY.replace("x * 2", "2 * x"): [FILE]}
    for text, again in edits.items():
        source.write_text(text, encoding="utf-8")
        assert stale(files, folder, project) == again
    source.write_text("# more\n" + TOY, encoding="utf-8")
    moved = read_trace(folder, source.parent).lines["toy.py"]
    source.write_text(TOY, encoding="utf-8")
    assert {line - 1: tests for line, tests in moved.items()} == read_trace(folder, source.parent).lines["toy.py"]
    assert part_of(folder, FILE).name == "unit~test_toy.part.json"


def test_all_tests_that_fail_are_recorded_and_a_killed_run_goes_on(campaign, project, capsys, monkeypatch):
    monkeypatch.setattr(server, "PATIENCE", 2.0)
    known = read_trace(campaign.work / "trace", project / "src/orrery")
    path = campaign.work / "verdicts-toy.jsonl"
    caught, hangs = mutation_of("double", "arithmetic"), mutation_of("spin", "arithmetic")
    unseen = mutation_of("unseen", "arithmetic")
    campaign.attempt([caught, hangs], known, path)
    first = path.read_text(encoding="utf-8")
    path.write_text(first + '{"key": "cut off by a ki', encoding="utf-8")
    capsys.readouterr()
    campaign.attempt([caught, hangs, unseen], known, path)
    assert path.read_text(encoding="utf-8").startswith(first)
    assert "[3/3]" in (told := capsys.readouterr().out)
    assert told.count("\n") == 1, "what has a verdict is not tried again"
    rows = {row["function"]: row for row in rows_of([path])}
    assert sorted(rows["double"]["caught_by"]) == NAMES["double"]
    assert rows["spin"]["caught_by"] == [f"{FILE}::test_spin"]
    assert rows["spin"]["remarks"] == [f"hung: {FILE}::test_spin"]
    assert rows["unseen"]["caught_by"] == []
    assert load(campaign.work, [path]).caught_by[rows["double"]["key"]] == rows["double"]["caught_by"]
    assert report(list(rows.values()), 3, path) == 1
    assert "survivor toy.py:20" in capsys.readouterr().out
    copied = (campaign.work / "checkouts/0/src/orrery/toy.py").read_text(encoding="utf-8")
    assert copied == TOY, "the copy is mended"


def test_what_breaks_the_import_is_caught_by_all_and_what_fails_anyway_by_none(campaign, project):
    from mutation.operators import Mutation

    known = read_trace(campaign.work / "trace", project / "src/orrery")
    broken = Mutation("toy.py", "", "named", 2, 8, 2, 9, "3", "1 / 0")
    anyway = f"{FILE}::test_fails_without_any_mutation"
    known.seconds[anyway] = 0.1
    known.lines["toy.py"][20] = {anyway}
    path = campaign.work / "verdicts-broken.jsonl"
    campaign.attempt([broken, mutation_of("unseen", "arithmetic")], known, path)
    rows = rows_of([path])
    assert set(rows[0]["caught_by"]) >= set(NAMES["double"])
    assert rows[0]["remarks"][0].startswith("cannot be imported")
    assert rows[1]["caught_by"] == []
    assert rows[1]["remarks"] == [f"fails without the mutation too: {anyway}"]


def test_only_the_tests_of_a_list_are_asked(campaign, project):
    known = read_trace(campaign.work / "trace", project / "src/orrery")
    one = f"{FILE}::test_double"
    assert set(known.only([one]).seconds) == {one}
    assert known.only([FILE]).seconds == known.seconds
    assert json.loads(json.dumps(known.only([one]).seconds)) == {one: known.seconds[one]}
