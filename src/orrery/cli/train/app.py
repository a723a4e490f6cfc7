"""``orrery train``: a recipe in, a trained model out."""

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from orrery.cli.train import word_vectors as train_word_vectors
from orrery.settings import runs_folder
from orrery.training.recipes import as_yaml, load_recipe, words_of

if TYPE_CHECKING:
    from orrery.training.building import Assembled
    from orrery.training.config import Recipe
    from orrery.training.loop import Parts, Speed
    from orrery.training.precision import Precision
    from orrery.training.word_vector_recipe import WordVectorRecipe


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

    Args:
        config: The recipe, a YAML file.
        overrides: Keys of the recipe with new values, such as --training.steps 500.
        resume: Continue from the newest sound checkpoint of the folder.
        overwrite: Replace the run that is in the folder; it stays until the new one has its first checkpoint.
        dry_run: Print the plan (sizes, memory, precision) and stop before the first step.
        print_config: Print the recipe as it is resolved from file, environment and flags, and stop.
        output: The run's folder; by default runs/ and the recipe's name.
    """
    if train_word_vectors.makes_word_vectors(config):
        return train_word_vectors.train(
            config, overrides, resume=resume, overwrite=overwrite, dry_run=dry_run, print_config=print_config,
            output=output,
        )  # fmt: skip
    recipe = load_recipe(config, overrides, os.environ)
    if print_config:
        print(as_yaml(recipe), end="")
        return 0
    folder = output or runs_folder() / recipe.name
    if dry_run:
        from orrery.training.assemble import assemble

        print(plan(recipe, assemble(recipe), folder))
        return 0
    return run(recipe, folder, resume=resume, overwrite=overwrite, config=config)


def run(recipe: "Recipe", folder: Path, *, resume: bool, overwrite: bool, config: Path | None = None) -> int:
    """Hold the folder, assemble, train; return 0 or, after a signal, 128 and its number."""
    from orrery.checkpoints.succession import NEW
    from orrery.training.distributed import find_ranks
    from orrery.training.folder import RunFolder, open_run_folder
    from orrery.training.loop import Trainer
    from orrery.training.progress import find_reporter

    ranks = find_ranks()
    inputs: list[str | Path] = [*words_of(recipe), *([config] if config else [])]
    if ranks.rank:
        ranks.any(False)  # the first rank has opened the folder
        place = folder / NEW if overwrite else folder
        outcome = Trainer(make_parts(recipe), recipe, RunFolder(place), ranks).run()
    else:
        reporter = find_reporter()
        with open_run_folder(folder, resume=resume, overwrite=overwrite, inputs=inputs) as opened:
            try:
                ranks.any(False)
                if opened.replaces is not None:
                    reporter.line(f"the run in {folder} stays until the first checkpoint; till then: {opened.path}")
                outcome = Trainer(make_parts(recipe), recipe, opened, ranks, reporter).run()
                if outcome.signal:
                    reporter.line("--resume continues")
                records = opened.records()
                for line in (*epochs(records), conclusion(recipe, records)):
                    reporter.line(line)
            finally:
                reporter.close()
    return 128 + outcome.signal if outcome.signal else 0


def conclusion(recipe: "Recipe | WordVectorRecipe", records: list[dict[str, Any]]) -> str:
    """Say what the last record holds of the recipe's expectation."""
    expected = recipe.expect
    if expected is None:
        return f"{recipe.name}: nothing was expected"
    measured = [record[expected.metric] for record in records if expected.metric in record]
    if not measured:
        return f"{recipe.name}: {expected.metric} is not measured yet"
    found = measured[-1]
    if not isinstance(found, int | float):
        return f"{recipe.name}: {expected.metric} is no finite number, expected at most {expected.bound}: missed"
    verdict = "met" if found <= expected.bound else "missed"
    return f"{recipe.name}: {expected.metric} {found:.4f}, expected at most {expected.bound}: {verdict}"


