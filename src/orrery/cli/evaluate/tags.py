"""``orrery evaluate tags``: predicted tags of words against the right ones, without a model.

Precision, recall and F1 of whole entities, by type and averaged, of two CoNLL or BIO files with the same words.
PREDICTED GOLD; --scheme conlleval (mends what is invalid), IOB2, IOE2 or IOBES (strict); --against FILE of a second
system; --confidence, --samples, --seed.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Literal

from orrery.cli.evaluate._cells import FileCell, check_number, two_files
from orrery.cli.evaluate._trust import PLAIN, Trust, print_scores
from orrery.errors import DataError

if TYPE_CHECKING:
    from orrery.scores.entities import Scheme


def tags(
    predicted: Path | None = None,
    gold: Path | None = None,
    /,
    *,
    scheme: Literal["conlleval", "IOB2", "IOE2", "IOBES"] = "conlleval",
    against: Path | None = None,
    trust: Trust = PLAIN,
) -> None:
    """Score predicted tags by the entities that they mark.

    Args:
        predicted: Words with the tags that were predicted, a word a line, an empty line behind each sentence.
        gold: The same words with the right tags.
        scheme: conlleval mends invalid tags as CoNLL's script does; IOB2, IOE2 and IOBES leave them out.
        against: The tags of a second system, for paired tests.
        trust: How far the scores can be trusted.
    """
    from orrery.scores.entities import by_type, entity_f1
    from orrery.scores.precision_recall import AVERAGES

    files = [*two_files(predicted, gold, "tags"), *([] if against is None else [against])]
    sides = [_read(file, scheme) for file in files]
    for file, side in zip(files, sides, strict=True):
        _check_words(side, file, sides[1], files[1])
    ours, right, *other = [[cell.value.tags for cell in side] for side in sides]
    types = sorted({tag[2:] or "_" for side in (ours, right, *other) for own in side for tag in own if tag != "O"})
    scores, *others = [[entity_f1(side, right, a, scheme, types) for a in AVERAGES] for side in (ours, *other)]
    print_scores(scores, others[0] if others else None, trust)
    print(f"{'precision':>9} {'recall':>9} {'F1':>9} {'right':>9}  type")
    for line in by_type(ours, right, scheme):
        print(f"{line.precision:9.4f} {line.recall:9.4f} {line.f1:9.4f} {line.support:9,}  {line.label}")


def _read(file: Path, scheme: "Scheme") -> list[FileCell]:
    """Return the sentences of a file. Raises `DataError` with the line of a tag that the scheme does not have."""
    from orrery.data.files import Faults
    from orrery.data.formats import read_sentences
    from orrery.scores.entities import spans

    cells = []
    for sentence in read_sentences(file, Faults()):
        if not sentence.tags:
            raise DataError(f"{file}:{sentence.line}: words without tags", "give a file of words and tags (.bio)")
        for place, tag in enumerate(sentence.tags):
            try:
                spans([tag], scheme)
            except DataError as error:
                what = error.message.partition(": ")[2]
                raise DataError(f"{file}:{sentence.line + place}: {what}", error.hint) from None
        cells.append(FileCell(f"{file}:{sentence.line}", sentence))
    if not cells:
        raise DataError(f"{file}: no sentence", "check that the file was written whole")
    return cells


def _check_words(ours: list[FileCell], file: Path, theirs: list[FileCell], other: Path) -> None:
    for one, right in zip(ours, theirs, strict=False):
        if one.value.words != right.value.words:
            message = f"{one.where}: other words than in {right.where}: {one.value.text[:60]!r}"
            raise DataError(message, "both files have the same words, in the same sentences")
    check_number(ours, file, theirs, other, "sentences")
