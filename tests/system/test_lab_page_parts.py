"""The page of all labs: what is kept of a call that is killed, what the page says, and the tables made from numbers."""

import html
import json
import math
import re
from pathlib import Path

import pytest

from orrery.cli.program import run
from orrery.errors import DataError, UsageError
from orrery_course.labs import _lab as lab
from orrery_course.labs import _tables, carry_out_all, results, write_page
from orrery_course.labs._all import PAGE
from orrery_course.labs._unfinished import FOLDER

SVG = '<svg xmlns="http://www.w3.org/2000/svg"></svg>'


class Toy:
    """A lab that counts how often it is run, and is killed where it is told to be."""

    def __init__(self, margin: float = 0.5, dies_at: int | None = None, error: Exception | None = None) -> None:
        self.margin, self.dies_at, self.error, self.ran = margin, dies_at, error, list[int]()

    def run(self, seed: int, quick: bool = False) -> dict[str, object]:
        if self.error is not None:
            raise self.error
        if seed == self.dies_at:
            raise KeyboardInterrupt
        self.ran.append(seed)
        return {"value": seed + 0.25, "count": 1000 * seed, "curve": [1, 2]}

    def margins(self, numbers: dict[str, float]) -> dict[str, float]:
        return {"a < b": self.margin - numbers["value"] * 0}

    def figure(self, runs: list[dict[str, object]]) -> str:
        return SVG


@pytest.fixture
def only(monkeypatch):
    """Leave no labs but those that are given."""

    def leave(**labs: Toy) -> None:
        monkeypatch.setattr(lab, "_own", dict)
        monkeypatch.setattr(lab, "_registered", {name: (f"Is it {name}?", one) for name, one in labs.items()})

    return leave


def test_a_killed_call_goes_on_at_the_seed_where_it_was(tmp_path, only) -> None:
    first, second = Toy(), Toy(dies_at=1)
    only(first=first, second=second)
    with pytest.raises(KeyboardInterrupt):
        carry_out_all(tmp_path, (0, 1, 2))
    assert list(results(tmp_path)) == ["first"]
    assert "Not run yet: second." in (tmp_path / PAGE).read_text(encoding="utf-8")
    second.dies_at = None
    assert list(carry_out_all(tmp_path, (0, 1, 2))) == ["first", "second"]
    assert (first.ran, second.ran) == ([0, 1, 2], [0, 1, 2])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["first", PAGE, "second"]
    assert results(tmp_path)["second"].runs == {seed: Toy().run(seed) for seed in (0, 1, 2)}
    carry_out_all(tmp_path, (0, 1, 2))
    assert second.ran == [0, 1, 2]


def test_a_seed_of_the_quick_setting_is_not_taken_for_a_whole_one(tmp_path, only) -> None:
    toy = Toy(dies_at=1)
    only(toy=toy)
    for quick in (True, False):
        with pytest.raises(KeyboardInterrupt):
            carry_out_all(tmp_path, (0, 1), quick=quick)
    assert toy.ran == [0, 0]


