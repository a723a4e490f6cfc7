"""The observers that come with the program, and one that a program makes known.

TensorBoard and Weights & Biases are stood in for by modules that keep what they are told: neither is installed where
the tests run. What the packages themselves write was read back once, with tensorboard 2.21 and wandb 0.31 offline.
"""

import csv
import json
import math
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, ClassVar, Literal

import pytest

from orrery.errors import MachineError, UsageError
from orrery.recipes.read import check_recipe, plain
from orrery.reports.observers import OBSERVERS, Event, Observer, RunBegan, StepLearned, register
from orrery.runs.assemble import assemble
from orrery.schema.section import Section
from training_toy import ToySource, toy_parts, toy_recipe, toy_run


def made(name: str, **settings: Any) -> Observer:
    part = OBSERVERS.find(name)
    return part.of(part.Settings(**settings))


def metrics(run: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]


def table(run: Path) -> list[dict[str, float]]:
    with (run / "observers/metrics.csv").open(newline="") as lines:
        return [{name: float(cell) for name, cell in row.items() if cell} for row in csv.DictReader(lines)]


class Killed(ToySource):
    """Breaks off behind the line of step 4, of which the checkpoint of step 3 knows nothing."""

    RECIPE: ClassVar[dict[str, Any]] = {"checkpoints__every": 3, "evaluation__every": 20}

    def batch(self, step: int) -> Any:
        if step == 5:
            raise RuntimeError("killed")
        return super().batch(step)


def killed_and_resumed(run: Path, *names: str, between: Any = lambda: None) -> list[dict[str, Any]]:
    """Train with observers, break off, go on from the checkpoint before, and return the metrics."""
    recipe = toy_recipe(**Killed.RECIPE)
    with pytest.raises(RuntimeError, match="killed"):
        toy_run(run, recipe, toy_parts(source=Killed(), observers=[made(name) for name in names]))
    assert [record["step"] for record in metrics(run)] == [1, 2, 4]
    between()
    toy_run(run, recipe, toy_parts(observers=[made(name) for name in names]), resume=True)
    assert [record["step"] for record in metrics(run)] == [1, 2, 4, 6, 8, 10, 12]
    return metrics(run)


@pytest.mark.parametrize("cut", ["", "1"])  # the kill came between two rows, or inside one
def test_the_table_has_the_rows_of_the_metrics_each_once(cut: str, tmp_path: Path) -> None:
    def end_with_half_a_row() -> None:
        with (tmp_path / "observers/metrics.csv").open("a") as file:
            file.write(cut)

    assert killed_and_resumed(tmp_path, "csv", between=end_with_half_a_row) == table(tmp_path)


def test_a_number_that_is_not_finite_is_an_empty_cell_and_a_new_measure_a_new_column(tmp_path: Path) -> None:
    observer = made("csv")
    observer.observe(RunBegan(tmp_path, "toy", 0, 1, {}))
    observer.observe(StepLearned(tmp_path, 1, 2, {"step": 1, "train/loss": math.nan, "lr": 0.1}))
    observer.observe(StepLearned(tmp_path, 2, 2, {"step": 2, "train/loss": 2.5, "lr": 0.1, "val/loss": 3.0}))
    text = (tmp_path / "observers/metrics.csv").read_text()
    assert text == "step,lr,train/loss,val/loss\n1,0.1,,\n2,0.1,2.5,3.0\n"


def test_a_run_that_replaces_another_takes_its_table_along(tmp_path: Path) -> None:
    for steps in (4, 6):
        recipe = toy_recipe(training__steps=steps)
        toy_run(tmp_path, recipe, toy_parts(observers=[made("csv")]), overwrite=steps == 6)
        assert table(tmp_path) == metrics(tmp_path)


class Writer:
    """Stands in for torch's SummaryWriter."""

    made: ClassVar[list["Writer"]] = []

    def __init__(self, folder: str, purge_step: int | None = None) -> None:
        self.folder, self.purge_step, self.open = folder, purge_step, True
        self.scalars: dict[tuple[str, int], float] = {}
        self.texts: dict[int, str] = {}
        self.made.append(self)

    def add_scalar(self, name: str, value: float, step: int) -> None:
        assert self.open
        assert (name, step) not in self.scalars
        self.scalars[name, step] = value

    def add_text(self, name: str, text: str, step: int) -> None:
        self.texts[step] = text

    def flush(self) -> None:
        assert self.open

    def close(self) -> None:
        self.open = False


