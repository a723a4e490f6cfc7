"""Questions whose answers stand in a text: rows of question and text, and where the answer begins and ends."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Literal

from orrery.data.documents import unknown_share
from orrery.data.rows.questions import Question, read_questions
from orrery.data.sources import BatchRequest, Examples, Source, register
from orrery.data.sources._rows import RowsSettings, divided, examples_of, fingerprint_of
from orrery.schema.numbers import Count, Positive

if TYPE_CHECKING:
    from orrery.data.batches.padded_rows import Row


class QuestionSettings(RowsSettings):
    """Which questions: SQuAD's files, or rows with context, question and answers.

    A text longer than a row is read in windows that share ``stride`` tokens; of a question at most
    ``question_length`` tokens are read.
    """

    kind: Literal["questions"] = "questions"
    stride: Count = 128
    question_length: Positive = 64


@register
class QuestionSource(Source):
    """Questions; ``starts`` and ``ends`` [B] are places in the row, both 0 where the window has no answer."""

    Settings = QuestionSettings
    gives = ("ids", "real", "starts", "ends")
    must_be_read = ("starts", "ends")
    batch_kinds = by_tokens = ("padded",)
    needs_tokenizer = gives_text = True

    def __init__(self, train: Sequence[Question], held_back: Sequence[Question], settings: QuestionSettings) -> None:
        self.train, self.held_back, self.settings = train, held_back, settings

    @classmethod
    def read(cls, settings: QuestionSettings) -> "QuestionSource":
        """Read the questions.

        Raises:
            DataError: one lacks its text, or an answer does not stand where it is said to.
        """

        def read(source: str) -> Iterable[Question]:
            return read_questions(source, invalid=settings.invalid, skip_bad=settings.skip_bad)

        return cls(*divided(settings, read), settings)

    @property
    def fingerprint(self) -> str:
        """The sha256 of all questions in their order, those held back too."""
        return fingerprint_of((row.question, row.context, row.answers) for row in (*self.train, *self.held_back))

    def texts(self) -> Iterable[str]:
        """Return the training questions and their texts, each text once."""
        contexts = dict.fromkeys(row.context for row in self.train)
        return (*(row.question for row in self.train), *contexts)

    def examples(self, request: BatchRequest) -> Examples:
        """Encode the questions, read long texts in windows, and make batches."""
        train, notes = self._encoded(request, self.train, "training")
        others, more = self._encoded(request, self.held_back, "held-back")
        unknown = unknown_share(request.required_tokenizer, [row["ids"] for row in train])
        return examples_of(request, train, others, (*notes, *more, *unknown))

    def _encoded(
        self, request: BatchRequest, questions: Sequence[Question], what: str
    ) -> "tuple[list[Row], list[str]]":
        """Return the rows of questions, and what to say: how many windows there are, how many lack the answer."""
        from orrery.data.batches.windows import windows_of

        tokenizer, settings = request.required_tokenizer, self.settings
        rows: list[Row] = []
        without = 0
        for question in questions:
            spans = tokenizer.spans(question.context)
            question_ids, ids = tokenizer.encode(question.question), [id for id, _, _ in spans]
            limits = (request.length, settings.stride, settings.question_length)
            answer = answer_tokens(question, [(start, end) for _, start, end in spans])
            for window in windows_of(tokenizer, question_ids, ids, *limits):
                start, end = (0, 0) if answer is None else answer
                inside = answer is not None and start in window.tokens and end in window.tokens
                without += not inside
                shift = window.offset - window.tokens.start
                token_types = {"token_types": window.framed.token_types} if request.token_types > 1 else {}
                places = {"starts": start + shift if inside else 0, "ends": end + shift if inside else 0}
                rows.append({"ids": window.framed.ids, **places, **token_types})
        if len(rows) == len(questions) and not without:
            return rows, []
        return rows, [f"{len(questions):,} {what} questions: {len(rows):,} rows, {without:,} without their answer"]


def answer_tokens(question: Question, spans: Sequence[tuple[int, int]]) -> tuple[int, int] | None:
    """Return the first and the last token of the first answer; nothing where there is none."""
    if not question.answers:
        return None
    answer = question.answers[0]
    first, last = answer.start, answer.start + len(answer.text)
    inside = [place for place, (start, end) in enumerate(spans) if end > max(start, first) and start < last]
    return (inside[0], inside[-1]) if inside else None
