import json
import math
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from orrery.checkpoints.store import CheckpointStore, read_checkpoint
from orrery.errors import MachineError, RunError, UsageError
from orrery.objectives import Objective, Term
from orrery.objectives.causal import CausalLanguageModel
from orrery.training import loop as loop_module
from orrery.training import memory
from orrery.training.distributed import Alone
from orrery.training.evaluate import Validation, evaluate
from orrery.training.folder import open_run_folder
from orrery.training.loop import Trainer
from orrery.training.precision import Precision
from training_toy import ToySource, toy_model, toy_parts, toy_recipe, toy_run


def records(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def learned(folder: Path) -> list[tuple]:
    """What must not depend on kills and resumes: everything of the metrics but time and memory."""
    timed = {"tokens_per_second", "memory", "mfu"}
    return [tuple((key, value) for key, value in record.items() if key not in timed) for record in records(folder)]


def final(folder: Path) -> bytes:
    store = CheckpointStore(folder / "checkpoints")
    return (store.path(store.steps()[0]) / "model.safetensors").read_bytes()


def stores(folder: Path) -> list[int]:
    return CheckpointStore(folder / "checkpoints").steps()


def test_a_run_learns_and_leaves_its_folder_in_order(tmp_path: Path) -> None:
    finish = lambda model, folder: torch.save({}, folder / "model")  # noqa: E731
    outcome = toy_run(tmp_path, toy_recipe(training__steps=40), toy_parts(finish=finish))
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "checkpoints",
        "config.yaml",
        "final",
        "lock",
        "log.txt",
        "metrics.jsonl",
        "run.json",
    ]
    lines = records(tmp_path)
    assert [record["step"] for record in lines] == [1, *range(2, 41, 2)]
    assert lines[-1]["train/loss"] < lines[0]["train/loss"] / 1.5
    last = lines[-1]
    assert last["val/bpb"] == pytest.approx(last["val/loss"] / math.log(2) / math.e)
    assert last["val/perplexity"] == pytest.approx(math.exp(last["val/loss"]))
    assert outcome.best == min(record["val/loss"] for record in lines if "val/loss" in record)
    assert json.loads((tmp_path / "run.json").read_text())["seed"] == 1337
    assert "step-000040" in (tmp_path / "checkpoints/latest").read_text()


def test_stopped_and_resumed_is_the_uninterrupted_run(tmp_path: Path) -> None:
    toy_run(tmp_path / "whole", toy_recipe())
    for steps in (1, 4, 5, 12):  # 5: inside the window of a line of metrics
        recipe = toy_recipe(training__schedule={"kind": "constant"}, training__steps=steps)
        toy_run(tmp_path / "parts", recipe, resume=True)
    toy_run(tmp_path / "constant", toy_recipe(training__schedule={"kind": "constant"}))
    assert final(tmp_path / "parts") == final(tmp_path / "constant") != final(tmp_path / "whole")


class SameBatch(ToySource):
    """Gives the first batch again at every step."""

    def batch(self, step: int) -> dict[str, Tensor]:
        return super().batch(0)


def test_every_step_draws_its_own_dropout(tmp_path: Path) -> None:
    """With the same batch and weights that stand still, only dropout can tell two steps apart."""
    still = {"logging__every": 1, "training__steps": 4, "training__optimizer__rate": 1e-30}
    for name in ("first", "second"):
        toy_run(tmp_path / name, toy_recipe(**still), toy_parts(toy_model(dropout=0.5), source=SameBatch()))
    losses = [record["train/loss"] for record in records(tmp_path / "first")]
    assert len(set(losses)) == 4
    assert losses == [record["train/loss"] for record in records(tmp_path / "second")]


def test_clipping_scales_the_whole_gradient_to_the_norm(tmp_path: Path) -> None:
    """The root of the sum of squares over all parameters, as one vector."""
    gradients = {}
    for clip in (None, 1e-3):
        recipe = toy_recipe(
            training__steps=1, training__clip=clip, training__micro_batch=None, training__schedule={"kind": "constant"}
        )
        parts = toy_parts(toy_model(dropout=0.0))
        toy_run(tmp_path / str(clip), recipe, parts)
        gradients[clip] = torch.cat([parameter.grad.flatten() for parameter in parts.model.parameters()])
        (record,) = records(tmp_path / str(clip))
        assert record["grad_norm"] == pytest.approx(float(gradients[None].square().sum().sqrt()), rel=1e-5)
    assert float(gradients[1e-3].square().sum().sqrt()) == pytest.approx(1e-3, rel=1e-3)
    torch.testing.assert_close(gradients[1e-3] / gradients[1e-3].norm(), gradients[None] / gradients[None].norm())


