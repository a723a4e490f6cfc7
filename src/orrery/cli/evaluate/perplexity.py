"""``orrery evaluate MODEL perplexity``.

Nats a token, perplexity and bits a byte of a text under a decoder.
--file FILE or --set NAME (tiny-shakespeare); --length, --batch-size, --device, --dtype.
"""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from orrery.cli.numbers import COUNT
from orrery.cli.places import DATA, MODEL
from orrery.errors import UsageError


def perplexity(
    model: Annotated[str, MODEL],
    /,
    *,
    file: Annotated[Path | None, DATA] = None,
    named: Annotated[str | None, Parameter(name="--set")] = None,
    length: Annotated[int | None, COUNT] = None,
    batch_size: Annotated[int, COUNT] = 16,
    device: str = "auto",
    dtype: str = "auto",
) -> None:
    """Measure how well a decoder predicts a text.

    Args:
        model: A decoder.
        file: A file or folder of text.
        named: A named set, such as tiny-shakespeare, in its place.
        length: Tokens of a window; by default the model's context.
        batch_size: Windows computed at once.
        device: auto, cpu or cuda.
        dtype: auto, stored, float32, bfloat16, float16 or float64.
    """
    if (file is None) == (named is None):
        raise UsageError("give either --file or --set, not both and not neither", "--set tiny-shakespeare")
    from orrery.data.corpora import read_corpus
    from orrery.evaluation.perplexity import evaluate_perplexity
    from orrery.language_model.load import load
    from orrery.reports.status import waiting

    texts = [document.text for document in read_corpus(named or str(file))]
    lm = load(model, device, dtype)
    with waiting() as line:
        line.now("measuring")
        measures = evaluate_perplexity(
            lm, texts, length=length, batch_size=batch_size, done=lambda count: line.now(f"{count:,} windows measured")
        )
    print(f"loss        {measures['loss']:.4f} nats a token")
    print(f"perplexity  {measures['perplexity']:.2f}")
    print(f"bpb         {measures['bpb']:.4f} bits a byte")
