"""When a run ends and which model it leaves: patience, the best or the last, and both over kills and resumes."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from orrery.checkpoints.store import CheckpointStore, read_checkpoint
from orrery.errors import UsageError
from orrery.metrics import Metric
from orrery.runs.conclusion import conclusion
from orrery.training.ending import improved
from orrery.training.state import Progress
from training_toy import toy_parts, toy_recipe, toy_run

CURVE = [5.0, 3.0, 4.0, 3.0, 2.5, 6.0, 7.0, 8.0, 9.0, 1.0]
"""What the evaluations of steps 2, 4, ... find; at 8 the best so far comes again, which is no better."""
KEPT = {
    "evaluation__every": 2,
    "checkpoints__every": 5,
    "logging__every": 1,
    "data": {"train": "x", "split": {"every": 2}},
}


class Scripted(Metric):
    """Finds the next value of a curve."""

    def __init__(self, after: int = 0, curve: Any = CURVE) -> None:
        self.calls, self.curve = after, curve

    def measure(self, model: Any, batch: Any, terms: Any) -> torch.Tensor:
        return torch.zeros(1)

    def value(self, sums: Any, held_back: Any) -> float:
        self.calls += 1
        return self.curve[self.calls - 1]


def parts(after: int = 0, curve: Any = CURVE) -> Any:
    """Return the toy with a loss held back as written; its final model is the embedding, saved as it is."""
    made = toy_parts(finish=lambda model, folder: torch.save(model.embedding.weight.detach(), folder / "embedding"))
    assert made.validation is not None
    return replace(made, validation=replace(made.validation, metrics={"loss": Scripted(after, curve)}))


def recipe(**dotted: Any) -> Any:
    return toy_recipe(**{"training__steps": 20, **KEPT, **dotted})


def final(folder: Path) -> torch.Tensor:
    return torch.load(folder / "final" / "embedding")


def saved(folder: Path, step: int) -> torch.Tensor:
    return read_checkpoint(CheckpointStore(folder / "checkpoints").path(step)).model["embedding.weight"]


def log(folder: Path) -> str:
    return (folder / "log.txt").read_text()


@pytest.mark.parametrize(("patience", "end"), [(1, 6), (2, 8), (3, 16), (4, 18), (5, 20), (None, 20)])
def test_patience(patience: int | None, end: int, tmp_path: Path) -> None:
    outcome = toy_run(tmp_path, recipe(evaluation__patience=patience), parts())
    assert outcome.step == end
    assert CheckpointStore(tmp_path / "checkpoints").steps()[0] == end
    assert json.loads((tmp_path / "metrics.jsonl").read_text().splitlines()[-1])["step"] == end
    best = {6: "3.0000, is that of step 4", 8: "3.0000, is that of step 4", 16: "2.5000, is that of step 10"}
    reason = f"ended early, after step {end} of 20: {patience} evaluations without a better loss"
    assert (reason in log(tmp_path)) == (end < 20)
    assert best.get(end, "") in log(tmp_path)
    assert torch.equal(final(tmp_path), saved(tmp_path, end))


def test_killed_and_resumed_waits_as_long(tmp_path: Path) -> None:
    """Cut at 13, between evaluations, the count of those without a better value goes on from the checkpoint."""
    steady = {"training__schedule": {"kind": "constant"}, "evaluation__patience": 3}
    toy_run(tmp_path / "whole", recipe(**steady), parts())
    toy_run(tmp_path / "cut", recipe(**steady, training__steps=13, evaluation__every=2), parts())
    store = CheckpointStore(tmp_path / "cut" / "checkpoints")
    assert read_checkpoint(store.path(13)).state["progress"]["waited"] == 2  # step 13, the last, is evaluated too
    outcome = toy_run(tmp_path / "cut", recipe(**steady), parts(after=7), resume=True)
    assert outcome.step == 14
    again = toy_run(tmp_path / "whole", recipe(**steady), parts(), resume=True)
    assert again.step == 16
    assert log(tmp_path / "whole").count("ended early, after step 16") == 2


def test_from_a_checkpoint_in_the_middle_it_ends_alike(tmp_path: Path) -> None:
    """The newest checkpoints are lost, as by a kill before they were written."""
    same = recipe(training__final="best", evaluation__patience=3)
    toy_run(tmp_path, same, parts())
    expected = final(tmp_path)
    metrics = [line.get("val/loss") for line in map(json.loads, (tmp_path / "metrics.jsonl").read_text().splitlines())]
    store = CheckpointStore(tmp_path / "checkpoints")
    for step in (15, 16):
        for file in store.path(step).iterdir():
            file.unlink()
        store.path(step).rmdir()
    assert store.steps()[0] == 10
    assert toy_run(tmp_path, same, parts(after=5), resume=True).step == 16
    again = [line.get("val/loss") for line in map(json.loads, (tmp_path / "metrics.jsonl").read_text().splitlines())]
    assert again == metrics
    assert torch.equal(final(tmp_path), expected)


def test_the_best_model_is_left_where_it_is_asked_for(tmp_path: Path) -> None:
    asked = recipe(training__final="best", training__steps=16)
    toy_run(tmp_path, asked, parts())
    assert torch.equal(final(tmp_path), saved(tmp_path, 10))
    assert not torch.equal(final(tmp_path), saved(tmp_path, 16))
    assert "final: the best model, that of step 10" in log(tmp_path)
    toy_run(tmp_path, recipe(training__steps=16), parts(), resume=True)  # which model is left may change
    assert torch.equal(final(tmp_path), saved(tmp_path, 16))


def test_without_a_number_the_last_is_left(tmp_path: Path) -> None:
    none = recipe(training__final="best", evaluation__patience=2)
    outcome = toy_run(tmp_path, none, parts(curve=[float("nan")] * 10))
    assert outcome.step == 4
    assert "2 evaluations without a better loss; none was a number" in log(tmp_path)
    assert "final: the last model" in log(tmp_path)
    assert torch.equal(final(tmp_path), saved(tmp_path, 4))


def test_the_expectation_is_compared_with_the_model_that_is_left() -> None:
    records = [
        {"step": 2 * n + 2, "val/loss": value, "val/perplexity": 10 * value} for n, value in enumerate(CURVE[:8])
    ]
    expects = {"expect": {"metric": "val/perplexity", "bound": 30}}
    assert "perplexity 80.0000, expected at most 30.0: missed" in conclusion(recipe(**expects), records)[0]
    assert (
        "perplexity 25.0000, expected at most 30.0: met"
        in conclusion(recipe(**expects, training__final="best"), records)[0]
    )


@pytest.mark.parametrize("asked", [{"evaluation__patience": 2}, {"training__final": "best"}])
def test_nothing_decides_where_nothing_is_held_back(asked: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="no data are held back to measure on"):
        recipe(**asked, data={"train": "x"})


def test_the_progress_of_earlier_versions_has_waited_for_nothing() -> None:
    assert Progress(**{key: value for key, value in Progress(step=3).state().items() if key != "waited"}).waited == 0


@pytest.mark.parametrize(
    ("scores", "losses", "best"),
    [
        ([0.5, 0.5, 0.5], [3.0, 2.0, 2.5], 1),
        ([0.5, 0.5, 0.5], [2.0, 2.0, 2.0], 0),
        ([0.0, 0.0, 0.0, 0.0], [4.0, 3.0, 2.0, 1.0], 3),
        ([1.0, 1.0, 0.9], [3.0, 2.0, 0.1], 1),
        ([0.1, 0.9, 0.9, 0.1], [0.1, 9.0, 8.0, 0.1], 2),
        ([0.9, 0.1, 0.9], [5.0, 1.0, 4.0], 2),
        ([0.9, 0.1, 0.9], [4.0, 1.0, 5.0], 0),
        ([0.5, 0.5], [float("nan"), 2.0], 1),
        ([0.5, 0.5], [2.0, float("nan")], 0),
        ([float("nan"), float("nan")], [2.0, 1.0], None),
        ([0.5, float("nan"), 0.5], [2.0, 0.1, 1.0], 2),
        ([0.5, 0.5, 0.5], [None, None, None], 0),
    ],
)
def test_of_equal_scores_the_one_with_the_smaller_loss_is_the_best(scores: Any, losses: Any, best: int | None) -> None:
    validation = parts().validation
    assert validation is not None
    deciding = replace(validation, metrics={"loss": Scripted(), "accuracy": Higher()}, best="accuracy")
    progress, best_step = Progress(decides="accuracy"), None
    for step, (score, loss) in enumerate(zip(scores, losses, strict=True)):
        measured = {"val/accuracy": score} | ({} if loss is None else {"val/loss": loss})
        best_step = step if improved(progress, measured, deciding) else best_step
    assert best_step == best
    assert progress.waited == len(scores) - 1 - (scores.index(max(scores)) if best is not None else -1)


class Higher(Scripted):
    """One of which more is better."""

    higher_is_better = True
