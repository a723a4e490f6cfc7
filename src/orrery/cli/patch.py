"""``orrery patch``: which parts of a run carry what tells two texts apart, as one picture."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from orrery.cli.numbers import PLACE
from orrery.cli.places import MODEL
from orrery.cli.tables import print_table
from orrery.errors import UsageError

if TYPE_CHECKING:
    from orrery.inspection.research.patching import Patching
    from orrery.language_model.model import LanguageModel

By = Literal[
    "residual",
    "residual_post",
    "attention",
    "feed_forward",
    "heads",
    "heads_by_position",
    "queries",
    "keys",
    "values",
    "patterns",
]


def patch(
    model: Annotated[str, MODEL],
    clean: str,
    corrupted: str,
    /,
    *,
    answer: str,
    wrong: str | None = None,
    by: By = "residual",
    position: Annotated[int, PLACE] = -1,
    output: Annotated[Path | None, Parameter(name=["--output", "-o"])] = None,
    overwrite: bool = False,
    device: str = "auto",
    dtype: str = "auto",
) -> None:
    """Put parts of the run of a clean text into that of a corrupted one, one at a time, and show what each restores.

    Activation patching: 0 is the corrupted run, 1 the clean one. The texts have as many tokens as each other.

    Args:
        model: A run, a checkpoint, a Hugging Face folder, a GGUF file, or hf:org/name@revision.
        clean: The text whose answer is right.
        corrupted: The text with another answer, such as the same sentence about something else.
        answer: The token that the clean text asks for, with its leading space where it has one.
        wrong: The token that the corrupted text asks for; without it log p of the answer is measured.
        by: What is patched: the stream by block and position, heads, or what a head reads and looks at.
        position: Whose next token is asked for; a negative one counts from the end.
        output: The file of the picture, an SVG; if its name ends in .json, of all numbers.
        overwrite: Replace the file.
        device: auto, cpu or cuda.
        dtype: auto, stored, float32, bfloat16, float16 or float64.
    """
    from orrery.checkpoints.outputs import OutputFile

    file = None if output is None else OutputFile.shown("svg", output, inputs=[model], overwrite=overwrite)
    from orrery.language_model.load import load

    lm = load(model, device, dtype)
    texts = [_read(lm, text) for text in (clean, corrupted)]
    patching = _patched(lm, [ids for ids, _ in texts], answer, wrong, by, position)
    names = [
        one if one == other else f"{one}/{other}" for one, other in zip(*(words for _, words in texts), strict=True)
    ]
    if file is not None:
        facts = {"model": model, "answer": answer, "wrong": wrong, "position": position}
        plain = _plain(patching, facts, [words for _, words in texts])
        file.write(plain if file.given.suffix == ".json" else patching.figure(names) + "\n")
    _print(patching, names, wrong)
    if output is not None:
        print(f"wrote {output}")


def _read(lm: "LanguageModel", text: str) -> tuple[Any, Sequence[str]]:
    """Return the ids of a text as the model reads it, and how they are spelled."""
    from orrery.language_model.trace import call_of

    if lm.model.spec.reads_source:
        message = "this model writes beside a source, and patching takes parts of one text into another"
        raise UsageError(message, "take a model that reads one text")
    call = call_of(lm.stored, text)
    return call.inputs[0], call.tokens


def _patched(
    lm: "LanguageModel", ids: Sequence[Any], answer: str, wrong: str | None, by: str, position: int
) -> "Patching":
    """Return what each patch restores, with a counter where it is waited for."""
    from orrery.cli.progress import counted
    from orrery.inspection.research.patching import activation_patching

    against = None if wrong is None else lm.token_id(wrong)
    right, (clean_BL, corrupted_BL) = lm.token_id(answer), ids
    with counted("patches") as done:
        return activation_patching(
            lm.model, clean_BL, corrupted_BL, right, against, at=by, position=position, done=done
        )


def _plain(patching: "Patching", facts: dict[str, Any], tokens: Sequence[Sequence[str]]) -> str:
    import json

    numbers = {"measure": {"clean": patching.clean, "corrupted": patching.corrupted}, "blocks": list(patching.blocks)}
    spelled = {"clean": list(tokens[0]), "corrupted": list(tokens[1])}
    plain = {**facts, "by": patching.at, "tokens": spelled, **numbers, "restored": patching.grid.tolist()}
    return json.dumps(plain, ensure_ascii=False) + "\n"


def _print(patching: "Patching", names: Sequence[str], wrong: str | None) -> None:
    measured = "log p(answer)" if wrong is None else "logit(answer) - logit(wrong)"
    print(f"{measured}: clean {patching.clean:.4f}, corrupted {patching.corrupted:.4f}")
    print_table(("", "", "restores"), [(row, column, f"{part:.3f}") for row, column, part in patching.top(names)])
