"""``orrery evaluate MODEL translation``.

BLEU with its signature, chrF, sentences a second, BLEU by the length of the source.
--source FILE --target FILE, or --set NAME (multi30k-en-de/test_2016_flickr); --num-beams, --length-penalty,
--max-new-tokens, --batch-size; --output FILE for the translations, --overwrite to replace it; --confidence, --samples,
--seed; --device, --dtype.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from orrery.cli.beam_options import BEAMS, TranslationSearch, given
from orrery.cli.evaluate._trust import PLAIN, Trust, print_scores
from orrery.cli.places import DATA, MODEL
from orrery.errors import UsageError

if TYPE_CHECKING:
    from orrery.data.records import Pair


def translation(
    model: Annotated[str, MODEL],
    /,
    *,
    source: Annotated[Path | None, DATA] = None,
    target: Annotated[Path | None, DATA] = None,
    named: Annotated[str | None, Parameter(name="--set")] = None,
    search: TranslationSearch = BEAMS,
    output: Path | None = None,
    overwrite: bool = False,
    trust: Trust = PLAIN,
    device: str = "auto",
    dtype: str = "auto",
) -> None:
    """Translate a test set and score the translations against its targets.

    Args:
        model: An encoder-decoder.
        source: The sentences to translate, one a line.
        target: Their translations.
        named: A named set, such as multi30k-en-de/test_2016_flickr, in the place of both.
        search: How translations are searched for.
        output: A file for the translations, one a line.
        overwrite: Replace the file of --output.
        trust: How far the scores can be trusted.
        device: auto, cpu or cuda.
        dtype: auto, stored, float32, bfloat16, float16 or float64.
    """
    from orrery.checkpoints.outputs import OutputFile
    from orrery.cli.translate import counting, one_line
    from orrery.evaluation.benchmarks.translation import evaluate_translation
    from orrery.language_model.load import load
    from orrery.language_model.search import beams_for
    from orrery.reports.status import waiting
    from orrery.scores.resampling import refuse_one

    inputs = [model, source, target]
    answers = OutputFile(output, inputs=inputs, overwrite=overwrite) if output is not None else None
    pairs = named_pairs(source, target, named)
    if trust.confidence:
        refuse_one(len(pairs))
    lm = load(model, device, dtype)
    with waiting() as line:
        evaluated = evaluate_translation(lm, pairs, done=counting(line.now, len(pairs)), **given(search))
    if answers is not None:
        answers.write("".join(one_line(answer) + "\n" for answer in evaluated.hypotheses))
    print_scores([evaluated.bleu, evaluated.chrf], None, trust)
    beams = beams_for(lm.writing, given(search))
    print(f"{len(pairs):,} sentences, {evaluated.sentences_per_second:,.1f} a second, {beams} beams")
    for bucket in evaluated.buckets:
        print(bucket)


def named_pairs(source: Path | None, target: Path | None, named: str | None) -> "list[Pair]":
    """Return the pairs of two files or of a named set.

    Raises:
        UsageError: neither is given, or both.
    """
    files = source is not None and target is not None
    if files == (named is not None) or (source is None) != (target is None):
        raise UsageError("give --source and --target, or --set", "--set multi30k-en-de/test_2016_flickr")
    from orrery.data.corpora import read_pairs

    return list(read_pairs(named or str(source), target))
