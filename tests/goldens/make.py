"""Make the golden outputs that ``orrery verify`` compares with: ``python -m tests.goldens.make [FAMILY ...]``.

Every number is computed by something else than Orrery: by transformers in float64, with its inner casts to float32
replaced; by torch's own recurrent modules; or by a paper's formulas in numpy. Weights and questions are pure functions
of a name and an index (``orrery.laws.formula``).
"""

import json
import sys
from pathlib import Path
from typing import Any

import numpy
import torch
import transformers

import orrery.laws
from orrery.families import names
from tests.goldens import formulas, methods, presets, transformers_models

FOLDER = Path(orrery.laws.__file__).parent / "reference"
VERSIONS = {
    "transformers": transformers.__version__,
    "torch": torch.__version__.partition("+")[0],
    "numpy": numpy.__version__,
}


METHODS = {
    "_training": methods.training,
    "_sampling": methods.sampling,
    "_search": methods.search,
    "_tables": methods.tables,
    "_presets": presets.cases,
}


def made(family: str) -> list[dict[str, Any]]:
    """Return the golden models of a family, or the golden numbers of a method."""
    if family in METHODS:
        return METHODS[family]()
    return formulas.cases(family) or transformers_models.cases(family)


def as_text(family: str) -> str:
    """Return a family's file: one model a line."""
    lines = ",\n".join(json.dumps(case) for case in made(family))
    return f'{{"made by": "tests/goldens/make.py", "versions": {json.dumps(VERSIONS)}, "cases": [\n{lines}\n]}}\n'


def main(families: list[str]) -> None:
    """Write the files."""
    for family in families or [*names(), *METHODS]:
        (FOLDER / f"{family}.json").write_text(as_text(family), encoding="utf-8")
        print(family)


if __name__ == "__main__":
    main(sys.argv[1:])
