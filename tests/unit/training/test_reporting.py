"""What a run shows while it learns, what it says of its machine, and what it leaves of the signals as it found it."""

import io
import platform
import signal
from pathlib import Path
from typing import Any

import pytest
import torch
from rich.console import Console

from orrery.errors import RunError
from orrery.recipes.read import check_as, check_recipe, config_hash, plain
from orrery.recipes.word_vectors import WordVectorRecipe
from orrery.runs.word_vectors import settings_of
from orrery.training import distributed
from orrery.training.distributed import Group
from orrery.training.folder import open_run_folder, surroundings
from orrery.training.loop import Trainer
from orrery.training.memory import weight_bytes
from orrery.training.progress import Bar
from orrery.training.signals import StopSignals
from orrery.training.state import refuse_bad_weights
from training_toy import toy_parts, toy_recipe


class Watching:
    """A reporter that keeps what it is told."""

    def __init__(self) -> None:
        self.steps: list[tuple[int, int, bool]] = []

    def line(self, text: str) -> None:
        pass

    def progress(self, step: int, steps: int, record: Any) -> None:
        self.steps.append((step, steps, record is not None))

    def close(self) -> None:
        pass


def test_every_step_is_shown_and_every_line_of_metrics(tmp_path: Path) -> None:
    seen = Watching()
    settings = toy_recipe(training__steps=4, logging__every=2)
    with open_run_folder(tmp_path / "run") as folder:
        Trainer(toy_parts(), settings, folder, reporter=seen).run()
    assert seen.steps == [(1, 4, True), (2, 4, True), (3, 4, False), (4, 4, True)]


def test_the_bar_moves_and_stays_when_it_is_closed() -> None:
    screen = io.StringIO()
    bar = Bar(Console(file=screen, force_terminal=True, width=100))
    assert bar.bar.live.is_started
    bar.progress(3, 8, {"step": 3, "train/loss": 1.5})
    bar.close()
    assert not bar.bar.live.is_started
    assert "3/8" in screen.getvalue()


def test_the_processor_is_named_on_every_system(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    for name, told in (("", "x86_64"), ("a processor", "a processor")):
        monkeypatch.setattr(platform, "processor", lambda name=name: name)
        assert surroundings()["processor"] == told


def test_the_hash_of_a_recipe_does_not_depend_on_the_order_of_its_keys() -> None:
    values = plain(toy_recipe())
    config = {"n_layer": 2, "n_head": 4}
    turned = dict(reversed(config.items()))
    hashes = {
        config_hash(check_recipe({**values, "model": {"family": "gpt2", "config": order}}, "a test"))
        for order in (config, turned)
    }
    assert len(hashes) == 1


def test_the_signals_are_left_as_they_were() -> None:
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    with StopSignals() as stop:
        assert signal.getsignal(signal.SIGTERM) == stop._receive
    assert {number: signal.getsignal(number) for number in before} == before


@pytest.mark.parametrize(("raised", "expected"), [(0, False), (1, True), (2, True)])
def test_one_flag_of_many_ranks_is_enough(raised: int, expected: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    def all_reduce(values: torch.Tensor) -> None:
        values.fill_(raised)

    monkeypatch.setattr(distributed.dist, "all_reduce", all_reduce)
    group = object.__new__(Group)
    group.device = torch.device("cpu")
    assert group.any(flag=False) is expected


def test_word_vectors_never_end_with_a_larger_rate_than_they_began_with() -> None:
    values = {"name": "v", "kind": "word2vec", "data": {"train": "none"}}
    for rate, expected in ((0.05, 1e-4), (1e-5, 1e-5)):
        settings = settings_of(check_as(WordVectorRecipe, {**values, "training": {"rate": rate}}, "a test"))
        assert (settings.rate, settings.final_rate) == (rate, expected)


def test_a_sum_over_ranks_leaves_what_each_gave(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(distributed.dist, "all_reduce", lambda values, group: values.mul_(2))
    group = object.__new__(Group)
    group.alike = None
    group.device = torch.device("cpu")
    mine = torch.tensor([1.0, 3.0])
    assert group.sum(mine).tolist() == [2.0, 6.0]
    assert mine.tolist() == [1.0, 3.0]


def test_the_bytes_of_weights_are_those_of_their_numbers() -> None:
    model = torch.nn.Linear(3, 5)
    assert weight_bytes(model) == 4 * (15 + 5)
    assert weight_bytes(model.to(torch.bfloat16)) == 2 * (15 + 5)


def test_weights_that_are_no_numbers_are_told_with_a_way_on() -> None:
    model = torch.nn.Linear(2, 2)
    torch.nn.init.constant_(model.weight, torch.nan)
    with pytest.raises(RunError, match="step 3: weight weight is not finite") as caught:
        refuse_bad_weights(model, 3)
    assert "--model.from RUN" in caught.value.hint
    assert "training.optimizer.rate" in caught.value.hint
