"""``orrery answer``: the part of a context that answers a question."""

from typing import Annotated

from cyclopts import Parameter

from orrery.cli.asking import ask
from orrery.cli.numbers import COUNT, COUNT_OR_NONE
from orrery.cli.places import MODEL
from orrery.cli.texts import READING, InputText, TextReading, read
from orrery.errors import UsageError

_COLUMNS = ("question", "context")


def answer(
    model: Annotated[str, MODEL],
    question: str | None = None,
    /,
    *,
    context: Annotated[str | None, Parameter(help="The text that holds the answer.")] = None,
    reading: TextReading = READING,
    top_k: Annotated[int, COUNT] = 1,
    max_answer_len: Annotated[int, COUNT] = 15,
    doc_stride: Annotated[int | None, COUNT_OR_NONE] = None,
    impossible: bool = False,
    device: str = "auto",
    dtype: str = "auto",
) -> None:
    """Print where a context answers a question: probability, place and words; contexts of any length, in windows.

    Args:
        model: A run, a checkpoint or a folder of a model with a head for the ends of answers.
        question: A question; without one, rows with the columns question and context of --file or standard input.
        context: The text that holds the answer.
        reading: Where rows come from; --column is not used.
        top_k: How many answers a question gets.
        max_answer_len: The most tokens of an answer.
        doc_stride: Tokens that two windows over a long context share.
        impossible: Let no answer be one.
        device: auto, cpu or cuda.
        dtype: auto, stored, float32, bfloat16, float16 or float64.
    """
    given = _given(question, context, reading)
    ask(
        "question-answering",
        model,
        device,
        dtype,
        given,
        [one.fields for one in given],
        reading,
        top_k=top_k,
        max_answer_len=max_answer_len,
        doc_stride=doc_stride,
        handle_impossible_answer=impossible,
    )


def _given(question: str | None, context: str | None, reading: TextReading) -> list[InputText]:
    """Return the one question of the command line, or those of rows."""
    if (question is None) != (context is None):
        raise UsageError("a question needs a context", 'orrery answer MODEL "Who?" --context "Ada wrote."')
    if question is not None and reading.file is not None:
        raise UsageError("give either a question or --file, not both", "leave one of them out")
    if question is None or context is None:
        return read((), reading, _COLUMNS)
    return [InputText("the question", dict(zip(_COLUMNS, (question, context), strict=True)))]
