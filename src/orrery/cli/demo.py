"""``orrery demo``: the whole system in three minutes, on text that this machine has."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from orrery.cli.console import printable
from orrery.errors import RunError, UsageError
from orrery.recipes.read import as_yaml, load_recipe
from orrery.settings import runs_folder

if TYPE_CHECKING:
    from orrery.studies.demo.findings import DemoFindings

RECIPE = Path(__file__).parents[1] / "studies" / "demo" / "recipe.yaml"
_WHY = {"model": "", "check": "must be above the model", "aim": "to aim at"}


def demo(
    *overrides: Annotated[str, Parameter(allow_leading_hyphen=True)],
    output: Path | None = None,
    overwrite: bool = False,
    print_config: bool = False,
) -> None:
    """Train a small model on Python's own documentation, measure it, let it write, and look inside.

    Needs no network and no data set. Leaves a run folder with the model, report.html and inside.html, two pages for any
    browser. Exit code 1 if a check fails.

    Args:
        overrides: Keys of the recipe with new values, such as --training.steps 1000 or --data.train FOLDER.
        output: The run's folder; by default runs/demo.
        overwrite: Replace an earlier demo in the folder; it stays until the new one has its first checkpoint.
        print_config: Print the recipe as it is resolved, and stop.
    """
    recipe = load_recipe(RECIPE, overrides, os.environ)
    if print_config:
        print(as_yaml(recipe), end="")
        return
    from orrery.studies.demo import tour as lab
    from orrery.training.progress import find_reporter

    folder = output or runs_folder() / recipe.name
    if any("\udc80" <= letter <= "\udcff" for letter in str(folder)):  # bytes of a name that is no UTF-8
        raise UsageError(f"{str(folder)!a} is no UTF-8, and the pages tell it", "choose another --output")
    print(f"Orrery's demo writes into {folder}.", flush=True)
    findings = lab.demo(recipe, folder, lambda line: print(line, flush=True), find_reporter, overwrite=overwrite)
    show(findings)
    print(f"\nThe page with curves, samples and attention: {lab.kept(folder).page}")
    print(f"The inside of the model over a sentence, number by number: {folder / lab.INSIDE}")
    print(f'Go on with: orrery generate {folder} "The list"')
    if findings.failed:
        names = "; ".join(f"{check.name} ({check.value:.4g} > {check.bound:.4g})" for check in findings.failed)
        raise RunError(f"a check failed: {names}", f"{lab.kept(folder).page} shows how the training went")


def show(findings: "DemoFindings") -> None:
    """Print the comparison and the first text of each kind."""
    from rich.console import Console
    from rich.table import Table

    table = Table("", "bits per byte", "", title="the text held back", title_justify="left", title_style="bold")
    table.columns[1].justify = "right"
    for measure in sorted(findings.measures, key=lambda measure: measure.bits_per_byte):
        style = "bold" if measure.role == "model" else None
        table.add_row(measure.name, f"{measure.bits_per_byte:.3f}", _WHY[measure.role], style=style)
    print()
    Console(file=sys.stdout).print(table)
    seen: set[str] = set()
    for sample in findings.samples:
        if sample.method not in seen:
            print(f"\n{sample.method}, {sample.tokens_per_second:,.0f} tokens/s:")
            print("  " + printable(sample.prompt + sample.text).replace("\n", "\n  "))
        seen.add(sample.method)
    passed = len(findings.checks) - len(findings.failed)
    print(f"\n{passed} of {len(findings.checks)} checks passed")
