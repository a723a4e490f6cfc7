"""Live curves in a notebook: one place that is drawn again, from the numbers of the run; plain lines elsewhere."""

import json
import re
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import orrery
from orrery.errors import MachineError
from orrery.training import live_curves
from orrery.training.live_curves import POINTS, LiveCurves, RunPicture, charts, notebook_display, thinned
from orrery.training.progress import Bar, Lines, find_reporter

RECIPE = {
    "name": "small",
    "model": {"family": "gpt2", "config": {"n_layer": 1, "n_embd": 16, "n_head": 2, "n_positions": 16}},
    "tokenizer": {"kind": "character"},
    "data": {"train": "text.txt", "split": {"tail": 0.1}},
    "batches": {"length": 16, "size": 4},
    "training": {"steps": 6, "micro_batch": 2, "optimizer": {"rate": 0.01}, "precision": "float32"},
    "evaluation": {"every": 2},
    "logging": {"every": 1},
}


class Notebook:
    """What stands for a notebook: it keeps what it is given to draw, place by place.

    ``display`` has the call of ``IPython.display.display``.
    """

    def __init__(self) -> None:
        self.places: list[list[Any]] = []

    def display(self, shown: Any, *, display_id: bool = False) -> Any:
        assert display_id
        place = [shown]
        self.places.append(place)
        return SimpleNamespace(update=place.append)


@pytest.fixture
def notebook(monkeypatch: pytest.MonkeyPatch) -> Notebook:
    """Let this process look like the kernel of a notebook."""
    made = Notebook()
    shell, drawing = ModuleType("IPython"), ModuleType("IPython.display")
    shell.get_ipython = lambda: SimpleNamespace(kernel=object())  # type: ignore[attr-defined]
    drawing.display = made.display  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", shell)
    monkeypatch.setitem(sys.modules, "IPython.display", drawing)
    return made


@pytest.fixture
def recipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    (tmp_path / "text.txt").write_text("the list is sorted; the queue is not. " * 50)
    monkeypatch.chdir(tmp_path)
    return RECIPE


def points(figure: str) -> int:
    """Return how many points the curves of a chart have."""
    return sum(len(line.split()) for line in re.findall(r'points="([^"]*)"', figure))