class Uneven(ToySource):
    """Batches of one, two, three ... rows."""

    def batch(self, step: int) -> dict[str, Tensor]:
        self.rows = step + 1
        return super().batch(step)


def test_the_validation_loss_is_a_mean_over_tokens_not_over_batches() -> None:
    model, objective = toy_model(dropout=0.5), CausalLanguageModel()
    validation = Validation(Uneven(seed=99), 5, objective)
    measures = evaluate(model, validation, Precision("float32", "plain", "cpu", 1), Alone(), lambda: False)
    batches = [Uneven(seed=99).batch(step) for step in range(5)]
    with torch.no_grad():
        model.eval()
        nats = [
            nn.functional.cross_entropy(
                model.logits(batch["ids"]).flatten(0, 1), batch["targets"].flatten(), reduction="none"
            )
            for batch in batches
        ]
    targets = sum(int((batch["targets"] != -100).sum()) for batch in batches)
    assert measures is not None
    assert measures["val/loss"] == pytest.approx(float(torch.cat(nats).sum()) / targets, rel=1e-6)


class StopAfter(ToySource):
    """Raises the flag of a signal while it gives the batch of one step."""

    def __init__(self, step: int, trainer: list[Trainer]) -> None:
        super().__init__()
        self.step, self.trainer = step, trainer

    def batch(self, step: int) -> dict[str, Tensor]:
        if step == self.step:
            self.trainer[0].signals.received = 15
        return super().batch(step)


@pytest.mark.parametrize("step", [0, 3, 4, 11])  # before a save, at an evaluation, between, at the end
def test_a_signal_in_any_step_changes_nothing(step: int, tmp_path: Path) -> None:
    toy_run(tmp_path / "whole", toy_recipe())
    trainer: list[Trainer] = []
    with open_run_folder(tmp_path / "cut") as folder:
        trainer.append(Trainer(toy_parts(source=StopAfter(step, trainer)), toy_recipe(), folder))
        outcome = trainer[0].run()
    assert stores(tmp_path / "cut")[0] == step + 1
    assert (outcome.signal, outcome.step) == (15, step + 1)
    assert toy_run(tmp_path / "cut", toy_recipe(), resume=True).signal is None
    assert final(tmp_path / "cut") == final(tmp_path / "whole")
    assert learned(tmp_path / "cut") == learned(tmp_path / "whole")


def test_a_lost_or_damaged_checkpoint_costs_time_but_no_metrics(tmp_path: Path) -> None:
    toy_run(tmp_path / "whole", toy_recipe())
    toy_run(tmp_path / "hurt", toy_recipe())
    (tmp_path / "hurt/checkpoints/step-000012/model.safetensors").write_bytes(b"")
    with (tmp_path / "hurt/metrics.jsonl").open("a") as file:
        file.write('{"step": 13, "cut')
    toy_run(tmp_path / "hurt", toy_recipe(), resume=True)
    assert "is tried" in (tmp_path / "hurt/log.txt").read_text()
    assert final(tmp_path / "hurt") == final(tmp_path / "whole")
    assert learned(tmp_path / "hurt") == learned(tmp_path / "whole")


def test_a_folder_in_use_or_a_changed_recipe_is_refused(tmp_path: Path) -> None:
    toy_run(tmp_path, toy_recipe())
    with pytest.raises(UsageError, match=r"not empty.*--resume.*--overwrite"):
        toy_run(tmp_path, toy_recipe())
    with pytest.raises(UsageError, match=r"training\.clip was 1\.0 and is now 2\.0"):
        toy_run(tmp_path, toy_recipe(training__clip=2.0), resume=True)
    (tmp_path / "notes.txt").write_text("mine")
    toy_run(tmp_path, toy_recipe(training__clip=2.0), overwrite=True)
    assert (tmp_path / "notes.txt").read_text() == "mine"
    assert [record["step"] for record in records(tmp_path)] == [1, 2, 4, 6, 8, 10, 12]


class Poisoned(ToySource):
    """Carries a factor of the loss, NaN in step 6."""

    def batch(self, step: int) -> dict[str, Tensor]:
        batch = super().batch(step)
        return batch | {"poison": torch.full((self.rows,), float("nan") if step == 6 else 1.0)}