@pytest.fixture
def writers(monkeypatch: pytest.MonkeyPatch) -> list[Writer]:
    module = ModuleType("torch.utils.tensorboard")
    module.SummaryWriter = Writer  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", module)
    monkeypatch.setattr(Writer, "made", [])
    return Writer.made


def test_tensorboard_gets_every_number_and_is_told_which_steps_come_again(
    tmp_path: Path, writers: list[Writer]
) -> None:
    records = killed_and_resumed(tmp_path, "tensorboard")
    assert [(writer.purge_step, writer.open) for writer in writers] == [(1, False), (4, False)]
    assert {writer.folder for writer in writers} == {str(tmp_path / "observers/tensorboard")}
    kept = {key: value for key, value in writers[0].scalars.items() if key[1] < 4} | writers[1].scalars
    numbers = {(name, record["step"]): value for record in records for name, value in record.items() if name != "step"}
    assert kept == numbers


def test_tensorboard_follows_a_run_to_its_place_and_shows_samples(tmp_path: Path, writers: list[Writer]) -> None:
    toy_run(tmp_path, toy_recipe(training__steps=4))
    parts = toy_parts(observers=[made("tensorboard")], sample=lambda model: "a text")
    toy_run(tmp_path, toy_recipe(training__steps=4), parts, overwrite=True)
    before, after = writers
    assert before.folder == str(tmp_path / ".orrery-new/observers/tensorboard")
    assert after.folder == str(tmp_path / "observers/tensorboard")
    assert sorted(step for name, step in [*before.scalars, *after.scalars] if name == "lr") == [1, 2, 4]
    assert after.texts == {4: "a text"}


class Wandb(ModuleType):
    """Stands in for wandb: the runs that were begun, each with what was logged."""

    def __init__(self) -> None:
        super().__init__("wandb")
        self.runs: list[SimpleNamespace] = []

    def Settings(self, **given: Any) -> dict[str, Any]:
        return given

    def init(self, **given: Any) -> SimpleNamespace:
        logged: dict[int, dict[str, Any]] = {}
        run = SimpleNamespace(given=given, logged=logged, code=None)
        run.log = lambda values, step: logged.update({step: values})
        run.finish = lambda exit_code: setattr(run, "code", exit_code)
        self.runs.append(run)
        return run


def test_wandb_gets_each_record_once_and_a_resumed_run_keeps_its_id(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wandb = Wandb()
    monkeypatch.setitem(sys.modules, "wandb", wandb)
    records = killed_and_resumed(tmp_path, "wandb")
    first, second = wandb.runs
    assert list(first.logged) == [1, 2, 4]
    assert list(second.logged) == [6, 8, 10, 12]
    assert second.logged == {record["step"]: record for record in records[3:]}
    assert first.given["id"] == second.given["id"]
    assert (first.code, second.code) == (1, 0)
    assert (first.given["project"], first.given["mode"], first.given["resume"]) == ("orrery", None, "allow")
    assert (first.given["dir"], first.given["config"]) == (
        str(tmp_path / "observers"),
        plain(toy_recipe(**Killed.RECIPE)),
    )


@pytest.mark.parametrize(("name", "module"), [("tensorboard", "torch.utils.tensorboard"), ("wandb", "wandb")])
def test_a_missing_package_is_told_before_anything_is_read(
    name: str, module: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(
        MachineError, match=f"the observer {name} needs the package {name}, which is not inst"
    ) as refused:
        assemble(toy_recipe(logging__observers=[name]))  # its data are not there
    assert refused.value.hint == f"pip install 'orrery-lm[{name}]', or pip install {name}"


def test_a_recipe_names_observers_and_a_program_makes_its_own_known() -> None:
    @register
    class Bell(Observer):
        class Settings(Section):
            kind: Literal["bell"] = "bell"
            tone: str = "c"

        def __init__(self, tone: str) -> None:
            self.tone = tone

        def observe(self, event: Event) -> None:
            pass

    recipe = toy_recipe(logging__observers=["csv", {"kind": "bell", "tone": "e"}])
    again = check_recipe(plain(recipe), "the recipe")
    observers = [OBSERVERS.class_of(own).of(own) for own in again.logging.observers]
    assert [type(one).__name__ for one in observers] == ["Csv", "Bell"]
    assert observers[1].tone == "e"


@pytest.mark.parametrize(
    ("named", "said"),
    [
        (["cvs"], "kind must be one of csv, tensorboard, wandb"),
        (["csv", "csv"], "the observer csv is named twice"),
        ([{"kind": "wandb", "mode": "loud"}], r"logging\.observers\.0\.mode"),
    ],
)
def test_what_is_wrong_with_observers_is_told_by_key(named: list[Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        toy_recipe(logging__observers=named)
