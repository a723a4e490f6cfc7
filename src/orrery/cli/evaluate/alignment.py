"""``orrery evaluate MODEL alignment``.

How attention runs through the sources from word to word: forward, staying, back.
--source FILE --target FILE, or --set NAME; --device, --dtype.
"""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from orrery.cli.evaluate.translation import named_pairs
from orrery.cli.places import DATA, MODEL


def alignment(
    model: Annotated[str, MODEL],
    /,
    *,
    source: Annotated[Path | None, DATA] = None,
    target: Annotated[Path | None, DATA] = None,
    named: Annotated[str | None, Parameter(name="--set")] = None,
    device: str = "auto",
    dtype: str = "auto",
) -> None:
    """Measure how the attention of a model runs through its sources while it is given their translations.

    Args:
        model: An encoder-decoder that looks at its source.
        source: The sentences that are read, one a line.
        target: Their translations.
        named: A named set, such as multi30k-en-de/test_2016_flickr, in the place of both.
        device: auto, cpu or cuda.
        dtype: auto, stored, float32, bfloat16, float16 or float64.
    """
    from orrery.evaluation.benchmarks.alignment import evaluate_alignment
    from orrery.language_model.load import load
    from orrery.reports.status import waiting

    pairs = named_pairs(source, target, named)
    lm = load(model, device, dtype)
    with waiting() as line:
        measured = evaluate_alignment(lm, pairs, done=lambda count: line.now(f"{count:,} of {len(pairs):,} sentences"))
    print(f"{len(pairs):,} sentences, {measured}")
