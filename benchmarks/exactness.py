"""How far each family is from its reference in float64: with its inner casts to float32 widened, and as installed.

    python benchmarks/exactness.py --output src/orrery/laws/exactness.json

Every parameter is random, over three seeds, in the tiny configuration of a family and in those of its golden outputs.
Compared are the logits (or what the main head answers) and the gradient of every parameter. "Eager" is the reference as
it is installed with eager kernels of attention and of experts. Families that transformers lacks are compared with
formulas that compute in float64 throughout. The record ships with the package: `orrery verify` and the page show it.
"""

import sys
import time
from pathlib import Path
from typing import Any

from _record import Record, parsed, parser

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.parity import exactness
from tests.parity.oracle import REFERENCED

from orrery.families import names

SMALL = ("gpt2", "llama", "mixtral", "lstm")


def main() -> None:
    made = parser(__doc__)
    made.add_argument("--families", nargs="+", help="by default all")
    options = parsed(made, {"families": SMALL})
    record = Record(options, ("transformers",))
    began = time.process_time()
    families: dict[str, Any] = {}
    for family in options.families or names():
        errors = exactness.measured(family) if family in REFERENCED else exactness.by_formulas(family)
        families[family] = errors
        print(f"{family:24}", *(f"{way} {told(errors[way])}" for way in exactness.WAYS if way in errors), flush=True)
    seconds = round(time.process_time() - began, 1)
    print(f"{len(families)} families in {seconds} processor seconds")
    record.write({"seeds": list(exactness.SEEDS), "processor_seconds": seconds, "families": families})


def told(one: dict[str, Any]) -> str:
    """Return a way's differences in a line."""
    return (
        f"{one['raises']} in {one['at']}"
        if "raises" in one
        else f"{one['logits']:.1e} (gradients {one['gradients']:.1e})"
    )


if __name__ == "__main__":
    main()
