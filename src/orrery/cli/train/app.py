"""``orrery train``: a recipe in, a trained model out."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from orrery.cli.places import check_places
from orrery.cli.train import stages as train_stages
from orrery.cli.train import word_vectors as train_word_vectors
from orrery.cli.train.asked import TrainRequest
from orrery.recipes.read import as_yaml, load_recipe
from orrery.runs.default_recipe import is_text, recipe_for
from orrery.runs.going_on import FOUND_FOR_A_TEXT, as_begun, asked_for, folder_of, where_begun
from orrery.studies.stages.recipe import has_stages
from orrery.training.folder import CONFIG
from orrery.training.processes import leads

if TYPE_CHECKING:
    from orrery.recipes.config import Recipe
    from orrery.runs.building import Assembled

BASE = "model.from"
OTHERS = (
    (train_word_vectors.makes_word_vectors, train_word_vectors.train),
    (has_stages, train_stages.train),
)
"""Recipes that are none of one model, and what trains them."""


def train(
    config: Path,
    *overrides: Annotated[str, Parameter(allow_leading_hyphen=True)],
    resume: bool = False,
    overwrite: bool = False,
    dry_run: bool = False,
    print_config: bool = False,
    output: Path | None = None,
) -> int:
    """Train what a recipe describes, and write the run into its folder.

    A recipe with stages trains each of them in its turn, in folders of one folder, and compares them at the end.

    Args:
        config: The recipe, a YAML file; or a text, a file or a folder, for which a recipe is chosen and printed; or,
            with --resume, the folder of a run.
        overrides: Keys of the recipe with new values, such as --training.steps 500.
        resume: Continue from the newest sound checkpoint of the folder; what was found for the run stays as it was.
        overwrite: Replace the run that is in the folder; it stays until the new one has its first checkpoint.
        dry_run: Print the plan (sizes, memory, precision) and stop before the first step.
        print_config: Print the recipe as it is resolved from file, environment and flags, and stop.
        output: The run's folder; by default runs/ and the recipe's name.
    """
    home = folder_of(config, output) if resume else None
    if home is not None:
        home = Path(os.path.abspath(home))
        config, output, overrides = home / CONFIG, home, from_here(overrides)
    request = TrainRequest(config, overrides, output, resume, overwrite, dry_run, print_config)
    with where_begun(home, lambda line: print(line, file=sys.stderr)):
        return carry_out(request)


def from_here(overrides: Sequence[str]) -> tuple[str, ...]:
    """Return flags whose paths mean the same from another folder: a base is all that may be another one."""
    words, flag = list(overrides), f"--{BASE}"
    for number, word in enumerate(words):
        value = word.removeprefix(f"{flag}=") if word.startswith(f"{flag}=") else None
        if value is None and number and words[number - 1] == flag:
            words[number] = os.path.abspath(word) if os.path.exists(word) else word
        elif value is not None and os.path.exists(value):
            words[number] = f"{flag}={os.path.abspath(value)}"
    return tuple(words)


def carry_out(request: TrainRequest) -> int:
    """Do what is asked, once it is known which folder relative paths mean; return the exit code."""
    if is_text(request.config):
        recipe = recipe_for(request.config, request.overrides, os.environ)
        if request.resume:
            own = asked_for(request.overrides, os.environ)
            recipe = as_begun(recipe, request.folder(recipe.name), own, FOUND_FOR_A_TEXT)
        if request.print_config or leads():
            print("# no recipe was given; this one fits the text, and --print-config > FILE keeps it")
            print(as_yaml(recipe), end="", flush=True)
        return 0 if request.print_config else _trained(recipe, request)
    other = next((verb for asks, verb in OTHERS if asks(request.config)), None)
    if other is not None:
        return other(request)
    recipe = load_recipe(request.config, request.overrides, os.environ)
    if request.print_config:
        print(as_yaml(recipe), end="")
        return 0
    return _trained(recipe, request)


def _trained(recipe: "Recipe", request: TrainRequest) -> int:
    """Plan or execute a recipe."""
    folder = request.folder(recipe.name)
    check_places(recipe)
    if request.dry_run:
        from orrery.runs.assemble import assemble

        print(plan(recipe, assemble(recipe), folder))
        return 0
    return run(recipe, folder, resume=request.resume, overwrite=request.overwrite, inputs=[request.config])


def run(recipe: "Recipe", folder: Path, *, resume: bool, overwrite: bool, inputs: Sequence[Path] = ()) -> int:
    """Execute the recipe; return 0 or, after a signal, 128 and its number."""
    from orrery.runs.execute import execute
    from orrery.training.progress import find_reporter

    outcome = execute(recipe, folder, find_reporter(), resume=resume, overwrite=overwrite, inputs=inputs)
    return 128 + outcome.signal if outcome.signal else 0


def plan(recipe: "Recipe", assembly: "Assembled", folder: Path) -> str:
    """Return what a run would do, line by line: parameters, tokens, operations, memory, arithmetic and folder."""
    import torch

    from orrery.kernels.processor import this_processor
    from orrery.planning.run_cost import run_cost
    from orrery.planning.training_compute import PETAFLOP_DAY
    from orrery.training.precision import choose_precision, find_device

    settings, batches = recipe.training, recipe.batches
    device = find_device(settings.device)
    precision = choose_precision(settings.precision, device, this_processor(), torch.get_num_threads())
    tokens, cost = assembly.batch_tokens, run_cost(recipe, assembly.parts, precision)
    held = "all rows" if batches.tokens and not settings.micro_batch else f"{cost.at_once:,} rows at once,"
    drawn = f"at most {batches.tokens:,} positions, rows" if batches.tokens else f"{batches.size:,} rows"
    rows = (
        ("parameters", f"{sum(p.numel() for p in assembly.parts.model.parameters()):,}"),
        *([] if assembly.tokenizer is None else [("vocabulary", f"{assembly.tokenizer.size:,}")]),
        ("training data", f"{assembly.train_tokens:,} tokens"),
        ("batch", f"{drawn} of {batches.length:,}, {tokens:,} tokens"),
        ("run", f"{settings.steps:,} steps, {tokens * settings.steps:,} tokens"),
        *plan_epochs(recipe, assembly),
        *(("note", note) for note in assembly.parts.notes),
        ("operations", f"about {cost.step:.3g} a step, {cost.all:.3g} in all ({cost.all / PETAFLOP_DAY:.2g} PF-days)"),
        ("memory", f"{cost.fixed:,} bytes of weights, gradients and optimizer, and for each batch"),
        ("activations", f"about {cost.kept:,} bytes for {held} of the largest of the first batches"),
        *cost.free_lines(),
        ("arithmetic", f"{precision.dtype} ({precision.path}), {precision.threads} threads, on {device}"),
        ("folder", str(folder)),
    )
    return "\n".join(f"{name:<14}{value}" for name, value in rows)


def plan_epochs(recipe: "Recipe", assembly: "Assembled") -> list[tuple[str, str]]:
    """Return the plan's lines on epochs: one for a text, one for each corpus of a mixture."""
    settings = recipe.training
    # Of batches by tokens only counting all of them would say it to the batch.
    if assembly.parts.epochs is None or recipe.batches.tokens is not None:
        return [("epochs", f"{settings.steps * assembly.batch_tokens / assembly.train_tokens:.2f}")]
    elapsed = assembly.parts.epochs(settings.steps)
    return [
        ("epochs", f"{count:.2f} of {name}: {assembly.corpus_tokens[name]:,} tokens") for name, count in elapsed.items()
    ]
