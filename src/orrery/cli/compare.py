"""``orrery compare``: models of one size and one budget on one text, from counts to a Transformer."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from orrery.cli.numbers import ABOVE_ZERO, COUNT
from orrery.cli.tables import print_table
from orrery.errors import UsageError
from orrery.settings import runs_folder
from orrery.training.recipes import load_recipe

if TYPE_CHECKING:
    from orrery.compare.plan import Plan

BASE = Path(__file__).parents[1] / "compare" / "recipe.yaml"


def compare(
    *words: Annotated[str, Parameter(allow_leading_hyphen=True)],
    text: str | None = None,
    models: str | None = None,
    parameters: Annotated[int | None, COUNT] = None,
    minutes: Annotated[float | None, ABOVE_ZERO] = None,
    steps: Annotated[int | None, COUNT] = None,
    output: Path | None = None,
    resume: bool = False,
) -> int:
    """Let models learn the same text, one after the other, and compare what each reaches.

    Without recipes: ngram, nplm (word vectors of a fixed window), elman_rnn, lstm, gru and transformer, each with the
    same number of parameters, tokenizer and time. Leaves a run folder of each, compare.json, compare.html and two SVG
    figures. Ctrl-C keeps what is done; --resume goes on from there.

    Args:
        words: Recipes whose models are compared as they are, then keys of the shared recipe with new values, such as
            --tokenizer.vocabulary 500.
        text: A file, a folder or a named corpus; by default python-docs, which this machine has.
        models: Some of ngram,nplm,elman_rnn,lstm,gru,transformer; by default all, beside recipes none.
        parameters: Of each model, to within two percent; 1,000,000 by default.
        minutes: Of training for each model, 1 by default; evaluations are not counted.
        steps: The budget in steps of training in the place of minutes.
        output: The folder; by default runs/compare.
        resume: Go on with the comparison in the folder.
    """
    plan = make_plan(words, text, models, parameters, minutes, steps)
    from orrery.compare import run as lab
    from orrery.compare.findings import COLUMNS
    from orrery.training.progress import find_reporter

    folder = output or runs_folder() / "compare"
    found = lab.compare(plan, folder, lambda line: print(line, flush=True), find_reporter, resume=resume)
    if found.entries:
        print()
        print_table(COLUMNS, [entry.row for entry in found.ranked])
        print(f"\nThe page with the curves: {folder / lab.PAGE}")
    if found.signal is not None:
        print("stopped; --resume goes on with the models that are not done")
    return 128 + found.signal if found.signal is not None else 0


def make_plan(
    words: tuple[str, ...],
    text: str | None,
    models: str | None,
    parameters: int | None,
    minutes: float | None,
    steps: int | None,
) -> "Plan":
    """Return the plan of a command line: recipes first, then overrides of what all share."""
    first = next((i for i, word in enumerate(words) if word.startswith("--")), len(words))
    overrides = [*words[first:], *(["--data.train", text] if text is not None else [])]
    given = [load_recipe(Path(word), overrides, os.environ) for word in words[:first]]
    if given and parameters is not None:
        raise UsageError("recipes have their own number of parameters", "leave --parameters out, or the recipes")
    base = given[0] if given else load_recipe(BASE, overrides, os.environ)
    from orrery.compare.models import MODELS
    from orrery.compare.plan import Plan

    chosen = ("" if given else ",".join(MODELS)) if models is None else models
    return Plan(
        base=base,
        models=tuple(name.strip() for name in chosen.split(",") if name.strip()),
        parameters=1_000_000 if parameters is None else parameters,
        minutes=1.0 if minutes is None and steps is None else minutes,
        steps=steps,
        recipes=tuple(given),
    )