class PoisonedLoss(Objective):
    """The causal loss, times a number of the batch."""

    needs = CausalLanguageModel.needs

    def __init__(self) -> None:
        self.inner = CausalLanguageModel()

    def prepare(self, batch: Any, rng: torch.Generator) -> Any:
        return self.inner.prepare(batch, rng)

    def counts(self, batch: Any) -> dict[str, int]:
        return self.inner.counts(batch)

    def loss(self, model: nn.Module, batch: Any) -> Any:
        term = self.inner.loss(model, batch)["next_token"]
        factor = batch["poison"][-1] if "poison" in batch else 1.0
        return {"next_token": Term(term.sum * factor, term.count)}


def test_a_loss_that_is_not_finite_stops_with_step_rows_and_tensor(tmp_path: Path) -> None:
    parts = toy_parts(source=Poisoned(), objective=PoisonedLoss())
    with pytest.raises(RunError, match=r"step 7: loss nan.*rows 0-3, 4-5 of batch 6.*gradient embedding\.weight"):
        toy_run(tmp_path, toy_recipe(), parts)
    assert stores(tmp_path)[0] == 6
    assert read_checkpoint(tmp_path / "checkpoints/step-000006").step == 6


def test_a_skipped_step_changes_nothing_and_is_counted(tmp_path: Path) -> None:
    parts = toy_parts(source=Poisoned(), objective=PoisonedLoss())
    toy_run(tmp_path, toy_recipe(training__on_nonfinite="skip"), parts)
    assert records(tmp_path)[-1]["skipped"] == 1
    assert "skipped step 7" in (tmp_path / "log.txt").read_text()
    assert all(torch.isfinite(parameter).all() for parameter in parts.model.parameters())


def test_skipping_has_its_limit(tmp_path: Path) -> None:
    model = toy_model()
    nn.init.constant_(model.mix.bias, float("inf"))
    nn.init.constant_(model.norm.weight, float("nan"))
    with pytest.raises(RunError, match=r"step 3: .*weight mix\.bias"):
        toy_run(tmp_path, toy_recipe(training__on_nonfinite="skip", training__skip_limit=2), toy_parts(model))


def test_weights_that_are_not_finite_never_replace_a_good_checkpoint(tmp_path: Path) -> None:
    wild = {"kind": "sgd", "rate": 3e38}
    schedule = {"kind": "noam", "warmup": 1, "width": 1}
    recipe = toy_recipe(training__optimizer=wild, training__schedule=schedule, training__clip=None)
    with pytest.raises(RunError, match="not finite"):
        toy_run(tmp_path, recipe)
    for step in stores(tmp_path):
        saved = read_checkpoint(tmp_path / f"checkpoints/step-{step:06d}")
        assert all(torch.isfinite(tensor).all() for tensor in saved.model.values())


def test_a_batch_without_targets_adds_nothing(tmp_path: Path) -> None:
    class Empty(ToySource):
        def batch(self, step: int) -> dict[str, Tensor]:
            batch = super().batch(step)
            batch["targets"][:] = -100
            return batch

    toy_run(tmp_path, toy_recipe(), toy_parts(source=Empty()))
    assert [record["train/loss"] for record in records(tmp_path)] == [0.0] * 7


def test_a_folder_that_cannot_be_written_fails_before_the_first_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(self: Path, data: bytes) -> int:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(Path, "write_bytes", refuse)
    with pytest.raises(MachineError, match="Read-only") as caught:
        toy_run(tmp_path / "run", toy_recipe())
    assert caught.value.exit_code == 5
    assert not (tmp_path / "run/metrics.jsonl").exists()


def test_too_little_room_for_one_checkpoint_fails_before_the_first_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop_module.disk, "free_bytes", lambda path: 100)
    with pytest.raises(MachineError, match="100 free"):
        toy_run(tmp_path, toy_recipe())
    assert not (tmp_path / "metrics.jsonl").exists()


def test_out_of_memory_says_what_is_needed_and_what_helps() -> None:
    message = r"out of memory \(weights .* GB, gradients .* GB, optimizer .* GB"
    with pytest.raises(RunError, match=message) as caught, memory.memory_errors(toy_model(), "adamw"):
        torch.empty(2**60)
    assert "training.micro_batch" in caught.value.hint


def test_other_errors_pass_the_memory_guard() -> None:
    with pytest.raises(RuntimeError, match="shapes cannot"), memory.memory_errors(toy_model(), "sgd"):
        torch.ones(2, 3) @ torch.ones(2, 3)


def test_a_signal_before_the_first_step_keeps_the_run_that_was_to_be_replaced(tmp_path: Path) -> None:
    toy_run(tmp_path, toy_recipe())
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    with open_run_folder(tmp_path, overwrite=True) as folder:
        trainer = Trainer(toy_parts(), toy_recipe(seed=7), folder)
        trainer.signals.received = 15
        assert trainer.run().signal == 15
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before
