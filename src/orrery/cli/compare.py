"""``orrery compare``: models of one size and the same budgets on one text, from counts to what came after attention."""

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from orrery.cli.numbers import ABOVE_ZERO_EACH, COUNT, COUNT_EACH, COUNT_OR_NONE, SEED_EACH, SHARE, SHARE_EACH
from orrery.cli.places import DATA
from orrery.cli.tables import print_table
from orrery.errors import UsageError
from orrery.recipes.config import Recipe
from orrery.recipes.read import load_recipe
from orrery.settings import runs_folder

if TYPE_CHECKING:
    from orrery.studies.compare.budgets import Budget
    from orrery.studies.compare.plan import ComparisonPlan, ProbeOptions
    from orrery.studies.compare.sweep import Sweep

BASE = Path(__file__).parents[1] / "studies" / "compare" / "recipe.yaml"


def compare(
    *words: Annotated[str, Parameter(allow_leading_hyphen=True)],
    text: Annotated[str | None, DATA] = None,
    models: str | None = None,
    parameters: Annotated[int | None, COUNT] = None,
    budgets: Annotated[tuple[float, ...] | None, ABOVE_ZERO_EACH, Parameter(name=("--budgets", "--minutes"))] = None,
    steps: Annotated[tuple[int, ...] | None, COUNT_EACH] = None,
    seeds: Annotated[tuple[int, ...] | None, SEED_EACH] = None,
    sweep: Annotated[int | None, COUNT_OR_NONE] = None,
    sweep_share: Annotated[float | None, SHARE] = None,
    warmups: Annotated[tuple[float, ...] | None, SHARE_EACH] = None,
    sweep_recipes: bool = False,
    hand_set: bool = False,
    probes: str | None = None,
    probe_steps: Annotated[int | None, COUNT] = None,
    config: Path | None = None,
    output: Path | None = None,
    resume: bool = False,
    dry_run: bool = False,
) -> int:
    """Let models learn the same text, one after the other, and compare what each reaches.

    Without recipes: n-grams, word vectors of a fixed window (nplm), recurrences, a Transformer and what came after it,
    each with the same number of parameters, tokenizer and time, and with the learning rate and warm-up that a sweep of
    the same size finds for each. Leaves a run folder of each, compare.json, compare.html and SVG figures. Ctrl-C keeps
    what is done; --resume goes on from there.

    Args:
        words: Recipes whose models are compared as they are, then keys of the shared recipe with new values, such as
            --tokenizer.vocabulary 500.
        text: A file, a folder or a named corpus; by default python-docs, which this machine has.
        models: Names with commas between, such as ngram,lstm,transformer; by default all, beside recipes none.
            An unknown name lists them.
        parameters: Of each model, to within two percent; 1,000,000 by default.
        budgets: Minutes of training for each model, 1 by default; evaluations are not counted. Several train each model
            once for each.
        steps: Budgets in steps of training in the place of minutes.
        seeds: Each model is trained with each; by default the recipe's, 1337.
        sweep: How many learning rates are tried for each model, 5 by default; 0 takes those set by hand.
        sweep_share: The part of the greatest budget that each trial gets; 0.1 by default.
        warmups: The parts of a training that the rate may rise in; 0.05 and 0 by default.
        sweep_recipes: Sweep the recipes too, which else keep their rates.
        hand_set: Train what is swept with the rate set by hand as well, to tell budget from recipe: with the least and
            the greatest budget and the first seed.
        probes: all (the default), none, or names with commas between: training_speed, decoding_speed, memory, recall,
            induction, copying, extrapolation; measured at the end.
        probe_steps: How many steps the small models of recall, induction and copying learn; 600 by default.
        config: The recipe that all share but for model and rate, in the place of the built-in one.
        output: The folder; by default runs/compare.
        resume: Go on with the comparison in the folder; it may get more models, seeds, budgets and probes.
        dry_run: Print what would be trained and for how long, and stop.
    """
    given = make_shared(words, text, config)
    chosen = choose(given, models, parameters)
    swept = make_sweep(sweep, sweep_share, warmups) if chosen or sweep_recipes else None
    plan = make_plan(given, chosen, parameters, make_budgets(budgets, steps), seeds)
    plan = with_trials(plan, swept, sweep_recipes, hand_set, make_probing(probes, probe_steps))
    return dry(plan) if dry_run else carry_out(plan, output or runs_folder() / "compare", resume)


