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
    found = compare(model, against, dtype, other=other)
    if target is not None:
        target.write(json_format.dumps(_as_json(found), indent=1) + "\n")
    _print(found)
    if reader == "transformers" and dtype == "float64":
        print(_recorded(model, found.bound))
    return int(found.first is not None)


def _print(found: "Parity") -> None:
    rows = [
        (step.key, f"{step.error:.1e}", "" if step.error <= found.bound else "differs")
        for step in found.steps
        if _LAYERS.fullmatch(step.key) or step is found.first
    ]
    print_table(("after", "difference", ""), rows)
    if found.alone:
        print(f"not compared, only one has them: {_some(found.alone)}")
    if found.weights:
        print(f"weights that differ: {len(found.weights)}, {_some(found.weights)}")
    if found.first is None:
        worst = max(step.error for step in found.steps)
        print(f"equal: {len(found.steps)} tensors within {found.bound:.0e}, the largest difference is {worst:.1e}")
    else:
        ours, theirs = found.first.shapes
        shapes = f", shapes {ours} and {theirs}" if ours != theirs else ""
        print(f"they part at {found.first.key}: {found.first.error:.1e}{shapes}")


def _recorded(model: str, bound: float) -> str:
    """Return why float64 beside transformers is less exact than between two models that we read."""
    from orrery.exchange.reading.files import CONFIG, read_json
    from orrery.exchange.reading.read import locate
    from orrery.families import load_family
    from orrery.laws.exactness import sentence

    family = load_family(read_json(locate(model) / CONFIG).get("model_type"))
    said = sentence(family.__name__.rpartition(".")[2])  # type: ignore[attr-defined]
    cause = f"as installed, transformers casts to float32 inside in float64 too: {bound:.0e} counts as equal"
    return f"{cause}; recorded: {said}" if said else cause


def _some(names: Any) -> str:
    return ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")


def _as_json(found: "Parity") -> dict[str, Any]:
    def number(error: float) -> float | str:
        return error if error < float("inf") else "infinite"

    return {
        "equal": found.first is None,
        "bound": found.bound,
        "first": None if found.first is None else found.first.key,
        "steps": {step.key: number(step.error) for step in found.steps},
        "weights": list(found.weights),
        "alone": list(found.alone),
    }
