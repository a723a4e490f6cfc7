"""Multiple choice: the log likelihood of each choice behind the question."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from orrery.data.corpora import read_placed_rows
from orrery.errors import DataError
from orrery.evaluation.evaluated import Done, Evaluated
from orrery.language_model.model import LanguageModel
from orrery.scores.choices import Choices, accuracy, by_group

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


@dataclass(frozen=True)
class ChoiceQuestion:
    """A question as a model reads it.

    Attributes:
        where: the file and line it comes from.
        context: what stands before each choice; it may be empty.
        choices: what follows, each behind ``delimiter``.
        answer: the place of the right one.
        group: what it belongs to.
        item: its text as training data could have held it.
        delimiter: what stands between context and choice.
    """

    where: str
    context: str
    choices: tuple[str, ...]
    answer: int
    group: str = ""
    item: str = ""
    delimiter: str = " "


def evaluate_choices(
    lm: LanguageModel,
    questions: Sequence[ChoiceQuestion],
    *,
    batch_size: int = 64,
    normalisations: Sequence[str] = ("none", "characters", "tokens"),
    done: Done | None = None,
    **facts: object,
) -> Evaluated:
    """Score each choice of each question, and count how often the most probable one is the answer.

    Args:
        lm: a decoder.
        questions: with two or more choices each.
        batch_size: rows computed at once.
        normalisations: keys of `orrery.scores.choices.NORMALISATIONS`, one score each.
        done: told after each batch.
        facts: what the signature says of the task.
    """
    choices, cut = score_choices(lm, questions, batch_size=batch_size, done=done)
    details = [
        {"where": one.where, "answer": own.answer, "nats": list(own.nats), "tokens": list(own.tokens)}
        for one, own in zip(questions, choices, strict=True)
    ]
    notes = [f"{cut:,} questions did not fit the context of {lm.context:,} tokens and lost their beginning"] * bool(cut)
    groups = by_group(choices, normalisations[0]) if any(one.group for one in choices) else {}
    scores = [accuracy(choices, normalisation, **facts) for normalisation in normalisations]
    return Evaluated(scores, [one.item or one.context for one in questions], details, groups, notes)


def score_choices(
    lm: LanguageModel, questions: Sequence[ChoiceQuestion], *, batch_size: int = 64, done: Done | None = None
) -> tuple[list[Choices], int]:
    """Return the likelihoods of all choices, and how many questions lost the beginning of their context."""
    pairs = [(one.context, one.delimiter + choice) for one in questions for choice in one.choices]

    def tell(count: int) -> None:
        if done is not None:
            done(f"{count:,} of {len(pairs):,} choices scored")

    scored = iter(lm.likelihoods(pairs, batch_size=batch_size, done=tell))
    choices, cut = [], 0
    for one in questions:
        own = [next(scored) for _ in one.choices]
        cut += any(each.cut for each in own)
        choices.append(
            Choices(
                tuple(each.nats for each in own),
                tuple(max(1, len(choice)) for choice in one.choices),
                tuple(each.tokens for each in own),
                one.answer,
                one.group,
            )
        )
    return choices, cut


def read_questions(source: str, first: int | None = None) -> list[ChoiceQuestion]:
    """Return the questions of a file of rows: ``question``, ``choices`` (a list) and ``answer``; ``group`` if there.

    ``answer`` is a letter, the place of the choice from 0, or the choice itself; one that means two of these, and with
    them two choices, is refused. Choices that are equal are one: whichever is meant is right.

    Raises:
        DataError: a row is no question, with its file and line.
    """
    questions: list[ChoiceQuestion] = []
    for where, row in read_placed_rows(source):
        if first is not None and len(questions) == first:
            break
        text, choices, answer = question_of(row, where)
        item = f"{text} {choices[answer]}"
        group = row.get("group", row.get("subject", ""))
        different = tuple(dict.fromkeys(choices))
        questions.append(ChoiceQuestion(where, text, different, different.index(choices[answer]), str(group), item))
    return refuse_none(questions, source)


def question_of(row: Mapping[str, Any], where: str) -> tuple[str, list[str], int]:
    """Return (question, choices, place of the answer) of a row. Raises `DataError` where it is none."""
    hint = 'a row is {"question": "...", "choices": ["...", "..."], "answer": "A"}'
    text, choices = row.get("question"), row.get("choices")
    if not isinstance(text, str):
        raise DataError(f"{where}: no text `question`", hint)
    if not isinstance(choices, list) or len(choices) < 2 or not all(isinstance(c, str) and c for c in choices):
        raise DataError(f"{where}: `choices` is no list of two or more texts", hint)
    if len(set(choices)) < 2:
        raise DataError(f"{where}: all choices are equal", "give two that differ")
    return text, choices, place_of(row.get("answer"), choices, where)


def place_of(answer: Any, choices: Sequence[str], where: str) -> int:
    """Return the place of the answer: given as a letter, a number from 0, or the choice itself.

    A number in JSON is a place alone; as a text, in a table, it may be a choice as well.

    Raises:
        DataError: it is none of the choices, or means two that differ.
    """
    meanings = list(_meanings(answer, choices))
    last = LETTERS[min(len(choices), len(LETTERS)) - 1]
    if not meanings:
        message = f"{where}: the answer {answer!r} is none of {len(choices)} choices"
        raise DataError(message, f"give A to {last}, or 0 on")
    different: dict[str, tuple[str, int]] = {}
    for how, place in meanings:
        different.setdefault(choices[place], (how, place))
    if len(different) > 1:
        readings = " or ".join(f"{choice!r} ({how})" for choice, (how, _) in different.items())
        numbers = ", ".join(f"{place} for {choice!r}" for choice, (_, place) in different.items())
        message = f"{where}: the answer {answer!r} may mean {readings}"
        raise DataError(message, f'give its place as a number without quotes: "answer": {numbers}')
    return meanings[0][1]


def _meanings(answer: Any, choices: Sequence[str]) -> Iterator[tuple[str, int]]:
    """Yield what an answer may mean, and the place of the choice that it then is."""
    if isinstance(answer, int) and not isinstance(answer, bool) and 0 <= answer < len(choices):
        yield "the place", answer
    if not isinstance(answer, str):
        return
    said = answer.strip()
    if answer in choices or said in choices:
        yield "the choice", list(choices).index(answer if answer in choices else said)
    if len(said) == 1 and said in LETTERS[: len(choices)]:
        yield "the letter", LETTERS.index(said)
    if said.isascii() and said.isdigit() and len(said) < 4 and int(said) < len(choices):
        yield "the place", int(said)


def refuse_none(questions: list[ChoiceQuestion], source: str) -> list[ChoiceQuestion]:
    """Return the questions. Raises `DataError` where there are none."""
    if not questions:
        raise DataError(f"{source}: no questions", "check that the file was written whole")
    return questions