def test_a_seed_that_cannot_be_read_is_refused_by_its_file(tmp_path, only) -> None:
    only(toy=Toy())
    path = tmp_path / FOLDER / "toy" / "seed-0.json"
    for text in ("{", '{"numbers": {}}', "[]"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        with pytest.raises(DataError, match=r"seed-0\.json"):
            carry_out_all(tmp_path, (0,))


def test_a_lab_that_cannot_run_keeps_no_other_from_it(tmp_path, only) -> None:
    last = Toy()
    only(first=Toy(error=DataError("no data", "get some")), last=last)
    said: list[str] = []
    with pytest.raises(DataError, match="no data"):
        carry_out_all(tmp_path, (0,), say=said.append)
    assert list(results(tmp_path)) == ["last"]
    assert "first could not run: no data (hint: get some)" in said


def test_other_seeds_are_refused_until_they_may_replace(tmp_path, only) -> None:
    toy = Toy()
    only(toy=toy)
    carry_out_all(tmp_path, (0,))
    with pytest.raises(UsageError, match="not empty"):
        carry_out_all(tmp_path, (1,))
    assert list(carry_out_all(tmp_path, (1,), overwrite=True)["toy"].runs) == [1]


def test_a_result_is_read_as_it_was_written(tmp_path, only) -> None:
    only(toy=Toy(margin=math.nan))
    written = lab.carry_out("toy", (3, 4), quick=True)
    written.write(tmp_path / "toy")
    read = lab.LabResult.read(tmp_path / "toy")
    assert read is not None
    assert (read.name, read.quick, read.runs, read.figure) == ("toy", True, written.runs, SVG)
    assert (read.failed, read.minutes) == (["a < b"], round(written.minutes, 2))
    (tmp_path / "toy" / "numbers.json").write_text("[]", encoding="utf-8")
    with pytest.raises(DataError, match=r"numbers\.json has no numbers of a lab"):
        lab.LabResult.read(tmp_path / "toy")
    (tmp_path / "toy" / "figure.svg").unlink()
    assert lab.LabResult.read(tmp_path / "toy") is None


def test_the_page_says_what_each_lab_asks_and_found(tmp_path, only) -> None:
    only(good=Toy(), bad=Toy(margin=-0.125))
    carry_out_all(tmp_path, (0, 1))
    text = (tmp_path / PAGE).read_text(encoding="utf-8")
    assert "2 of 2 labs have been run" in text
    assert "They make 2 claims, and 1 of them does not hold" in text
    for name in ("good", "bad"):
        assert f'<section id="{name}">' in text
        assert f'<a href="#{name}">' in text
        assert f"Is it {name}?" in text
    assert "Seeds 0, 1;" in text
    assert "a &lt; b" in text
    assert "<td>-0.125</td>" in text
    assert re.findall('<span class="failed">(.*?)</span>', text) == ["does NOT hold"] * 2
    assert "<tr><td>count</td><td>0</td><td>1,000</td></tr>" in text
    assert "curve" not in text
    write_page(tmp_path)
    assert (tmp_path / PAGE).read_text(encoding="utf-8") == text
    targets, links = set(re.findall('id="(.*?)"', text)), set(re.findall('href="#(.*?)"', text))
    assert links <= targets


def test_no_page_without_a_lab(tmp_path) -> None:
    with pytest.raises(UsageError, match="no finished lab"):
        write_page(tmp_path)


def test_the_verb_runs_all_and_writes_the_page_again(tmp_path, only, capsys) -> None:
    good, bad = Toy(), Toy(margin=-1)
    only(good=good, bad=bad)
    words = ["lab", "--all", "--seeds", "0", "--output", str(tmp_path)]
    assert run(words) == 1
    assert "in: bad" in capsys.readouterr().err
    (tmp_path / PAGE).unlink()
    assert run(["lab", "--report", "--output", str(tmp_path)]) == 1
    assert (tmp_path / PAGE).exists()
    assert (good.ran, bad.ran) == ([0], [0])
    assert "does NOT hold" in capsys.readouterr().out
    assert run(["lab", "good", "--all"]) == 2
    assert "--all is for all labs" in capsys.readouterr().err


# -- the tables


def test_a_cell_tells_its_number_its_size_and_its_lab() -> None:
    cell = _tables.MeasuredCell("toy", "{} at {at}", lambda n: n["value"], ".1f", lambda n: str(n["size"]))
    runs = {"toy": [{"value": 1.0, "size": 8}, {"value": 3.0, "size": 8}]}
    assert cell.shown(runs) == _tables.Shown("1.0 to 3.0 at 8", "toy")
    assert cell.shown({"toy": runs["toy"][:1]}) == _tables.Shown("1.0 at 8", "toy")
    assert cell.shown({}) == _tables.Shown("not run yet (toy)")
    assert "no lab measures this" in _tables.Unmeasured().shown(runs).text


def test_the_tables_are_those_of_the_lecture() -> None:
    heads = {table.title: tuple(table.heads) for table in _tables.tables()}
    assert list(heads.values()) == [
        ("", "recurrent networks", "Transformers"),
        ("", "recurrent network with attention", "Transformer"),
        ("", "encoder-decoder", "encoder", "decoder"),
        ("task", "architecture", "measured"),
    ]
    for table in _tables.tables():
        assert all(len(cells) == len(table.heads) - 1 for cells in table.cells.values())


def test_every_cell_finds_its_number_in_what_its_lab_measures(tmp_path) -> None:
    cheap = {"bottleneck", "complexity", "quadratic"}
    runs = {name: [json.loads(json.dumps(lab.load_lab(name).run(0, quick=True)))] for name in cheap}
    cells = [cell for table in _tables.tables() for row in table.cells.values() for cell in row]
    measured = [cell for cell in cells if isinstance(cell, _tables.MeasuredCell)]
    assert {cell.lab for cell in measured} <= set(lab.questions())
    shown = [cell.shown(runs) for cell in measured if cell.lab in cheap]
    assert cheap == {one.lab for one in shown}
    assert all(re.search(r"\d", html.unescape(one.text)) for one in shown)
    longest = str(max(map(int, runs["bottleneck"][0]["chain"]["RNN"])))
    assert sum(f"in {longest} words" in one.text for one in shown) == 4


def test_what_a_lab_of_the_package_is_about(tmp_path: Path) -> None:
    assert lab.about("recall")[0].startswith("Whoever carries it through k states must hold all the words")
    assert lab.about("none of the package") == []
