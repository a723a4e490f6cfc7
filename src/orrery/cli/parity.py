"""``orrery parity``: are two models the same, and if not, where do they part?"""

import json as json_format
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from orrery.cli.places import MODEL
from orrery.cli.tables import print_table

if TYPE_CHECKING:
    from orrery.exchange.parity.compare import Parity

_LAYERS = re.compile(r"(encoder\.)?(embedded|blocks\.\d+\.resid_post|final|memory)|logits")


def parity(
    model: Annotated[str, MODEL],
    /,
    *,
    against: Annotated[str, MODEL],
    reader: Annotated[Literal["orrery", "transformers"], Parameter(name="--with")] = "orrery",
    dtype: Literal["float64", "float32", "bfloat16", "float16"] = "float32",
    json: Path | None = None,
    overwrite: bool = False,
) -> int:
    """Run two models on the same random tokens and compare them layer by layer.

    Exits with 1 if they differ, after naming the first part that does.

    Args:
        model: A run, a checkpoint, a Hugging Face folder, a GGUF file, or hf:org/name@revision.
        against: Another, or the same folder with --with transformers.
        reader: Who reads the second one; transformers, as it is installed, needs the extra 'oracle'.
        dtype: What both compute in.
        json: File for every difference, also those inside the layers.
        overwrite: Replace the file of --json.
    """
    from orrery.checkpoints.outputs import OutputFile
    from orrery.exchange.parity.compare import compare

    target = OutputFile(json, inputs=[model, against], overwrite=overwrite) if json is not None else None
    other = None
    if reader == "transformers":
        from orrery.exchange.parity.reference import look as other  # type: ignore[assignment]
    parity = compare(model, against, dtype, other=other)
    if target is not None:
        target.write(json_format.dumps(_as_json(parity), indent=1) + "\n")
    _print(parity)
    if reader == "transformers" and dtype == "float64":
        print(_recorded(model, parity.bound))
    return int(parity.first is not None)


def _print(parity: "Parity") -> None:
    rows = [
        (step.key, f"{step.error:.1e}", "" if step.error <= parity.bound else "differs")
        for step in parity.steps
        if _LAYERS.fullmatch(step.key) or step is parity.first
    ]
    print_table(("after", "difference", ""), rows)
    if parity.alone:
        print(f"not compared, only one has them: {_some(parity.alone)}")
    if parity.weights:
        print(f"weights that differ: {len(parity.weights)}, {_some(parity.weights)}")
    if parity.first is None:
        worst = max(step.error for step in parity.steps)
        print(f"equal: {len(parity.steps)} tensors within {parity.bound:.0e}, the largest difference is {worst:.1e}")
    else:
        ours, theirs = parity.first.shapes
        shapes = f", shapes {ours} and {theirs}" if ours != theirs else ""
        print(f"they part at {parity.first.key}: {parity.first.error:.1e}{shapes}")


def _recorded(model: str, bound: float) -> str:
    """Return why float64 beside transformers is less exact than between two models that we read."""
    from orrery.exchange.reading.config_keys import read_config
    from orrery.exchange.reading.read import locate
    from orrery.families import load_family
    from orrery.laws.exactness import sentence

    family = load_family(read_config(locate(model)).get("model_type"))
    said = sentence(family.__name__.rpartition(".")[2])  # type: ignore[attr-defined]
    cause = f"as installed, transformers casts to float32 inside in float64 too: {bound:.0e} counts as equal"
    return f"{cause}; recorded: {said}" if said else cause


def _some(names: Any) -> str:
    return ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")


def _as_json(parity: "Parity") -> dict[str, Any]:
    def number(error: float) -> float | str:
        return error if error < float("inf") else "infinite"

    return {
        "equal": parity.first is None,
        "bound": parity.bound,
        "first": None if parity.first is None else parity.first.key,
        "steps": {step.key: number(step.error) for step in parity.steps},
        "weights": list(parity.weights),
        "alone": list(parity.alone),
    }