def epochs(records: list[dict[str, Any]]) -> list[str]:
    """Say how often each corpus of a mixture was gone through, from the last record; nothing without a mixture."""
    found = {
        key.removeprefix("epochs/"): n
        for key, n in (records[-1] if records else {}).items()
        if key.startswith("epochs/")
    }
    return ["epochs elapsed: " + ", ".join(f"{name} {count:.3f}" for name, count in found.items())] if found else []


def make_parts(recipe: "Recipe") -> "Parts":
    """Assemble the recipe; add how the final model is written and what share of the matmul rate is reached."""
    from orrery.saving.final import sample_writer, writer
    from orrery.training.assemble import assemble

    assembly = assemble(recipe)
    return replace(
        assembly.parts,
        measure_speed=speed(recipe, assembly),
        finish=writer(recipe, assembly),
        sample=sample_writer(recipe, assembly),
    )


def speed(recipe: "Recipe", assembly: "Assembled") -> "Callable[[Precision], Speed] | None":
    """Return what measures the machine against the cost of a token; None where a token's cost depends on its source."""
    import torch

    from orrery.accounting.flops import matmul_parameters, matmul_rate, training_operations_per_token
    from orrery.models.decoder import Decoder
    from orrery.training.loop import Speed

    spec = assembly.spec
    if not isinstance(spec, Decoder.Spec):
        return None
    weights = matmul_parameters(assembly.parts.model)
    cost = training_operations_per_token(weights, len(spec.stack.blocks), spec.width, recipe.batches.length)

    def measure(precision: "Precision") -> Speed:
        return Speed(cost, matmul_rate(getattr(torch, precision.dtype), precision.device))

    return measure


def plan(recipe: "Recipe", assembly: "Assembled", folder: Path) -> str:
    """Return what a run would do, line by line: parameters, tokens, memory, arithmetic and folder."""
    import torch

    from orrery.accounting.activations import activation_bytes
    from orrery.training.memory import STATES, weight_bytes
    from orrery.training.precision import choose_precision, find_device, this_processor

    settings, batches = recipe.training, recipe.batches
    device = find_device(settings.device)
    precision = choose_precision(settings.precision, device, this_processor(), torch.get_num_threads())
    weights, tokens = weight_bytes(assembly.parts.model), assembly.batch_tokens
    at_once = min(batches.size, settings.micro_batch or batches.size)
    kept = activation_bytes(assembly.parts, precision, at_once)
    rows = (
        ("parameters", f"{sum(p.numel() for p in assembly.parts.model.parameters()):,}"),
        ("vocabulary", f"{assembly.tokenizer.size:,}"),
        ("training text", f"{assembly.train_tokens:,} tokens"),
        ("batch", f"{batches.size:,} rows of {batches.length:,}, {tokens:,} tokens"),
        ("run", f"{settings.steps:,} steps, {tokens * settings.steps:,} tokens"),
        *plan_epochs(recipe, assembly),
        *(("note", note) for note in assembly.parts.notes),
        ("memory", f"{weights * (2 + STATES[settings.optimizer.kind]):,} bytes, and for each batch"),
        ("activations", f"about {kept:,} bytes for {at_once:,} rows at once, of the largest of the first batches"),
        ("arithmetic", f"{precision.dtype} ({precision.path}), {precision.threads} threads, on {device}"),
        ("folder", str(folder)),
    )
    return "\n".join(f"{name:<14}{value}" for name, value in rows)


def plan_epochs(recipe: "Recipe", assembly: "Assembled") -> list[tuple[str, str]]:
    """Return the plan's lines on epochs: one for a text, one for each corpus of a mixture."""
    settings = recipe.training
    if assembly.parts.epochs is None:
        return [("epochs", f"{settings.steps * assembly.batch_tokens / assembly.train_tokens:.2f}")]
    elapsed = assembly.parts.epochs(settings.steps)
    return [
        ("epochs", f"{count:.2f} of {name}: {assembly.corpus_tokens[name]:,} tokens") for name, count in elapsed.items()
    ]
