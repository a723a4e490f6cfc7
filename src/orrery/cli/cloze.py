"""``orrery cloze``: which of several words or phrases fits a gap.

It asks no task: a task answers several texts in common batches, and tells all answers at its end; here the candidates
of one text are the batch, and each table is printed as soon as it is known.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

from orrery.cli.places import MODEL
from orrery.cli.tables import print_table
from orrery.cli.texts import READING, TextReading, print_json, read
from orrery.errors import DataError, OrreryError, UsageError
from orrery.tasks import NO_TEXT

if TYPE_CHECKING:
    from orrery.language_model.cloze import Filled


def cloze(
    model: Annotated[str, MODEL],
    /,
    *texts: str,
    candidates: str,
    reading: TextReading = READING,
    left_only: bool = False,
    mean: bool = False,
    device: str = "auto",
    dtype: str = "auto",
) -> None:
    """Print how probable each candidate is in the gap __ of a text, the best first, in nats.

    A decoder gives each token of a candidate its probability from those before it, and then those behind the gap
    theirs; a masked model fills as many masks from left to right.

    Args:
        model: A run, a checkpoint or a folder of a decoder or a masked language model.
        texts: Texts with one gap each; without any, those of --file or of standard input.
        candidates: Words or phrases with commas between them.
        reading: Where texts come from.
        left_only: Of a decoder: leave out what stands behind the gap.
        mean: Rank by the mean of the tokens, which does not favour short candidates.
        device: auto, cpu or cuda.
        dtype: auto, stored, float32, bfloat16, float16 or float64.
    """
    named = [part.strip() for part in candidates.split(",")]
    if not all(named):
        raise UsageError("--candidates has an empty one", 'write them with commas between: "an apple, a banana"')
    given = read(texts, reading)
    from orrery.language_model.load import load

    lm = load(model, device, dtype, say=lambda line: None)
    for one in given:
        text = one.fields[reading.column]
        if one.blank:
            print_json({**one.fields, "candidates": []}) if reading.json else print(NO_TEXT)
            continue
        try:
            filled_gap = lm.cloze(text, named, both_sides=not left_only, mean=mean, batch_size=reading.batch_size)
        except (DataError, UsageError) as error:
            raise _named(error, one.where) from None
        if reading.json:
            filled = [
                {"candidate": each.candidate, "score": each.score, "log_probability": each.log_probability,
                 "rest": each.rest, "log_probabilities": each.log_probabilities}
                for each in filled_gap
            ]  # fmt: skip
            print_json({**one.fields, "candidates": filled})
        else:
            _print(filled_gap)


def _named(error: OrreryError, where: str) -> OrreryError:
    return type(error)(f"{where}: {error.message}", error.hint)


def _print(filled: "Sequence[Filled]") -> None:
    rows = [
        [*(f"{nats:.4f}" for nats in (one.score, one.log_probability, one.rest)), str(len(one.ids)), one.candidate]
        for one in filled
    ]
    print_table(["score", "candidate's nats", "nats behind it", "tokens", "candidate"], rows)
