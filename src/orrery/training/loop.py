"""The training loop: batch, gradient, clip, step; evaluate, save, and stop without losing anything."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from signal import SIGTERM
from typing import Any

import torch
from torch import nn

import orrery
from orrery.checkpoints import disk
from orrery.checkpoints.store import FEWER, Checkpoint, CheckpointStore
from orrery.data.batches.rollouts import Writer
from orrery.data.batches.seeds import derive_seed
from orrery.data.sources import AnsweredSource, BatchSource
from orrery.errors import RunError
from orrery.kernels.bfloat16_linear import take_fast_products
from orrery.kernels.processor import this_processor
from orrery.models.inputs import Inputs
from orrery.nn.joined_linear import join_layers
from orrery.objectives import Objective, _contracts
from orrery.recipes.config import Recipe
from orrery.recipes.read import as_yaml, config_hash, plain, refuse_changes
from orrery.reports.observers import CheckpointSaved, Evaluated, Event, Observer, RunBegan, RunEnded, Said, StepLearned
from orrery.settings import bound_kernel_caches
from orrery.training.compiling import compiled
from orrery.training.contract import finished_batch, own_rows
from orrery.training.distributed import Alone, Ranks
from orrery.training.ending import improved, is_over, take_best, told, write_final
from orrery.training.evaluate import Validation, evaluate
from orrery.training.folder import RunFolder
from orrery.training.freed_memory import keep_freed_memory
from orrery.training.memory import STATES, memory_errors, peak_gigabytes, refuse_too_large, weight_bytes
from orrery.training.observing import Kept, Observers, Shown
from orrery.training.optimizers import build_optimizer, optimizer_tensors, restore_optimizer, set_rate
from orrery.training.parallel.placement import place, refuse_unshared
from orrery.training.parallel.recomputation import recompute
from orrery.training.precision import Precision, choose_precision, find_device, resumed_precision
from orrery.training.progress import Reporter, Silent
from orrery.training.randomness import restore_rng, rng_state
from orrery.training.schedules import build_schedule
from orrery.training.signals import StopSignals
from orrery.training.speed import Speed
from orrery.training.state import (
    AGAIN,
    Learner,
    Progress,
    currently_named,
    first_bad_tensor,
    load_model_tensors,
    magnitude,
    model_tensors,
    refuse_another_model,
    refuse_bad_weights,
    refuse_other_facts,
    refuse_unlike,
)
from orrery.training.step import StepLoss, rows_of
from orrery.tuning import refuse_untrainable


@dataclass(frozen=True)
class Parts:
    """What a run is made of: a model, what it learns from, and what to do with it at the end.

    ``facts`` are fingerprints of what a resumed run must find again: the corpus, the tokenizer.

    ``keepers`` are told of the run and write what belongs to it, as the tokenizer beside its checkpoints, so that an
    error of theirs ends it; ``observers`` are told too, and theirs do not.

    ``describe(model)`` returns what spec.json says of the model; ``finish(model, folder)`` writes the final model into
    a new folder; ``sample(model)`` returns a text to show at each evaluation and must not draw from global generators;
    ``epochs(step)`` says of each corpus of a mixture how often it was gone through by then; ``notes`` are said at the
    beginning; ``modules`` are what the objective owns, by name; ``inputs`` what the model reads of a batch, which is
    then checked; ``writer(model, precision, micro_batch, ranks)`` has the model answer, for a source that asks.
    """

    model: nn.Module
    objective: Objective
    source: BatchSource
    validation: Validation | None = None
    describe: Callable[[Any], dict[str, Any]] | None = None
    facts: Mapping[str, str] = field(default_factory=dict)
    finish: Callable[[nn.Module, Path], None] | None = None
    sample: Callable[[nn.Module], str] | None = None
    measure_speed: Callable[[Precision], Speed] | None = None
    epochs: Callable[[int], Mapping[str, float]] | None = None
    notes: Sequence[str] = ()
    modules: Mapping[str, nn.Module] = field(default_factory=dict)
    inputs: Inputs = field(default_factory=dict)
    writer: Callable[[Any, Precision, int | None, Ranks], Writer] | None = None
    keepers: Sequence[Observer] = ()
    observers: Sequence[Observer] = ()


@dataclass(frozen=True)
class Outcome:
    """How a run ended: its steps, the best value of the metric that decides, the signal that stopped it.

    ``arithmetic`` is what it computed in, in words.
    """

    step: int
    best: float | None
    signal: int | None
    arithmetic: str = ""


def train(
    parts: Parts, recipe: Recipe, folder: RunFolder, ranks: Ranks | None = None, reporter: Reporter | None = None
) -> Outcome:
    """Run a training, from the newest checkpoint in its folder if there is one: what everybody trains by."""
    return Trainer(parts, recipe, folder, ranks, reporter).run()


class Trainer:
    """One run: its parts, its settings, its state, and the loop over its steps."""

    def __init__(
        self,
        parts: Parts,
        recipe: Recipe,
        folder: RunFolder,
        ranks: Ranks | None = None,
        reporter: Reporter | None = None,
    ) -> None:
        bound_kernel_caches()
        self.parts, self.recipe, self.folder = parts, recipe, folder
        self.settings = recipe.training
        self.ranks: Ranks = ranks or Alone()
        own = (Kept(folder), *parts.keepers, Shown(reporter or Silent()))
        self.observers = Observers(own, parts.observers)
        self.store = CheckpointStore(folder.checkpoints, recipe.checkpoints.keep)
        self.schedule = build_schedule(self.settings.schedule, self.settings.steps)
        self.progress = Progress()
        self.signals = StopSignals()
        self.clock, self.tokens_before = 0.0, 0

    def run(self) -> Outcome:
        """Train up to ``training.steps``, from the newest checkpoint if any, and return how it ended."""
        keep_freed_memory()
        with self.signals, memory_errors(self.parts.model, self.settings.optimizer.kind):
            self._start()
            try:
                signal = self._learn()
            except Exception as error:
                self._ended(error=str(error))
                raise
            self._ended(signal=signal)
        return Outcome(self.progress.step, self.progress.best, signal, self.precision.described)

    def _start(self) -> None:
        """Restore the newest checkpoint or begin at step 0, and refuse early what would fail late."""
        device, weights = find_device(self.settings.device), magnitude(self.parts.model)
        self.model = self.parts.model.to(device).train()
        self.described = self._description()  # what shares the weights changes the classes of its parts
        self.owned = nn.ModuleDict(self.parts.modules).to(device)
        join_layers(self.model, device)
        take_fast_products(self.model, device, this_processor())
        self.notes = (*self.parts.notes, *compiled(self.model, self.recipe.parallel.compile, device))
        recompute(self.model, self.recipe.parallel.recompute, lambda: self.precision.context())
        refuse_unshared(self.parts.objective, self.recipe.parallel)
        self.placement = place(self.model, self.ranks, self.recipe.parallel)
        self.learner = Learner(self.model, self.owned) if self.owned else self.model
        refuse_untrainable(self.learner)
        refuse_too_large(self.learner, self.settings.optimizer.kind, device)
        self.optimizer = build_optimizer(self.learner, self.settings.optimizer)
        # What cannot be trained has left nothing behind so far.
        if self.ranks.rank == 0:
            self.store.open()
        saved = self.store.newest(self._say)
        self._refuse_unlike(saved, weights)
        self.precision = (
            resumed_precision(saved.state["precision"], device)
            if saved
            else choose_precision(self.settings.precision, device, this_processor(), torch.get_num_threads())
        )
        torch.set_num_threads(self.precision.threads)
        if saved is not None:
            self._restore(saved)
        self._begin_sources()
        if self.ranks.rank == 0:
            self._open_folder()
        self.speed = self.parts.measure_speed(self.precision) if self.parts.measure_speed else None
        step = self.progress.step
        first = step if self.progress.pending else step + 1
        self._tell(RunBegan(self.folder.path, self.recipe.name, step, first, plain(self.recipe)))
        self.clock = time.perf_counter()

    def _refuse_unlike(self, saved: Checkpoint | None, weights: float) -> None:
        """Refuse processes that differ from the first, and a checkpoint of another run than this one."""
        known = {
            "version": orrery.__version__,
            "recipe": config_hash(self.recipe),
            "checkpoint": "none" if saved is None else f"step {saved.step:,}",
            **self.parts.facts,
        }
        refuse_unlike(known, weights, self.ranks)
        if saved is not None:
            refuse_changes(saved.state["config"], self.recipe)
            refuse_other_facts(saved.state.get("facts", {}), self.parts.facts)
            refuse_another_model(saved.spec, self.described)

    def _begin_sources(self) -> None:
        """Give the sources that have the model write what writes."""
        if self.parts.writer is None:
            return
        make, how = self.parts.writer, (self.precision, self.settings.micro_batch, self.ranks)
        writer = self.placement.writer(lambda model: make(model, *how))
        validation = self.parts.validation
        for source in (self.parts.source, None if validation is None else validation.source):
            if isinstance(source, AnsweredSource):
                source.begin(writer)
        self._say(f"answers are written by {writer.described()}")

    def _restore(self, saved: Checkpoint) -> None:
        """Take up a checkpoint: weights, the objective's too, optimizer, generators, the states of source and loop."""
        load_model_tensors(self.model, currently_named(self.model, saved.model))
        load_model_tensors(self.owned, saved.objective)
        restore_optimizer(self.learner, self.optimizer, currently_named(self.model, saved.optimizer))
        restore_rng(saved.state["rng"])
        self.parts.source.restore(saved.state["source"])
        self.progress = Progress(**saved.state["progress"])
        self.tokens_before = self.progress.tokens
        self._say(f"resumed at step {saved.step:,}")

    def _open_folder(self) -> None:
        """Describe the run in its folder, and check the free space."""
        facts = {
            "seed": self.recipe.seed,
            "config_hash": config_hash(self.recipe),
            "precision": self.precision.state(),
            **self.parts.facts,
        }
        self.folder.describe(as_yaml(self.recipe), facts)
        needed = weight_bytes(self.learner) * (1 + STATES[self.settings.optimizer.kind])
        free = disk.free_bytes(self.folder.path)
        if free < needed:
            raise disk.no_room(self.folder.checkpoints, needed, FEWER)
        if free < needed * (self.recipe.checkpoints.keep + 2):
            self._say(f"warning: {free:,} bytes free, a checkpoint needs {needed:,} and several are kept")
        self._say(f"{self.precision.described}, seed {self.recipe.seed}")
        for note in self.notes:
            self._say(note)

    def _learn(self) -> int | None:
        """Take the steps that are left, and write the final model; return the signal that stopped it, if one did."""
        if (stopping := self._stopping()) and not self._over():
            self._say("stopped before the first step: nothing new to save")
            return stopping
        while self.progress.pending or not self._over():
            if not self.progress.pending:
                self._update()
            improved = self._report()
            stopping = self._stopping()
            if stopping or improved or self._over() or self._due(self.recipe.checkpoints.every):
                self._save(improved)
            if (stopping and not self._over()) or self.progress.pending:
                self._say(f"stopped and saved after step {self.progress.step:,}")
                return stopping
        self._finish()
        return None

    def _stopping(self) -> int | None:
        """Return the signal that asked a process to stop: all stop together, those that got none as by SIGTERM."""
        asked = self.ranks.any(self.signals.received is not None)
        return (self.signals.received or SIGTERM) if asked else None

    def _update(self) -> None:
        """Do one step: the gradient of the global batch, clipped, and the optimizer."""
        step, settings = self.progress.step, self.settings
        rng = torch.Generator().manual_seed(derive_seed(self.recipe.seed, "prepare", step))
        read = own_rows(self.parts.source, self.parts.objective, step, self.ranks)
        batch = finished_batch(self.parts.objective, read, rng, self.parts.inputs)
        self.optimizer.zero_grad(set_to_none=True)
        loss = self.placement.accumulate(
            self.model,
            self.parts.objective,
            batch,
            micro_batch=settings.micro_batch,
            seed=(self.recipe.seed, step),
            ranks=self.ranks,
            precision=self.precision,
            learner=self.learner,
        )
        limit = float("inf") if settings.clip is None else settings.clip
        norm = self.placement.clip(self.learner.parameters(), limit)
        self.progress.step = step + 1
        if abs(loss.loss) < float("inf") and norm < float("inf"):
            set_rate(self.optimizer, settings.optimizer.rate * self.schedule(step + 1))
            with self.precision.context():  # Muon multiplies matrices
                self.optimizer.step()
            self.progress.norm = norm
            self.progress.window.append(loss.loss)
            for name, mean in loss.means.items():
                self.progress.measured.setdefault(name, []).append(mean)
            self.progress.tokens += loss.tokens
        else:
            self._not_finite(loss, norm, rows_of(batch))

    def _not_finite(self, loss: StepLoss, norm: float, rows: int) -> None:
        """Skip the step or stop the run, naming the step, the batch's rows and the first bad tensor."""
        bad = ", ".join(f"{piece.start}-{piece.stop - 1}" for piece in loss.bad_rows) or f"0-{rows - 1}"
        tensor = first_bad_tensor(self.learner, self.ranks)
        message = f"step {self.progress.step}: loss {loss.loss:g}, gradient norm {norm:g}; "
        message += f"rows {bad} of batch {self.progress.step - 1}; first tensor not finite: {tensor}"
        self.optimizer.zero_grad(set_to_none=True)
        self.progress.skipped += 1
        if self.settings.on_nonfinite == "stop" or self.progress.skipped > self.settings.skip_limit:
            raise RunError(message, f"{AGAIN}; or with training.on_nonfinite skip")
        self._say(f"skipped {message} ({self.progress.skipped} of at most {self.settings.skip_limit})")

    def _report(self) -> bool:
        """Evaluate and write a line of metrics where due; say whether this is the best model so far."""
        evaluating = self.parts.validation is not None and self._due(self.recipe.evaluation.every)
        first = self.progress.step == 1  # whether it learns at all is asked before the tenth step is done
        if not (evaluating or first or self._due(self.recipe.logging.every)):
            self.progress.pending = False
            self._learned(None)
            return False
        self.progress.pending = True
        measures = self._evaluate() if evaluating else {}
        if measures is None:
            return False
        window = self.progress.window
        record: dict[str, Any] = {"step": self.progress.step}
        record |= {"train/loss": sum(window) / len(window)} if window else {}
        record |= {f"train/{name}": sum(means) / len(means) for name, means in self.progress.measured.items()}
        record |= self._measures() | measures
        self._learned(record)
        self.progress.pending, self.progress.window, self.progress.measured = False, [], {}
        return self.parts.validation is not None and improved(self.progress, measures, self.parts.validation)

    def _evaluate(self) -> dict[str, float] | None:
        """Measure the model on the held-back text; None if a signal interrupted."""
        assert self.parts.validation is not None
        stopped = lambda: self.signals.received is not None  # noqa: E731
        started = time.perf_counter()
        with self.placement.whole() as model:
            measures = evaluate(model, self.parts.validation, self.precision, self.ranks, stopped)
            if measures is not None and self.ranks.rank == 0:
                text = None if self.parts.sample is None else self.parts.sample(model)
                if text is not None:
                    self._say(text)
                self._tell(Evaluated(self.folder.path, self.progress.step, measures, text))
        self.clock += time.perf_counter() - started
        return measures

    def _measures(self) -> dict[str, Any]:
        """Return rate, gradient norm, tokens, speed and memory since the last line of metrics."""
        now, tokens = time.perf_counter(), self.progress.tokens
        speed = (tokens - self.tokens_before) / max(now - self.clock, 1e-9)
        self.clock, self.tokens_before = now, tokens
        measures = {
            "lr": self.settings.optimizer.rate * self.schedule(self.progress.step),
            "grad_norm": self.progress.norm,
            "tokens": tokens,
            "skipped": self.progress.skipped,
            "tokens_per_second": speed,
            "memory": peak_gigabytes(self.precision.device),
        }
        if self.speed is not None:
            measures["mfu"] = speed / self.ranks.devices / self.speed.tokens_per_second
        if self.parts.epochs is not None:
            measures |= {f"epochs/{name}": count for name, count in self.parts.epochs(self.progress.step).items()}
        return measures

    def _save(self, best: bool) -> None:
        """Write a checkpoint of this step, unless a weight is not finite or what must stay as it was has changed."""
        refuse_bad_weights(self.learner, self.progress.step, self.ranks)
        _contracts.check(self.parts.objective)
        checkpoint = self._checkpoint()
        if self.ranks.rank == 0:
            self.folder.sync()
        self.placement.save(self.ranks, checkpoint, lambda write: self.store.save(checkpoint, best, write))
        if self.ranks.rank == 0:
            self.folder.take_over()
            self.store.folder = self.folder.checkpoints
            step = self.progress.step
            self._tell(CheckpointSaved(self.folder.path, step, self.store.path(step), best))

    def _checkpoint(self) -> Checkpoint:
        """Return all that continues the run from here."""
        state = {
            "progress": self.progress.state(),
            "rng": rng_state(),
            "source": self.parts.source.state(),
            "config": plain(self.recipe),
            "config_hash": config_hash(self.recipe),
            "precision": self.precision.state(),
            "facts": dict(self.parts.facts),
            "versions": {"orrery": orrery.__version__, "torch": torch.__version__},
        }
        optimizer, owned = optimizer_tensors(self.learner, self.optimizer), model_tensors(self.owned)
        return Checkpoint(self.progress.step, model_tensors(self.model), optimizer, state, self.described, owned)

    def _description(self) -> dict[str, Any]:
        """Return what spec.json says; a model with a tensor that it does not describe is refused by name."""
        return {} if self.parts.describe is None else self.parts.describe(self.model)

    def _finish(self) -> None:
        """Say why the run ended, and write the final model where the caller knows how: the last, or the best."""
        self.store.folder = Path(self.ranks.told(str(self.store.folder)))  # the first may have taken a run's place
        for line in told(self.progress, self.recipe, self.store.best()):
            self._say(line)
        if self.settings.final == "best":
            self._say(take_best(self.model, self.owned, self.store))
        with self.placement.whole() as model:
            if self.parts.finish is not None and self.ranks.rank == 0:
                write_final(self.parts.finish, model, self.folder.final)

    def _due(self, every: int) -> bool:
        """Say whether something done every so many steps, and at the last one, is due now."""
        return self.progress.step % every == 0 or self.progress.step == self.settings.steps

    def _over(self) -> bool:
        return is_over(self.progress, self.recipe)

    def _learned(self, record: dict[str, Any] | None) -> None:
        self._tell(StepLearned(self.folder.path, self.progress.step, self.settings.steps, record))

    def _say(self, text: str) -> None:
        self._tell(Said(self.folder.path, text))

    def _ended(self, **how: Any) -> None:
        self._tell(RunEnded(self.folder.path, self.progress.step, self.progress.best, **how))

    def _tell(self, event: Event) -> None:
        if self.ranks.rank == 0:
            self.observers.tell(event)
