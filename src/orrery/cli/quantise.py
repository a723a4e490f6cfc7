"""``orrery quantise``: a model whose matrices are whole numbers of eight or four bits, as a folder to use."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from orrery.cli.numbers import COUNT
from orrery.cli.places import DATA, MODEL

if TYPE_CHECKING:
    from orrery.tuning.quantise import Quantise


def quantise(
    model: Annotated[str, MODEL],
    out: Path,
    /,
    *,
    bits: Literal[8, 4] = 8,
    group: Annotated[int | None, COUNT] = None,
    head: Literal["8", "4", "keep"] = "8",
    text: Annotated[Path | None, DATA] = None,
    overwrite: bool = False,
) -> None:
    """Write a model with its matrices in int8 or int4: a quarter or an eighth of float32, and faster on a CPU.

    The folder is used as any other model: generate, chat, evaluate, serve. It was read back and compared before it is
    told. Other programs get such a model by export: gguf has q8_0 and q4_0 of its own.

    Args:
        model: A run, a checkpoint, or a Hugging Face folder.
        out: The folder to write.
        bits: Of the matrices inside blocks.
        group: Inputs that share a scale; by default the whole channel with 8 bits, 128 with 4.
        head: Bits of the matrix before the logits, or keep; one that is the embedding table is always kept.
        text: A file or folder of text whose perplexity is measured before and after.
        overwrite: Replace a quantised model that is in the folder, which holds nothing else.
    """
    from orrery.exporting import quantised
    from orrery.reports.status import waiting

    before = None if text is None else _perplexity(model, text)
    with waiting() as line:
        line.now("rounding")
        done = quantised.quantise(
            model, out, bits, group=group, head=None if head == "keep" else int(head), overwrite=overwrite
        )
    print(f"{model}: {done.before:,} bytes of weights, read in {done.read_before:.2f} s")
    print(
        f"{done.path}: {done.after:,} bytes, {done.before / done.after:.1f} times less, read in {done.read_after:.2f} s"
    )
    for transform in done.transforms:
        print(f"  {_described(transform)}")
    for note in done.notes:
        print(f"note: {note}")
    if text is not None and before is not None:
        after = _perplexity(str(out), text)
        print(f"perplexity of {text}: {before:.4f} before, {after:.4f} after, {100 * (after / before - 1):+.3f} %")


def _described(transform: "Quantise") -> str:
    names = ", ".join(transform.targets)
    inputs = transform.group or (128 if transform.bits == 4 else None)
    return f"int{transform.bits}, one scale for {f'up to {inputs} inputs' if inputs else 'an output channel'}: {names}"


def _perplexity(model: str, text: Path) -> float:
    from orrery.data.corpora import read_corpus
    from orrery.language_model.load import load
    from orrery.reports.status import waiting
    from orrery.tasks.perplexity import evaluate_perplexity

    texts = [document.text for document in read_corpus(str(text))]
    lm = load(model)
    with waiting() as line:
        line.now(f"measuring {model}")
        found = evaluate_perplexity(lm, texts, done=lambda count: line.now(f"{model}: {count:,} windows measured"))
    return found["perplexity"]
