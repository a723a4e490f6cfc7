"""What stands at the end of a fine-tuning: the model's answers scored, a report page, scores as JSON."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

from orrery.checkpoints.disk import machine_errors, write_text
from orrery.data.cleaning.leaks import shared
from orrery.data.files import counted_faults
from orrery.data.sources import Source
from orrery.language_model.load import load
from orrery.recipes.config import Recipe
from orrery.reports.making import made
from orrery.reports.status import Waiting, waiting
from orrery.tasks._task import Done, Learned
from orrery.tasks.finetuning.findings import Findings
from orrery.tasks.finetuning.page import page
from orrery.training.folder import RunFolder
from orrery.tuning import numbers_of

REPORT, SCORES = "report.html", "scores.json"
PARTS = {"row": "row", "text": "row (by its text)", "prompt": "first prompt"}
"""What is held back, by the value of ``data.split.by``."""


def conclude(
    task: type[Learned], recipe: Recipe, folder: Path, say: Callable[[str], None], trained: float | None = None
) -> Findings:
    """Score the model of a finished run on the examples held back, and write the report beside it.

    Args:
        task: what it was fine-tuned on.
        recipe: of the run.
        folder: of the run; ``report.html`` and ``scores.json`` are written into it.
        say: told the scores and where the report is.
        trained: seconds that the run took, where all of it is known.

    Raises:
        DataError: the data cannot be read any more.
        ModelFileError: the run has no model.
    """
    began = perf_counter()
    with counted_faults():  # they were told before training
        source = recipe.source_class.read(recipe.data)
    lm = load(folder, device=recipe.training.device, say=lambda line: None)
    with waiting() as shown:
        task.finish(lm, source, recipe, counted(shown, "learning what stands beside the model"))
        done = counted(shown, "scoring the model on what was held back")
        findings = replace(task.found(lm, source, recipe, done), apart=apart(source))
        if recipe.model.begin is not None:
            begun = partial(load, recipe.model.begin, device=recipe.training.device, say=lambda line: None)
            done = counted(shown, "scoring the model that it began from")
            beside = task.beside(lm, begun, source, recipe.batches.length, done)
            findings = replace(findings, others=(*findings.others, *beside))
    took = "" if trained is None else f" in {trained / 60:.1f} minutes"
    say(f"{held_back(recipe)}, seed {recipe.seed}, {recipe.training.steps:,} steps{took}")
    for line in findings.lines():
        say(line)
    records = RunFolder(folder).records()
    with machine_errors(folder):
        write_text(folder / SCORES, findings.as_json())
        said = facts(recipe, lm, source, records)
        write_text(folder / REPORT, page(recipe.name, findings, records, said, made()))
    say(f"scored in {perf_counter() - began:.1f} s; {folder / REPORT} shows the mistakes")
    return findings


def counted(shown: Waiting, what: str) -> Done:
    """Say what is done now, and return what is told how much of it is."""
    shown.now(what)
    return lambda done, total: shown.now(f"{what}: {done:,} of {total:,}")


def apart(source: Source) -> str:
    """Say whether the texts held back were trained on; nothing where the rows do not say what their texts are."""
    train, others = source.sides()
    return shared(train, others).sentence() if others else ""


def held_back(recipe: Recipe) -> str:
    """Say what the model is scored on."""
    split = getattr(recipe.data, "split", None)
    every, part = getattr(split, "every", None), PARTS[getattr(split, "by", "row")]
    rows = f"about one {part} in {every} of" if every else "rows of"
    return getattr(recipe.data, "val", None) or f"{rows} {recipe.data.described}"


def facts(recipe: Recipe, lm: Any, source: Any, records: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """Return what the run was: data, model, steps, seed."""
    parameters = numbers_of(lm.model)
    steps = records[-1]["step"] if records else 0
    begun = recipe.model.begin or "fresh weights"
    return [
        ("training data", f"{recipe.data.described}, {len(source.train):,} examples"),
        ("held back", f"{held_back(recipe)}, {len(source.held_back):,} examples"),
        ("begun from", str(begun)),
        ("parameters", f"{parameters:,}"),
        ("objective", str(getattr(recipe.objective, "kind", ""))),
        (
            "steps",
            f"{steps:,} of {recipe.training.steps:,}, {recipe.batches.size or ''} rows of {recipe.batches.length}",
        ),
        ("seed", str(recipe.seed)),
    ]
