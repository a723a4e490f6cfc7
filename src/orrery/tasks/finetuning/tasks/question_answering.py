"""Extractive question answering: the part of a text that answers a question."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, ClassVar

from orrery.tasks.finetuning.tasks import Task, register

if TYPE_CHECKING:
    from orrery.language_model.model import LanguageModel
    from orrery.tasks.finetuning.findings import Findings


@register
class QuestionAnswering(Task):
    """The part of a text that answers a question, found by where it begins and where it ends."""

    kind: ClassVar[str] = "question_answering"
    source = "questions"
    objective = "question_answering"
    head = "span"

    @classmethod
    def texts(cls, source: Any) -> Iterable[tuple[str, ...]]:
        """Return each question with its text."""
        return ((row.question, row.context) for row in source.train)

    @classmethod
    def metrics(cls, source: Any) -> list[dict[str, Any]]:
        """Return how often both ends of an answer are right."""
        return [{"kind": "span_exact", "head": cls.head}]

    @classmethod
    def findings(cls, lm: "LanguageModel", source: Any, length: int, done: Any = None) -> "Findings":
        """Return exact matches and F1 over words, and the worst mistakes."""
        from orrery.scores import answers
        from orrery.tasks.finetuning.findings import Findings, Mistake
        from orrery.tasks.pipelines import pipeline

        rows, settings = source.held_back, source.settings
        ask = pipeline("question-answering", lm, batch_size=16)
        gold = [[answer.text for answer in row.answers] or [""] for row in rows]
        found = ask(
            [{"question": row.question, "context": row.context} for row in rows],
            max_seq_len=length,
            doc_stride=min(settings.stride, length // 2),
            max_question_len=settings.question_length,
            max_answer_len=64,
            handle_impossible_answer=any(answer == [""] for answer in gold),
            align_to_words=False,
            done=done,
        )
        found = found if isinstance(found, list) else [found]
        said = [each["answer"] for each in found]
        wrong = [n for n in range(len(rows)) if not any(answers.exact(said[n], right) for right in gold[n])]
        wrong.sort(key=lambda n: -found[n]["score"])
        return Findings(
            scores=(answers.exact_match(said, gold), answers.answer_f1(said, gold)),
            examples=f"{len(rows):,} questions held back",
            mistakes=[
                Mistake(f"{rows[n].question}\n{rows[n].context}", gold[n][0], said[n], found[n]["score"]) for n in wrong
            ],
        )
