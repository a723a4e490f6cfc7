"""A recipe executed: the folder held, the parts assembled, the loop run, the final model written."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from orrery.checkpoints.disk import machine_errors, write_text
from orrery.checkpoints.succession import NEW
from orrery.models.decoding_memory import layers
from orrery.models.model import ModelSpec
from orrery.objectives.causal import CausalLanguageModel
from orrery.recipes.config import Recipe
from orrery.recipes.parallel import settled
from orrery.recipes.read import words_of
from orrery.reports.making import made
from orrery.reports.measures import measures_page
from orrery.reports.observers import Event, Observer, StepLearned
from orrery.runs.assemble import assemble
from orrery.runs.building import Assembled
from orrery.runs.conclusion import conclusion, epochs
from orrery.runs.final import sample_writer, writer
from orrery.text.chat.folder import FILE as TEMPLATE
from orrery.training.denormals import denormals_as_zero
from orrery.training.distributed import lost_processes
from orrery.training.folder import FINAL, PROGRESS, RunFolder, open_run_folder
from orrery.training.loop import Outcome, Parts, train
from orrery.training.machine_rates import matmul_rate
from orrery.training.operations import matmul_parameters, training_operations_per_token
from orrery.training.parallel.joining import find_ranks
from orrery.training.precision import Precision
from orrery.training.processes import processes
from orrery.training.progress import Reporter
from orrery.training.speed import Speed


@lost_processes()
@denormals_as_zero()  # before the threads begin that share products: they have it from the one that starts them
def execute(
    recipe: Recipe,
    folder: Path,
    reporter: Reporter,
    *,
    resume: bool,
    overwrite: bool,
    inputs: Iterable[Path] = (),
    asked_by: str | None = None,
) -> Outcome:
    """Train what a recipe describes into a folder, and say how it ended.

    Args:
        recipe: the recipe.
        folder: of the run.
        reporter: told what happens; closed at the end.
        resume: continue the run that is there.
        overwrite: replace the run that is there, which stays until the new one has its first checkpoint.
        inputs: files beside those that the recipe names which the run must not replace.
        asked_by: the words of the command that asks the model, where its task is a program's own.
    """
    degrees = settled(recipe.parallel, processes(), recipe.batches.size)
    ranks = find_ranks(recipe.training.device, degrees)
    if ranks.rank:
        ranks.any(False)  # the first rank has opened the folder
        place = folder / NEW if overwrite else folder
        return train(make_parts(recipe), recipe, RunFolder(place), ranks)
    with open_run_folder(folder, resume=resume, overwrite=overwrite, inputs=[*words_of(recipe), *inputs]) as opened:
        try:
            ranks.any(False)
            reporter.line("reading data and model")
            if opened.replaces is not None:
                reporter.line(f"the run in {folder} stays until the first checkpoint; till then: {opened.path}")
            parts = make_parts(recipe)
            outcome = train(parts, recipe, opened, ranks, reporter)
            if outcome.signal:
                again = f"orrery train {folder}" if recipe.task is None else "the same command with"
                reporter.line(f"{again} --resume continues")
            records = opened.records()
            for line in epochs(records):
                reporter.line(line)
            if not outcome.signal:  # what a run half-way has measured is no verdict on its recipe
                spec: Any = parts.model.spec
                for line in (*conclusion(recipe, records), used(spec, folder, recipe.task, asked_by)):
                    reporter.line(line)
        finally:
            reporter.close()
    return outcome


def used(spec: ModelSpec, folder: Path, task: str | None = None, asked_by: str | None = None) -> str:
    """Say which command uses a trained model: that of its task, or of its first head whose answers have one."""
    if asked_by is not None:
        return f"orrery {asked_by} {folder} TEXT uses the model"
    verbs = {"summarisation": "summarise", "many_labels": "label", "sequence": "classify", "token": "tag"}
    for name, verb in verbs.items():
        if name == task or name in spec.heads:
            return f"orrery {verb} {folder} TEXT uses the model"
    if task == "next_item":
        return f"orrery recommend {folder} --history ITEM ... uses the model"
    if "span" in spec.heads:
        return f"orrery answer {folder} QUESTION uses the model; --help says where the text comes from"
    if (folder / FINAL / TEMPLATE).is_file() and spec.writes:
        return f"orrery chat {folder} talks with the model"
    if spec.reads_source and "images" in spec.inputs:
        return f"orrery caption {folder} PICTURE uses the model"
    if spec.reads_source:
        return f"orrery translate {folder} SENTENCE ... uses the model"
    return f"orrery generate {folder} PROMPT uses the model" if spec.writes else f"orrery show {folder} lists its parts"


def make_parts(recipe: Recipe) -> Parts:
    """Assemble the recipe; add how the final model is written and what share of the matmul rate is reached."""
    assembled = assemble(recipe)
    return replace(
        assembled.parts,
        measure_speed=speed(recipe, assembled),
        finish=writer(recipe, assembled),
        sample=sample_writer(recipe, assembled),
        keepers=(*assembled.parts.keepers, *([MeasuresPage(recipe)] if assembled.parts.objective.reports else [])),
    )


@dataclass(frozen=True)
class MeasuresPage(Observer):
    """Draws the measures of a run into its folder, with each line of metrics; the page is whole at any time."""

    recipe: Recipe

    def page(self, records: list[dict[str, Any]], steps: int) -> str:
        """Return the page of these lines."""
        recipe = self.recipe
        about = (str(recipe.model.begin or recipe.model.family or ""), recipe.data.described)
        return measures_page(recipe.name, about, records, steps, made())

    def observe(self, event: Event) -> None:
        """Draw the page again."""
        if isinstance(event, StepLearned) and event.record is not None:
            records = RunFolder(event.folder).records()
            with machine_errors(event.folder):
                write_text(event.folder / PROGRESS, self.page(records, event.steps))


def speed(recipe: Recipe, assembled: Assembled) -> Callable[[Precision], Speed] | None:
    """Return what measures the machine against the cost of a token; None where tokens cost differently.

    They do where a source is read beside them, and where the head works at some positions only, as at masked tokens.
    """
    spec = assembled.spec
    if spec.reads_source or recipe.objective_class is not CausalLanguageModel:
        return None
    weights = matmul_parameters(assembled.parts.model)
    windows = [layer.window for layer in layers(spec)]  # a mixer with a state looks at no pairs of tokens
    cost = training_operations_per_token(weights, windows, spec.width, recipe.batches.length)
    return lambda precision: Speed(cost, matmul_rate(getattr(torch, precision.dtype), precision.device))
