"""What tasks that score items share: flags, the lines that are printed, the file with everything."""

import json
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from orrery.cli.evaluate._trust import Trust, print_scores
from orrery.cli.numbers import COUNT

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from orrery.checkpoints.outputs import OutputFile
    from orrery.evaluation.evaluated import Done, Evaluated
    from orrery.language_model.model import LanguageModel

_FIRST = "Only the first so many items, of each group where there are groups."
_BATCH = "Rows computed at once."
_CONTAMINATION = "The training text, as a recipe names it; what stands in it is counted, and the rest scored apart."
_OUTPUT = "A JSON file for the scores, the groups and every item."
_DTYPE = "auto, stored, float32, bfloat16, float16 or float64."


@Parameter(name="*")
@dataclass(frozen=True)
class Items:
    """Which items are scored, with what, and where the result goes."""

    first: Annotated[int | None, COUNT, Parameter(help=_FIRST)] = None
    batch_size: Annotated[int, COUNT, Parameter(help=_BATCH)] = 32
    contamination: Annotated[str | None, Parameter(help=_CONTAMINATION)] = None
    output: Annotated[Path | None, Parameter(name=["--output", "-o"], help=_OUTPUT)] = None
    overwrite: Annotated[bool, Parameter(negative="", help="Replace the file of --output.")] = False
    device: Annotated[str, Parameter(help="auto, cpu or cuda.")] = "auto"
    dtype: Annotated[str, Parameter(help=_DTYPE)] = "auto"


ALL = Items()
"""What is used unless told otherwise."""


def carry_out(
    model: str,
    sources: "Sequence[str | None]",
    items: Items,
    trust: Trust,
    evaluate: "Callable[[LanguageModel, Done], Evaluated]",
) -> None:
    """Load the model, evaluate it while a line says how far that is, print what was found and write it.

    Raises:
        UsageError: the output cannot be written, or is an input.
    """
    from orrery.checkpoints.outputs import OutputFile
    from orrery.data.corpora import read_corpus
    from orrery.language_model.load import load
    from orrery.reports.status import waiting

    file = None
    if items.output is not None:
        file = OutputFile(items.output, inputs=[model, *sources, items.contamination], overwrite=items.overwrite)
    training = read_corpus(items.contamination) if items.contamination is not None else None
    lm = load(model, items.device, items.dtype)
    with waiting() as line:
        line.now("reading")
        evaluated = evaluate(lm, line.now)
        overlap = None
        if training is not None:
            from orrery.data.cleaning.contamination import overlap as find

            overlap = find(evaluated.items, training, lambda count: line.now(f"{count:,} training documents read"))
    _print(evaluated, trust)
    facts: dict[str, Any] = {"model": str(lm.folder), **_facts(evaluated)}
    if overlap is not None:
        facts["contamination"] = _print_overlap(evaluated, overlap, str(items.contamination))
    if file is not None:
        _write(file, facts)


def _print(evaluated: "Evaluated", trust: Trust) -> None:
    width = max(map(len, evaluated.groups), default=0)
    for name, (score, count) in evaluated.groups.items():
        print(f"{name:{width}}  {100 * score:6.2f} %  {count:>6,} items")
    print_scores(evaluated.scores, None, trust)
    print(f"{len(evaluated.items):,} items")
    for note in evaluated.notes:
        print(note)


def _print_overlap(evaluated: "Evaluated", overlap: Any, source: str) -> dict[str, Any]:
    """Print what the training text has of the items, and each score of those that it has not."""
    import numpy as np

    print(f"contamination with {source}: {overlap}")
    clean = np.flatnonzero(~overlap.seen)
    facts: dict[str, Any] = {"training": source, "seen": int(overlap.seen.sum()), "items": overlap.seen.tolist()}
    if not len(clean):
        print("clean items: none")
        return facts
    facts["clean scores"] = {}
    for score in evaluated.scores:
        value = float(score.of_drawn(clean[None])[0])
        facts["clean scores"][score.name] = value
        print(f"clean items, {len(clean):,}: {score.name} {value:.{score.digits}f}")
    return facts


def _facts(evaluated: "Evaluated") -> dict[str, Any]:
    return {
        "scores": [{"name": one.name, "value": one.score, "signature": one.signature} for one in evaluated.scores],
        "groups": {name: {"score": score, "items": count} for name, (score, count) in evaluated.groups.items()},
        "notes": list(evaluated.notes),
        "items": [{"text": text, **detail} for text, detail in zip(evaluated.items, evaluated.details, strict=True)],
    }


def _write(file: "OutputFile", facts: dict[str, Any]) -> None:
    file.write(json.dumps(facts, indent=1, ensure_ascii=False) + "\n")
    print(f"written to {file.given}", file=sys.stderr)


def limits_of(seconds: float, memory: int) -> Any:
    """Return the limits of the sandbox from the flags of a command line."""
    from orrery.sandbox.verdict import MIB, SandboxLimits

    return SandboxLimits(**{**asdict(SandboxLimits()), "seconds": seconds, "memory": memory * MIB})
