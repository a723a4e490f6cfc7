"""``orrery translate``: sentences in, their translations out, line by line.

It does not ask the task ``translation``, which follows the keys of generation_config.json as transformers does: its
search is that of the papers, whose penalty of lengths, tokens beyond the source and coverage those keys lack; and a
blank line has a blank translation.
"""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from orrery.cli.beam_options import BEAMS, TranslationSearch, given
from orrery.cli.places import MODEL
from orrery.cli.texts import one_line, tell_of_blanks
from orrery.errors import DataError, UsageError
from orrery.schema.keys import Known
from orrery.schema.unknown import UnknownSettingError

STDIN = "-"


def translate(
    model: Annotated[str, MODEL],
    text: Annotated[str | None, Parameter(allow_leading_hyphen=True)] = None,
    /,
    *,
    file: Path | None = None,
    search: TranslationSearch = BEAMS,
    source_language: str | None = None,
    target_language: str | None = None,
    alignment: Path | None = None,
    overwrite: bool = False,
    device: str = "auto",
    dtype: str = "auto",
) -> None:
    """Translate a sentence, or each line of a file or of standard input; line n of the answer is that of line n.

    A blank line stays blank, which is said. A line end or another control character in an answer is shown escaped, so
    that lines stay lines.

    Args:
        model: A run, a checkpoint or a folder of an encoder-decoder.
        text: A sentence, or - for the lines of standard input.
        file: A UTF-8 file to translate line by line.
        search: How translations are searched for.
        source_language: Of the texts, for a model of many, as its tokenizer spells it: en, eng_Latn, en_XX.
        target_language: Of the translations; by default what the model's files say.
        alignment: An SVG file for the picture of what each word of the one translation looked at.
        overwrite: Replace the file of --alignment.
        device: auto, cpu or cuda.
        dtype: auto, stored, float32, bfloat16, float16 or float64.
    """
    if text is not None and text.startswith("--"):
        raise UnknownSettingError(text, Known(), "a text that begins so: --file FILE")
    if (text is None) == (file is None):
        raise UsageError("give either a text or --file, not both and not neither", "orrery translate MODEL TEXT")
    if alignment is not None and text in (None, STDIN):
        raise UsageError("--alignment draws one sentence", "give it as TEXT")
    from orrery.checkpoints.outputs import OutputFile

    picture = None if alignment is None else OutputFile.shown("svg", alignment, inputs=[model], overwrite=overwrite)
    lines = [text] if text not in (None, STDIN) else _told(read_lines(file), file)
    from orrery.language_model.load import load
    from orrery.reports.status import waiting

    lm = load(model, device, dtype)
    with waiting() as line:
        translations = lm.translate(
            lines,
            **given(search),
            source_language=source_language,
            target_language=target_language,
            done=counting(line.now, len(lines)),
        )
    for answer in translations:
        print(one_line(answer))
    if picture is not None:
        picture.write(lm.align(lines[0], translations[0]).figure() + "\n")


def _told(lines: list[str], file: Path | None) -> list[str]:
    """Return the lines of a file or of standard input, having said which of them are blank."""
    tell_of_blanks(file, [str(number) for number, line in enumerate(lines, start=1) if not line.strip()], len(lines))
    return lines


def read_lines(file: Path | None) -> list[str]:
    """Return the lines of a file, or of standard input, without a byte order mark. Raises `DataError` for no UTF-8."""
    where = file or "standard input"
    try:
        content = file.read_bytes() if file is not None else sys.stdin.buffer.read()
        lines = content.decode().removeprefix("\ufeff").split("\n")
    except OSError as error:
        raise DataError(f"cannot read {where}: {error.strerror}", "give the path of a text file") from error
    except UnicodeDecodeError as error:
        raise DataError(f"{where} is not UTF-8 (byte {error.start})", "convert it to UTF-8") from error
    return [line.removesuffix("\r") for line in (lines[:-1] if lines[-1] == "" else lines)]


def counting(say: Callable[[str], None], total: int) -> Callable[[int], None]:
    """Return what says how many of the sentences are done."""
    say(f"translating {total:,} sentences")
    return lambda count: say(f"{count:,} of {total:,} sentences")
