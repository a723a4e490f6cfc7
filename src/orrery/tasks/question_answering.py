"""The part of a text that answers a question: ``{"score", "start", "end", "answer"}``."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from orrery.data.batches.windows import windows
from orrery.errors import UsageError
from orrery.nn.heads import TokenHead
from orrery.schema.numbers import Count, Positive
from orrery.scores import answers
from orrery.tasks._no_text import NO_TEXT
from orrery.tasks._task import Learned, register
from orrery.tasks.finetuning.findings import Findings, Mistake
from orrery.tasks.pipelines._heads import Scores, head_of, wide
from orrery.tasks.pipelines._make import pipeline
from orrery.tasks.pipelines._pipeline import Pipeline, PipelineSettings, field_of, refuse_other_fields
from orrery.tasks.pipelines._rows import InputRow, ask, room_of, row
from orrery.tasks.pipelines._spans import FoundSpan, best_spans, ends_of

if TYPE_CHECKING:
    from orrery.language_model.model import LanguageModel

USUAL_LENGTH, USUAL_STRIDE = 384, 128
"""Tokens of a window and tokens that two windows share, where nothing is said."""


class QuestionAnsweringSettings(PipelineSettings):
    """How many answers, of how many tokens; ``max_seq_len`` tokens of a window, ``doc_stride`` shared by two.

    ``handle_impossible_answer`` adds the empty answer; ``align_to_words`` widens answers to whole words;
    ``max_question_len`` cuts longer questions.
    """

    top_k: Positive = 1
    max_answer_len: Positive = 15
    max_seq_len: Positive | None = None
    max_question_len: Positive | None = None
    doc_stride: Count | None = None
    handle_impossible_answer: bool = False
    align_to_words: bool = True


@dataclass(frozen=True)
class _Context:
    """A context with the places of its tokens and the words that they are of."""

    text: str
    places: list[tuple[int, int]]
    words: list[int | None]

    def characters(self, first: int, last: int, among: range, whole_words: bool) -> tuple[int, int]:
        """Return where a span of tokens begins and ends; whole words where asked, as far as ``among`` goes."""
        ends = [self.words[first], self.words[last]]
        if not whole_words or None in ends:
            return self.places[first][0], self.places[last][1]
        head = next(token for token in among if self.words[token] == ends[0])
        tail = next(token for token in reversed(among) if self.words[token] == ends[1])
        return self.places[head][0], self.places[tail][1]


@register
class QuestionAnswering(Learned, Pipeline):
    """The part of a text that answers a question, found by where it begins and where it ends.

    The answer has the greatest ``p(start) p(end)`` over the tokens of the context, the best of all windows (Rajpurkar
    et al. 2016). Each window has its own softmax, as in transformers 4; equal answers of two places or windows add
    their scores. The first token stands for "no answer" and is never part of one. Transformers 5 has no such task any
    more.
    """

    kind = "question_answering"
    verb = "answer"
    fields = ("question", "context")
    said = "answers"
    source = "questions"
    objective = "question_answering"
    head = "span"
    Settings = QuestionAnsweringSettings

    @classmethod
    def texts(cls, source: Any) -> Iterable[tuple[str, ...]]:
        """Return each question with its text."""
        return ((row.question, row.context) for row in source.train)

    @classmethod
    def metrics(cls, source: Any) -> list[dict[str, Any]]:
        """Return how often both ends of an answer are right."""
        return [{"kind": "span_exact", "head": cls.head}]

    @classmethod
    def findings(cls, lm: "LanguageModel", source: Any, length: int, done: Any = None) -> Findings:
        """Return exact matches and F1 over words, and the worst mistakes."""
        rows, settings = source.held_back, source.settings
        ask = pipeline("question-answering", lm, batch_size=16)
        gold = [[answer.text for answer in row.answers] or [""] for row in rows]
        answered = ask(
            [{"question": row.question, "context": row.context} for row in rows],
            max_seq_len=length,
            doc_stride=min(settings.stride, length // 2),
            max_question_len=settings.question_length,
            max_answer_len=64,
            handle_impossible_answer=any(answer == [""] for answer in gold),
            align_to_words=False,
            done=done,
        )
        answered = answered if isinstance(answered, list) else [answered]
        said = [each["answer"] for each in answered]
        wrong = [n for n in range(len(rows)) if not any(answers.exact(said[n], right) for right in gold[n])]
        wrong.sort(key=lambda n: -answered[n]["score"])
        return Findings(
            scores=(answers.exact_match(said, gold), answers.answer_f1(said, gold)),
            examples=f"{len(rows):,} questions held back",
            mistakes=[
                Mistake(f"{rows[n].question}\n{rows[n].context}", gold[n][0], said[n], answered[n]["score"])
                for n in wrong
            ],
        )

    def __call__(self, inputs: Any = None, *, question: Any = None, context: Any = None, **settings: Any) -> Any:
        """Return the answers to ``{"question", "context"}``, to a list of such, or to questions on contexts."""
        if inputs is None:
            inputs = _examples(question, context)
        elif question is not None or context is not None:
            raise UsageError("question and context are given twice", "give them by name, or as a mapping")
        single = isinstance(inputs, list) and len(inputs) == 1
        return super().__call__(inputs[0] if single else inputs, **settings)

    def rows(self, item: Any, settings: QuestionAnsweringSettings) -> Sequence[InputRow]:
        """Return a row for each window over the context."""
        question, context = self._texts(item)
        first = self.lm.tokenizer.encode(question)[: settings.max_question_len]
        second = self.lm.tokenizer.encode(context)
        length = settings.max_seq_len or min(self.lm.context, USUAL_LENGTH)
        if length > self.lm.context:
            hint = f"give at most {self.lm.context}"
            raise UsageError(f"max_seq_len = {length:,} is more than the context of this model", hint)
        stride = min(length // 2, USUAL_STRIDE) if settings.doc_stride is None else settings.doc_stride
        room = room_of(self.lm, paired=True, length=length) - len(first)
        if room < 1:
            hint = "shorten it, cut it with max_question_len, or raise max_seq_len"
            raise UsageError(f"a question of {len(first):,} tokens leaves no room for its context", hint)
        if len(second) > room and stride >= room:
            hint = "choose a smaller doc_stride, or cut the question with max_question_len"
            raise UsageError(f"{room:,} tokens of context a window cannot share {stride:,}", hint)
        return [row(self.lm, first, second[a:b], a) for a, b in windows(len(second), room, min(stride, room - 1))]

    def ask(self, rows: Sequence[InputRow], settings: QuestionAnsweringSettings) -> Sequence[Scores]:
        """Return both logits of each token of each row."""
        name, spec = head_of(self.lm, TokenHead.Spec, "span", settings.head, self.task)
        if spec.labels != 2:
            raise UsageError(f"the head {name} has {spec.labels} labels", "answers need one for each end: two")
        logits = wide(ask(self.lm, rows, name)[0])
        return [logits_L[: len(one.ids)] for logits_L, one in zip(logits, rows, strict=True)]

    def answer(
        self, item: Any, rows: Sequence[InputRow], outputs: Sequence[Scores], settings: QuestionAnsweringSettings
    ) -> Any:
        """Return the best answer, or a list of them where there is not exactly one."""
        _, text = self._texts(item)
        places = [(start, end) for _, start, end in self.lm.tokenizer.spans(text)]
        context = _Context(text, places, self.lm.tokenizer.word_numbers(text))
        answers: dict[str, dict[str, Any]] = {}
        empty = 1.0
        for one, logits in zip(rows, outputs, strict=True):
            spans, nothing = self._spans(one, logits, settings)
            empty = min(empty, nothing)
            for start, end, score in _placed(spans, one, context, settings.align_to_words):
                found_text = text[start:end]
                known = answers.setdefault(
                    found_text.lower(), {"score": 0.0, "start": start, "end": end, "answer": found_text}
                )
                known["score"] += score
        listed = list(answers.values())
        if settings.handle_impossible_answer:
            listed.append({"score": empty, "start": 0, "end": 0, "answer": ""})
        listed = sorted(listed, key=lambda one: -one["score"])[: settings.top_k]
        return listed[0] if len(listed) == 1 else listed

    def told(self, answer: Any) -> list[dict[str, Any]]:
        """Return the answers as a list."""
        return answer if isinstance(answer, list) else [] if answer is None else [answer]

    def lines(self, item: Any, answer: Any) -> Iterator[str]:
        """Return a line an answer: probability, place and words."""
        if not self.told(answer):
            yield NO_TEXT if answer is None else "no answer"
        for each in self.told(answer):
            yield f"{each['score']:.4f}  {each['start']}-{each['end']}  {each['answer']}"

    def _spans(
        self, row: InputRow, logits: Scores, settings: QuestionAnsweringSettings
    ) -> tuple[list[FoundSpan], float]:
        """Return the best spans of a row, and the probability that it holds no answer."""
        allowed = np.array(row.texts) == 1
        tokenizer = self.lm.tokenizer
        if "class" in tokenizer.roles:  # it stands for "no answer", and takes part in the softmax
            allowed |= np.array(row.ids) == tokenizer.special("class")
        start, end = ends_of(logits, allowed)
        empty = float(start[0] * end[0])
        start[0] = end[0] = 0.0
        count = settings.top_k * 2 + 10 if settings.align_to_words else settings.top_k
        return best_spans(start, end, allowed, count, settings.max_answer_len), empty

    def _texts(self, item: Any) -> tuple[str, str]:
        """Return the question and the context of an input.

        Raises:
            UsageError: it has not both, or one is empty.
        """
        if not isinstance(item, Mapping):
            hint = 'give question="...", context="..."'
            raise UsageError(f"{self.task} reads a question and a context, not a {type(item).__name__}", hint)
        refuse_other_fields(item, ("question", "context"), self.task)
        texts = field_of(item, "question", self.task), field_of(item, "context", self.task)
        if not all(texts):
            raise UsageError(f"{self.task}: the {'context' if texts[0] else 'question'} is empty", "give both")
        return texts


def _placed(
    spans: Sequence[FoundSpan], row: InputRow, context: _Context, whole_words: bool
) -> Iterator[tuple[int, int, float]]:
    """Yield where spans of a row begin and end in the context, with their scores."""
    before = row.texts.index(1) if 1 in row.texts else len(row.texts)
    among = range(row.start, row.start + row.texts.count(1))
    for span in spans:
        first, last = (row.start + place - before for place in (span.start, span.end))
        if first in among and last in among:
            yield *context.characters(first, last, among, whole_words), span.score


def _examples(question: Any, context: Any) -> Any:
    """Return questions on contexts as inputs; one context may serve several questions.

    Raises:
        UsageError: one is missing, or there are not as many of the one as of the other.
    """
    if question is None or context is None:
        raise UsageError("question-answering needs a question and a context", 'give question="...", context="..."')
    if isinstance(question, str):
        return {"question": question, "context": context}
    contexts = [context] * len(question) if isinstance(context, str) else context
    if len(contexts) != len(question):
        raise UsageError(f"{len(question)} questions and {len(contexts)} contexts", "give as many of the one")
    return [{"question": one, "context": other} for one, other in zip(question, contexts, strict=True)]
