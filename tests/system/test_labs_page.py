"""``orrery lab --all`` and ``--report``: one page of all labs, kept when killed, made again from the folder alone."""

import json
import re
from xml.etree import ElementTree

import pytest

from made_pages import MADE
from orrery.cli.program import run
from orrery.errors import DataError, UsageError
from orrery.reports.page import MAKING
from orrery_course.labs import _all as labs
from orrery_course.labs import _lab, _tables, bottleneck, dictionary
from orrery_course.labs._page import page

FAST = ("dictionary", "retrieval")


@pytest.fixture
def few(monkeypatch) -> None:
    """As if there were few labs, all of them fast."""
    quick_labs = {name: path for name, path in _lab._own().items() if name in FAST}
    monkeypatch.setattr(_lab, "_own", lambda: quick_labs)


def sections(text: str) -> list[str]:
    """Return the titles of a page."""
    return re.findall("<h2>(.*?)</h2>", text)


def test_all_labs_come_on_one_page(few, tmp_path, capsys) -> None:
    folder = tmp_path / "labs"
    assert run(["lab", "--all", "--seeds", "3", "4", "--output", str(folder)]) == 0
    text = (folder / "index.html").read_text(encoding="utf-8")
    assert sections(text) == ["All labs", *FAST, "The comparisons of the last lecture", MAKING]
    assert "<pre>orrery lab --all --seeds 3 4</pre>" in text
    for name in FAST:
        assert _lab.questions()[name].replace("&", "&amp;").replace('"', "&quot;") in text
        for claim in json.loads((folder / name / "numbers.json").read_text(encoding="utf-8"))["margins"]:
            assert claim in text
    figures = re.findall("<svg.*?</svg>", text, re.DOTALL)
    assert len(figures) == 2
    for figure in figures:
        ElementTree.fromstring(figure)
    assert "holds" in capsys.readouterr().out
    assert "does NOT hold" not in text
    assert run(["lab", "--report", "--output", str(folder)]) == 0
    assert (folder / "index.html").read_text(encoding="utf-8") == text


def test_what_is_finished_stays_when_a_call_is_killed(few, tmp_path, monkeypatch) -> None:
    begun = []

    def carry_out(name, *arguments, **more):
        begun.append(name)
        if len(begun) == 2:
            raise KeyboardInterrupt
        return original(name, *arguments, **more)

    original = _lab.carry_out
    monkeypatch.setattr(labs, "carry_out", carry_out)
    with pytest.raises(KeyboardInterrupt):
        labs.carry_out_all(tmp_path, [0])
    assert sections((tmp_path / "index.html").read_text(encoding="utf-8"))[1:-2] == [FAST[0]]
    first = (tmp_path / FAST[0] / "numbers.json").read_bytes()
    said: list[str] = []
    assert list(labs.carry_out_all(tmp_path, [0], say=said.append)) == list(FAST)
    assert begun == [*FAST, FAST[1]]
    assert f"{FAST[0]} is there already" in said
    assert (tmp_path / FAST[0] / "numbers.json").read_bytes() == first


def test_other_seeds_are_another_run(few, tmp_path) -> None:
    labs.carry_out_all(tmp_path, [0])
    with pytest.raises(UsageError, match="is not empty"):
        labs.carry_out_all(tmp_path, [1])
    with pytest.raises(UsageError, match="is not empty"):
        labs.carry_out_all(tmp_path, [0], quick=True)
    results = labs.carry_out_all(tmp_path, [1], overwrite=True)
    assert [list(one.runs) for one in results.values()] == [[1], [1]]


def test_a_claim_that_fails_is_exit_1_and_on_the_page(few, tmp_path, capsys, monkeypatch) -> None:
    monkeypatch.setattr(dictionary, "SOFT", -1.0)
    assert run(["lab", "--all", "--seeds", "0", "--output", str(tmp_path)]) == 1
    assert "does not hold for every seed in: dictionary" in capsys.readouterr().err
    text = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert "1 of them does not hold" in text
    assert "does NOT hold" in text


def test_a_report_of_nothing_and_of_something_else_is_refused(few, tmp_path, capsys) -> None:
    assert run(["lab", "--report", "--output", str(tmp_path)]) == 2
    assert "no finished lab" in capsys.readouterr().err
    (tmp_path / FAST[0]).mkdir()
    for name, text in zip(_lab.FILES, ('{"lab": 1}', "<svg/>"), strict=True):
        (tmp_path / FAST[0] / name).write_text(text)
    with pytest.raises(DataError, match="no numbers of a lab"):
        labs.write_page(tmp_path)
    assert run(["lab", "dictionary", "--all"]) == 2
    assert "leave out --all, or the name" in capsys.readouterr().err


def test_a_folder_of_something_else_is_refused_before_anything_runs(few, tmp_path, capsys) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    assert run(["lab", "--all", "--quick", "--output", str(tmp_path)]) == 2
    assert "holds mine.txt, which is of no lab" in capsys.readouterr().err
    assert [entry.name for entry in tmp_path.iterdir()] == ["mine.txt"]


def test_what_a_lab_writes_is_read_again(tmp_path) -> None:
    outcome = _lab.carry_out("bottleneck", [2], quick=True)
    outcome.write(tmp_path)
    again = _lab.LabResult.read(tmp_path)
    assert again is not None
    assert (again.name, again.quick, again.margins, again.figure) == (
        "bottleneck",
        True,
        outcome.margins,
        outcome.figure,
    )
    assert bottleneck.margins(again.runs[2]) == outcome.margins
    assert again.minutes == round(outcome.minutes, 2)
    assert _lab.LabResult.read(tmp_path / "nothing") is None


def test_every_cell_names_a_lab_that_exists_and_every_row_fits() -> None:
    for table in _tables.tables():
        for cells in table.cells.values():
            assert len(cells) == len(table.heads) - 1
            for cell in cells:
                if isinstance(cell, _tables.MeasuredCell):
                    assert cell.lab in _lab.questions()
                    assert cell.text.count("{}") == 1
    assert "not run yet" in page({}, MADE)


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_every_cell_reads_what_its_lab_finds() -> None:
    cells = [cell for table in _tables.tables() for row in table.cells.values() for cell in row]
    measured = [cell for cell in cells if isinstance(cell, _tables.MeasuredCell)]
    runs = {name: [_lab.load_lab(name).run(0, quick=True)] for name in {cell.lab for cell in measured}}
    for cell in measured:
        shown = cell.shown(runs)
        assert shown.lab == cell.lab
        assert "not run yet" not in shown.text