def test_a_run_is_drawn_in_one_place_from_the_numbers_of_its_metrics(notebook, recipe, monkeypatch):
    monkeypatch.setattr(live_curves, "EVERY", 0.0)
    run = orrery.train(recipe, "run")
    assert len(notebook.places) == 1
    drawn = notebook.places[0]
    assert len(drawn) > 6
    last = drawn[-1]
    assert last.where.startswith("step 6/6")
    records = run.records()
    wanted = [charts({"train/loss": [(one["step"], one["train/loss"]) for one in records]})[0]]
    learned, held = ([(r["step"], r[name]) for r in records if name in r] for name in ("train/loss", "val/loss"))
    assert len(learned) == 6
    assert len(held) == 3
    assert last.figures == charts({"train/loss": learned, "val/loss": held})
    assert last.figures != wanted
    html = last._repr_html_()
    assert html.count("<svg") == 1
    assert "on what is held back" in html
    assert "reading data and model" in html
    assert f"{records[-1]['train/loss']:.4f}" in html
    assert len(drawn[0].figures) == 0
    assert points(drawn[-2].figures[0]) >= points(drawn[len(drawn) // 2].figures[0])


def test_it_is_drawn_no_more_often_than_twice_a_second_and_at_the_end(notebook, recipe, monkeypatch):
    monkeypatch.setattr(live_curves, "EVERY", 1e9)
    orrery.train(recipe, "run")
    (drawn,) = notebook.places
    assert len(drawn) == 2
    assert "step 6/6" in repr(drawn[-1])


def test_quiet_is_quiet_and_elsewhere_lines_are_printed(notebook, recipe, monkeypatch, capsys):
    orrery.train(recipe, "quiet", quiet=True)
    assert notebook.places == []
    assert isinstance(find_reporter(), LiveCurves)
    monkeypatch.setattr(sys.modules["IPython"], "get_ipython", lambda: SimpleNamespace())  # at a prompt of IPython
    assert notebook_display() is None
    monkeypatch.setattr(sys.modules["IPython"], "get_ipython", lambda: None)  # imported by a program
    assert notebook_display() is None
    monkeypatch.delitem(sys.modules, "IPython")
    assert isinstance(find_reporter(), Lines | Bar)
    orrery.train(recipe, "plain")
    assert "step 6/6" in capsys.readouterr().err
    assert notebook.places == []


def test_a_model_that_is_loaded_writes_no_red_lines(notebook, recipe, monkeypatch, capsys):
    run = orrery.train(recipe, "run", quiet=True)
    capsys.readouterr()
    run.load(device="cpu")
    told = capsys.readouterr()
    assert "final model" in told.out
    assert told.err == ""
    monkeypatch.delitem(sys.modules, "IPython")
    run.load(device="cpu")
    assert capsys.readouterr().err == told.out


def test_what_comes_from_files_is_escaped_and_old_lines_are_put_away():
    html = RunPicture("step <1>", [], [f"<b>{number}</b>" for number in range(20)])._repr_html_()
    assert "<b>" not in html
    assert "step &lt;1&gt;" in html
    assert html.index("12 lines before") < html.index("&lt;b&gt;0&lt;") < html.index("&lt;b&gt;19&lt;")


def test_measures_beside_the_loss_have_a_chart_and_long_runs_few_points():
    made = LiveCurves(lambda shown, display_id: SimpleNamespace(update=lambda shown: seen.append(shown)))
    seen: list[Any] = []
    for step in range(1, 2001):
        record = {"train/loss": 1 / step, "val/loss": float("nan"), "val/accuracy": 0.5, "lr": 0.1, "tokens": step}
        made.progress(step, 2000, record)
    made.close()
    loss, others = seen[-1].figures
    assert points(loss) == points(others) == POINTS
    assert "accuracy" in others
    assert thinned([(n, n) for n in range(1000)])[-1] == (999, 999)
    assert thinned([(1, 2)]) == [(1, 2)]


def test_results_are_tables_of_pandas_where_it_is_installed(recipe, monkeypatch):
    pandas = pytest.importorskip("pandas")
    run = orrery.train(recipe, "run", quiet=True)
    table = run.to_pandas()
    assert isinstance(table, pandas.DataFrame)
    assert table.index.tolist() == [1, 2, 3, 4, 5, 6]
    assert table["train/loss"].tolist() == [one["train/loss"] for one in run.records()]
    assert table["val/loss"].notna().sum() == 3
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MachineError, match="needs the package pandas, which is not installed"):
        run.to_pandas()


def test_a_kernel_of_a_notebook_draws_them(recipe, tmp_path):
    """A notebook that is run by its own kernel keeps one picture of the run, and the table behind it."""
    client = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    nbformat = pytest.importorskip("nbformat")
    source = f"import orrery\nrun = orrery.train({json.loads(json.dumps(recipe))!r}, 'run')\nrun.to_pandas()"
    cell = nbformat.v4.new_code_cell(source)
    made = nbformat.v4.new_notebook(cells=[cell])
    client.NotebookClient(made, timeout=200, resources={"metadata": {"path": str(tmp_path)}}).execute()
    pictures = [one for one in cell.outputs if "orrery-run" in one.get("data", {}).get("text/html", "")]
    assert len(pictures) == 1
    assert "step 6/6" in pictures[0]["data"]["text/html"]
    assert "<svg" in pictures[0]["data"]["text/html"]


def test_at_a_prompt_of_ipython_it_is_lines():
    shell = pytest.importorskip("IPython")
    assert getattr(shell.get_ipython(), "kernel", None) is None
    assert notebook_display() is None
