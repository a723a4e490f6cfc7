"""Who watches a run is told of everything once and in order, by one process; and no run is lost by it."""

import json
from pathlib import Path
from signal import SIGINT, SIGTERM
from typing import Any, Literal

import pytest
from torch import Tensor

from orrery.errors import MachineError
from orrery.reports.observers import Event, Observer
from orrery.schema.section import Section
from orrery.training import loop
from orrery.training.distributed import Alone
from orrery.training.folder import RunFolder
from orrery.training.loop import Trainer
from training_toy import ToySource, toy_parts, toy_recipe, toy_run


class Seen(Observer):
    """Keeps the events."""

    def __init__(self) -> None:
        self.events: list[Any] = []

    def observe(self, event: Event) -> None:
        self.events.append(event)

    def names(self) -> list[str]:
        return [type(event).__name__ for event in self.events]


class Failing(Observer):
    """Cannot note the second line of metrics."""

    class Settings(Section):
        kind: Literal["failing"] = "failing"

    def __init__(self) -> None:
        self.told = 0

    def observe(self, event: Event) -> None:
        self.told += 1
        if getattr(event, "step", 0) == 2:
            raise ValueError("no place for it")


def metrics(run: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]


def test_everything_is_told_once_and_in_order(tmp_path: Path) -> None:
    seen = Seen()
    toy_run(tmp_path, toy_recipe(training__steps=4), toy_parts(observers=[seen], sample=lambda model: "a text"))
    told = [name for name in seen.names() if name != "Said"]
    steps = ["StepLearned"] * 3
    assert told == ["RunBegan", *steps, "CheckpointSaved", "Evaluated", "StepLearned", "CheckpointSaved", "RunEnded"]
    began, ended = next(event for event in seen.events if hasattr(event, "first")), seen.events[-1]
    assert (began.folder, began.name, began.step, began.first, began.recipe["seed"]) == (tmp_path, "toy", 0, 1, 1337)
    assert (ended.step, ended.signal, ended.error) == (4, None, None)
    evaluated = next(event for event in seen.events if hasattr(event, "found"))
    assert (evaluated.step, evaluated.sample, evaluated.found["val/loss"]) == (4, "a text", ended.best)
    records = [event.record for event in seen.events if getattr(event, "record", None) is not None]
    assert records == metrics(tmp_path)
    saved = [event for event in seen.events if hasattr(event, "path")]
    assert [(event.step, event.best) for event in saved] == [(3, False), (4, True)]
    assert all(event.path.is_dir() for event in saved)
    said = [event.text for event in seen.events if hasattr(event, "text")]
    assert said == (tmp_path / "log.txt").read_text().splitlines()


def test_what_an_observer_raises_is_said_by_its_name_and_the_run_goes_on(tmp_path: Path) -> None:
    failing, seen = Failing(), Seen()
    toy_run(tmp_path / "watched", toy_recipe(), toy_parts(observers=[failing, seen]))
    toy_run(tmp_path / "alone", toy_recipe())
    line = "the observer failing failed, and is told nothing more: ValueError: no place for it"
    assert (tmp_path / "watched/log.txt").read_text().count(line) == 1
    assert line in [event.text for event in seen.events if hasattr(event, "text")]
    assert failing.told < len(seen.events)
    last = "checkpoints/step-000012/model.safetensors"
    assert (tmp_path / "watched" / last).read_bytes() == (tmp_path / "alone" / last).read_bytes()


def test_what_the_run_itself_keeps_ends_it(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no place"):
        toy_run(tmp_path, toy_recipe(), toy_parts(keepers=[Failing()]))


class Killed(ToySource):
    """Breaks off while it gives the batch of one step."""

    def __init__(self, step: int) -> None:
        super().__init__()
        self.step = step

    def batch(self, step: int) -> dict[str, Tensor]:
        if step == self.step:
            raise RuntimeError("killed")
        return super().batch(step)


def test_the_end_of_a_run_that_fails_is_told_with_its_error(tmp_path: Path) -> None:
    seen = Seen()
    with pytest.raises(RuntimeError):
        toy_run(tmp_path, toy_recipe(), toy_parts(source=Killed(5), observers=[seen]))
    assert (seen.events[-1].step, seen.events[-1].error) == (5, "killed")


def test_a_run_that_cannot_begin_is_not_told_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = Seen()
    monkeypatch.setattr(loop.disk, "free_bytes", lambda path: 100)
    with pytest.raises(MachineError, match="100 free"):
        toy_run(tmp_path, toy_recipe(), toy_parts(observers=[seen]))
    assert seen.names() == []


class SecondRank(Alone):
    """One process that takes itself for another one."""

    rank = 1


def test_only_the_first_process_tells(tmp_path: Path) -> None:
    seen = Seen()
    (tmp_path / "run").mkdir()
    Trainer(toy_parts(observers=[seen]), toy_recipe(training__steps=2), RunFolder(tmp_path), SecondRank()).run()
    assert seen.events == []


def test_a_process_ends_by_a_signal_that_another_one_got(tmp_path: Path) -> None:
    ranks = SecondRank()
    trainer = Trainer(toy_parts(), toy_recipe(), RunFolder(tmp_path), ranks)
    assert trainer._stopping() is None
    ranks.any = lambda flag: True  # type: ignore[method-assign]
    assert trainer._stopping() == SIGTERM  # who started it does not take it for one that has ended
    trainer.signals.received = SIGINT
    assert trainer._stopping() == SIGINT
