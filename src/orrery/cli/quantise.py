"""``orrery quantise``: a model whose matrices are whole numbers of eight or four bits, as a folder to use."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from orrery.cli.numbers import COUNT, ONE_OR_MORE
from orrery.cli.places import DATA, MODEL

if TYPE_CHECKING:
    from collections.abc import Callable

    from orrery.exchange.reading.read import Stored
    from orrery.tuning.blocks import StoredBlocks
    from orrery.tuning.quantise import Quantise

READ, WINDOW = 100_000, 512
"""Characters of a text that numbers are chosen for, and tokens of a window of it."""


def quantise(
    model: Annotated[str, MODEL],
    out: Path,
    /,
    *,
    bits: Literal[8, 4] = 8,
    group: Annotated[int | None, COUNT] = None,
    eight_bits: Annotated[tuple[str, ...], ONE_OR_MORE] = (),
    head: Literal["8", "4", "keep"] = "8",
    calibrate: Annotated[Path | None, DATA] = None,
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
        group: Inputs that share a scale, at most; by default 256 with 8 bits, 32 with 4.
        eight_bits: Names of matrices that keep 8 bits beside --bits 4, such as "*.v" "*.down": those of values and the
            second of a feed-forward lose most by rounding.
        head: Bits of the matrix before the logits, or keep; one that is the embedding table has 8, as Q8_0.
        calibrate: A file or folder of text for which numbers of 4 bits are chosen (GPTQ), of which the first 100,000
            characters are read; a minute for a hundred million parameters.
        text: A file or folder of text whose perplexity is measured before and after.
        overwrite: Replace a quantised model that is in the folder, which holds nothing else.
    """
    from orrery.exchange.exporting import quantised
    from orrery.reports.status import waiting

    read = None if calibrate is None else _reader(calibrate, bits)
    before = None if text is None else _perplexity(model, text)
    with waiting() as line:
        line.now("rounding")
        kept = None if head == "keep" else int(head)
        done = quantised.quantise(
            model, out, bits, group=group, eight=eight_bits, head=kept, calibrate=read, say=line.now,
            overwrite=overwrite,
        )  # fmt: skip
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


def _reader(path: Path, bits: int) -> "Callable[[Stored], object]":
    """Return what lets a model read the text that its numbers are chosen for."""
    from orrery.data.corpora import read_corpus
    from orrery.errors import UsageError
    from orrery.evaluation.perplexity import evaluate_perplexity
    from orrery.language_model.model import LanguageModel

    if bits != 4:
        raise UsageError(f"--calibrate chooses numbers of 4 bits, and {bits} were asked for", "add --bits 4")
    texts, left = list[str](), READ
    for document in read_corpus(str(path)):
        texts.append(document.text[:left])
        left -= len(texts[-1])
        if not left:
            break

    def reads(stored: "Stored") -> object:
        lm = LanguageModel(stored)
        return evaluate_perplexity(lm, texts, length=min(lm.context, WINDOW), batch_size=4)

    return reads


def _described(transform: "Quantise | StoredBlocks") -> str:
    from orrery.tuning.quantise import FOUR_BIT_GROUP, Quantise

    if not isinstance(transform, Quantise):
        return f"in blocks: {', '.join(transform.parameters)}"
    names = ", ".join(transform.targets)
    inputs = transform.group or (FOUR_BIT_GROUP if transform.bits == 4 else None)
    return f"int{transform.bits}, one scale for {f'up to {inputs} inputs' if inputs else 'an output channel'}: {names}"


def _perplexity(model: str, text: Path) -> float:
    from orrery.data.corpora import read_corpus
    from orrery.evaluation.perplexity import evaluate_perplexity
    from orrery.language_model.load import load
    from orrery.reports.status import waiting

    texts = [document.text for document in read_corpus(str(text))]
    lm = load(model)
    with waiting() as line:
        line.now(f"measuring {model}")
        measures = evaluate_perplexity(lm, texts, done=lambda count: line.now(f"{model}: {count:,} windows measured"))
    return measures["perplexity"]