def carry_out(plan: "ComparisonPlan", folder: Path, resume: bool) -> int:
    """Say what it takes, compare, and print the table."""
    from orrery.studies.compare import run as lab
    from orrery.studies.compare.estimate import costs
    from orrery.studies.compare.summary import columns, order_sentences, table
    from orrery.training.progress import find_reporter

    plan.check()
    print(costs(plan)[1] + "; --dry-run lists it", flush=True)
    comparison = lab.compare(plan, folder, lambda line: print(line, flush=True), find_reporter, resume=resume)
    if comparison.entries:
        print()
        print_table(columns(comparison), table(comparison))
        turning = [sentence for sentence in order_sentences(comparison) if "turns" in sentence]
        print("".join(f"\n{sentence}" for sentence in turning) + f"\nThe page with the curves: {lab.kept(folder).page}")
    if comparison.signal is not None:
        print("stopped; --resume goes on with what is not done")
    return 128 + comparison.signal if comparison.signal is not None else 0


def dry(plan: "ComparisonPlan") -> int:
    """Print what would be trained, and for how long."""
    from orrery.studies.compare.estimate import COLUMNS, costs

    plan.check()
    rows, total = costs(plan)
    print_table((*COLUMNS[:-1], f"{plan.budgets[0].unit} in all"), rows)
    print(f"\n{total}")
    return 0


@dataclass(frozen=True)
class SharedRecipe:
    """What a command line names: the recipe that all share, and recipes to be compared as they are."""

    base: Recipe
    recipes: tuple[Recipe, ...]


def make_shared(words: tuple[str, ...], text: str | None, config: Path | None) -> SharedRecipe:
    """Read the recipes of a command line, each with the overrides of what all share."""
    first = next((i for i, word in enumerate(words) if word.startswith("--")), len(words))
    overrides = [*words[first:], *(["--data.train", text] if text is not None else [])]
    given = tuple(load_recipe(Path(word), overrides, os.environ) for word in words[:first])
    if given and config is not None:
        raise UsageError("--config is what built-in models share, and recipes have their own", "leave one of them out")
    return SharedRecipe(given[0] if given else load_recipe(config or BASE, overrides, os.environ), given)


def choose(given: SharedRecipe, models: str | None, parameters: int | None) -> tuple[str, ...]:
    """Return the built-in models to compare: all, but beside recipes none, unless they are named."""
    from orrery.studies.compare.models import MODELS

    if given.recipes and parameters is not None and models is None:
        raise UsageError("recipes have their own number of parameters", "leave --parameters out, or the recipes")
    named = ("" if given.recipes else ",".join(MODELS)) if models is None else models
    return tuple(name.strip() for name in named.split(",") if name.strip())


def make_sweep(rates: int | None, share: float | None, warmups: tuple[float, ...] | None) -> "Sweep | None":
    """Return the sweep of a command line; none where no rate is to be tried."""
    from orrery.studies.compare.sweep import Sweep

    if rates == 0:
        if share is not None or warmups is not None:
            raise UsageError("--sweep 0 tries nothing, and its share or warm-ups are given", "leave them out")
        return None
    usual = Sweep()
    return Sweep(
        usual.rates if rates is None else rates,
        usual.share if share is None else share,
        usual.warmups if warmups is None else warmups,
    )


def make_budgets(minutes: tuple[float, ...] | None, steps: tuple[int, ...] | None) -> "tuple[Budget, ...]":
    """Return the budgets of a command line; a minute where none is named."""
    from orrery.studies.compare.budgets import Budget

    if minutes is not None and steps is not None:
        raise UsageError("a comparison needs one kind of budget for all", "give --budgets (minutes) or --steps")
    if steps is not None:
        return tuple(Budget(count, "steps") for count in steps)
    return tuple(Budget(count, "minutes") for count in (minutes or (1.0,)))


def make_plan(
    given: SharedRecipe,
    models: tuple[str, ...],
    parameters: int | None,
    budgets: "tuple[Budget, ...]",
    seeds: tuple[int, ...] | None,
) -> "ComparisonPlan":
    """Return the plan without trials."""
    from orrery.studies.compare.plan import ComparisonPlan

    return ComparisonPlan(
        base=given.base,
        models=models,
        parameters=1_000_000 if parameters is None else parameters,
        budgets=budgets,
        seeds=(given.base.seed,) if seeds is None else seeds,
        recipes=given.recipes,
    )


def make_probing(names: str | None, steps: int | None) -> "ProbeOptions":
    """Return the probes of a command line."""
    from orrery.studies.compare.plan import ProbeOptions
    from orrery.studies.compare.probes.table import chosen

    return ProbeOptions(chosen(names), ProbeOptions().steps if steps is None else steps)


def with_trials(
    plan: "ComparisonPlan", sweep: "Sweep | None", recipes: bool, hand_set: bool, probing: "ProbeOptions"
) -> "ComparisonPlan":
    """Return the plan with what is tried before the trainings and what is measured after them."""
    if recipes and not plan.recipes:
        raise UsageError("--sweep-recipes: there are no recipes", "name recipe files, or leave it out")
    if hand_set and sweep is None:
        raise UsageError("--hand-set: no rate is swept", "leave it out, or give --sweep 5")
    return replace(plan, sweep=sweep, sweep_recipes=recipes, hand_set=hand_set, probing=probing)
