"""`orrery plan`: what a training will see and need, before it starts."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from orrery.cli.numbers import ABOVE_ZERO, COUNT
from orrery.cli.places import MODEL_IF_PATH
from orrery.cli.plan_layouts import NO_LAYOUTS, LayoutOptions, published_layouts
from orrery.errors import UsageError

if TYPE_CHECKING:
    from orrery.planning.data_table import MixtureRow
    from orrery.planning.plan import Plan
    from orrery.recipes.config import Recipe


def plan(
    subject: Annotated[str | None, MODEL_IF_PATH] = None,
    /,
    *,
    config: Path | None = None,
    rows: Annotated[int | None, COUNT] = None,
    length: Annotated[int | None, COUNT] = None,
    tokens: Annotated[float | None, ABOVE_ZERO] = None,
    dtype: str | None = None,
    data: Annotated[bool, Parameter(negative="")] = False,
    tables: Annotated[bool, Parameter(negative="")] = False,
    budget: Annotated[float | None, ABOVE_ZERO] = None,
    measure: Annotated[bool, Parameter(negative="")] = False,
    output: Path | None = None,
    overwrite: bool = False,
    layouts: LayoutOptions = NO_LAYOUTS,
) -> None:
    """Print what a model consists of, and what training it and writing with it costs, before anything is trained.

    Parameters by matrix, operations, memory; with --machine, --devices or --layout how many devices share the training
    instead. No weights are read and none are made.

    Parameters
    ----------
    subject
        A preset or a published model (gpt3-175b, llama-3.1-405b; a name that does not exist lists what is near), a
        family with --config, the file of a recipe, the folder of a model or a run.
    config
        A file like config.json, for a family.
    rows
        Of a step; those of the recipe, else one.
    length
        Tokens of a row; those of the recipe, else the context that the model is meant for.
    tokens
        That the whole training sees, such as 300e9; those of the recipe, else left open.
    dtype
        Of products: bfloat16 (the default), or float32 (that of --measure).
    data
        Print what a recipe sees of each corpus instead: tokens, weight in the mixture, epochs elapsed. Without a
        recipe, GPT-3's mixture beside what the course's slide says, and published models.
    tables
        Print the tables of the course instead: what its decks and the papers print, recomputed.
    budget
        Print the compute-optimal size for so many floating-point operations instead, such as 1e21.
    measure
        Take a step on this machine's processor and print its memory and seconds beside the prediction instead.
    output
        With --tables: a folder, in which they become one page with figures, tables.html.
    overwrite
        Replace a page that is there.
    layouts
        On what a model is to be trained.
    """
    from orrery.cli.plan_tables import print_budget, print_tables

    instead = {"--tables": tables, "--budget": budget is not None, "--data": data, "--published": layouts.published}
    _refuse_beside([flag for flag, given in instead.items() if given], subject, layouts.asked)
    if measure and any(instead.values()):
        raise UsageError("--measure takes a step of a model", "name a model or a recipe, and nothing else to print")
    if (output is not None or overwrite) and not tables:
        raise UsageError("--output is the folder of the page of --tables", "add --tables, or leave --output out")
    if tables:
        print_tables(output, overwrite=overwrite)
    elif budget is not None:
        print_budget(budget)
    elif data:
        course_data() if subject is None else recipe_data(Path(subject))
    elif layouts.published:
        published_layouts()
    else:
        _plan_model(subject, layouts, measure, config=config, rows=rows, length=length, tokens=tokens, dtype=dtype)


def _refuse_beside(instead: list[str], subject: str | None, layout: list[str]) -> None:
    """Refuse several plans at once, which would be passed over in silence but for one."""
    own = [*instead, *([] if subject is None or instead == ["--data"] else [subject])]
    if len(own) > 1:
        raise UsageError(f"{' and '.join(own)}: each is a plan of its own", "ask for one at a time")
    if layout and instead:
        raise UsageError(
            f"{layout[0]} is of the layout of a model, and {instead[0]} plans none", "leave one of them out"
        )


def _plan_model(
    subject: str | None,
    layouts: LayoutOptions,
    measure: bool,
    *,
    config: Path | None,
    rows: int | None,
    length: int | None,
    tokens: float | None,
    dtype: str | None,
) -> None:
    """Print what one model costs here, or how it is best trained on many devices."""
    if subject is None:
        raise UsageError("nothing to plan", "name a preset such as gpt3-175b, a recipe, a folder; or --data, --tables")
    if layouts.asked and measure:
        raise UsageError("a step is measured on this machine alone", f"leave out {layouts.asked[0]}, or --measure")
    if layouts.asked and (rows is not None or dtype is not None):
        own = "--rows" if rows is not None else "--dtype"
        hint = "--batch counts the tokens of all devices, and a machine multiplies in its first format"
        raise UsageError(f"{own} is of a step on one device, and {layouts.asked[0]} plans many", hint)
    from orrery.cli.plan_model import print_plan
    from orrery.planning.plan import plan as planned

    usual = "float32" if measure else "bfloat16"
    plan = planned(subject, config=config, rows=rows, length=length, tokens=tokens, dtype=dtype or usual)
    if measure:
        from orrery.cli.plan_measured import print_measured

        print_measured(plan)
    elif layouts.asked:
        many_devices(plan, layouts)
    else:
        print_plan(plan)


def many_devices(plan: "Plan", options: LayoutOptions) -> None:
    """Print on how many devices, and how, a planned model is best trained."""
    from dataclasses import replace

    from orrery.cli.plan_layouts import layouts
    from orrery.planning.layouts.work import work_of

    layouts(plan.spec, replace(work_of(plan.spec, plan.name), length=plan.length), options, plan.tokens)


def course_data() -> None:
    """Print the course's tables: GPT-3's mixture, and published models."""
    from orrery.cli.tables import print_table
    from orrery.planning import data_table

    print("GPT-3's mixture, epochs elapsed when training for 300 billion tokens (Brown et al. 2020, Table 2.2)")
    columns = ("corpus", "tokens", "weight", "epochs", "slide", "weight x 300 billion / tokens")
    print_table(columns, data_table.gpt3_table())
    print("\nPublished language models")
    columns = ("model", "makers", "year", "training tokens", "parameters", "tokens a parameter")
    print_table(columns, data_table.published_table())
    print("slide differs: GPT-4 has 1.76 trillion parameters in deck S3, 1.5 trillion in deck S0; neither is published")
    print(f"for comparison, the human brain: {data_table.NEURONS:,.0f} neurons, {data_table.SYNAPSES:,.0f} synapses")


def recipe_data(path: Path) -> None:
    """Print the table of a recipe's corpora over the steps that it trains."""
    import os

    from orrery.cli.tables import print_table
    from orrery.planning.data_table import mixture_table
    from orrery.recipes.read import load_recipe

    recipe = load_recipe(path, (), os.environ)
    training = recipe.training.steps * recipe.batches.positions
    print(
        f"{recipe.name}: {recipe.training.steps:,} steps of {training // recipe.training.steps:,}, {training:,} tokens"
    )
    print_table(("corpus", "tokens", "weight", "epochs"), mixture_table(_rows(recipe), training))


def _rows(recipe: "Recipe") -> "list[MixtureRow]":
    """Return the recipe's corpora, with their tokens as the recipe gives them, or counted where one is missing."""
    from orrery.data.sources.text import text_of
    from orrery.planning.data_table import MixtureRow

    parts = text_of(recipe.data, recipe.name).parts
    counted = {} if all(part.tokens for part in parts) else _count(recipe)
    return [MixtureRow(part.label, part.tokens or counted[part.label], part.weight) for part in parts]


def _count(recipe: "Recipe") -> dict[str, int]:
    """Read the texts and count the training tokens of each, after the split, as the recipe's tokenizer cuts them."""
    from orrery.data.documents import encode
    from orrery.data.sources.text import TextSource, text_of
    from orrery.runs.building import make_tokenizer

    source = TextSource.read(text_of(recipe.data, recipe.name))
    tokenizer = make_tokenizer(recipe.tokenizer, source.texts())
    return {portion.name: sum(map(len, encode(tokenizer, portion.documents))) for portion in source.portions}
