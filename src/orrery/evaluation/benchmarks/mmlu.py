"""MMLU (Hendrycks et al. 2021): questions of many subjects with four choices, behind examples of the same subject."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from orrery.data import generated
from orrery.data.corpora import read_placed_rows
from orrery.errors import DataError
from orrery.evaluation.benchmarks.choices import LETTERS, ChoiceQuestion, place_of, question_of

HEAD = "The following are multiple choice questions (with answers) about {subject}.\n\n"
SPLITS = ("dev", "val", "test")
_TABLE = ("1", "2", "3", "4", "5", "6")


@dataclass(frozen=True)
class MmluItem:
    """One question of a subject."""

    where: str
    subject: str
    question: str
    choices: tuple[str, ...]
    answer: int

    @property
    def asked(self) -> str:
        """The question with its choices, up to the answer."""
        lines = [f"{letter}. {choice}" for letter, choice in zip(LETTERS, self.choices, strict=False)]
        return "\n".join([self.question.strip(), *lines, "Answer:"])

    @property
    def answered(self) -> str:
        """The question with its answer, as an example."""
        return f"{self.asked} {LETTERS[self.answer]}\n\n"


def read_items(source: str, split: str) -> list[MmluItem]:
    """Return the items of one split of an MMLU folder, or of a generated set of that shape.

    A folder has ``SPLIT/SUBJECT_SPLIT.csv`` (question, four choices, a letter; no line of names), as the authors
    publish it, or ``SPLIT.jsonl`` with the columns ``subject``, ``question``, ``choices`` and ``answer``.

    Raises:
        DataError: there is no such split, or a row is no question, with its file and line.
    """
    if generated.find(source) is not None:
        return list(_of_rows(f"{source}/{split}"))
    folder = Path(source)
    if not folder.is_dir():
        raise DataError(f"{source}: no folder", "give a folder with dev/ and test/, or subject-questions")
    items = [item for file in sorted((folder / split).glob(f"*_{split}.csv*")) for item in _of_table(file, split)]
    for file in sorted(folder.glob(f"{split}.jsonl*")):
        items += _of_rows(str(file))
    if not items:
        hint = f"it holds {split}/SUBJECT_{split}.csv, or {split}.jsonl with subject, question, choices and answer"
        raise DataError(f"{source}: no questions of the split {split}", hint)
    return items


def subjects_of(items: Sequence[MmluItem]) -> list[str]:
    """Return the subjects, sorted."""
    return sorted({item.subject for item in items})


def chosen(items: Sequence[MmluItem], subjects: Sequence[str], first: int | None) -> list[MmluItem]:
    """Return the items of these subjects (of all, where none is named), of each the first so many.

    Raises:
        DataError: a subject has no items.
    """
    known = subjects_of(items)
    if unknown := [name for name in subjects if name not in known]:
        raise DataError(f"no questions about {unknown[0]}", f"there are: {', '.join(known)}")
    counts: dict[str, int] = {}
    chosen_items = []
    for item in items:
        counts[item.subject] = counts.get(item.subject, 0) + 1
        if item.subject in (subjects or known) and (first is None or counts[item.subject] <= first):
            chosen_items.append(item)
    return chosen_items


def prompted(
    items: Sequence[MmluItem], examples: Sequence[MmluItem], shots: int, fits: Callable[[str], bool]
) -> tuple[list[ChoiceQuestion], int]:
    """Return the questions behind a line about the subject and ``shots`` examples, and how many have fewer examples.

    Where a prompt does not fit, it has as many examples as do, as in the authors' code. The choices are the letters.
    Differs from: the authors' code, which has a second blank before the subject; lm_eval has one too.

    Raises:
        DataError: a subject has fewer examples.
    """
    own: dict[str, list[MmluItem]] = {}
    for example in examples:
        own.setdefault(example.subject, []).append(example)
    questions, fewer = [], 0
    for item in items:
        before = own.get(item.subject, [])[:shots]
        if len(before) < shots:
            message = f"{item.subject} has {len(before)} examples in dev, and {shots} are asked for"
            raise DataError(message, f"--shots {len(before)}")
        head = HEAD.format(subject=item.subject.replace("_", " "))
        context = head + "".join(example.answered for example in before) + item.asked
        while before and not fits(context):
            before = before[:-1]
            context = head + "".join(example.answered for example in before) + item.asked
        fewer += len(before) < shots
        letters = tuple(LETTERS[: len(item.choices)])
        text = f"{item.question.strip()} {item.choices[item.answer]}"
        questions.append(ChoiceQuestion(item.where, context, letters, item.answer, item.subject, text))
    return questions, fewer


def _of_table(file: Path, split: str) -> Iterator[MmluItem]:
    subject = file.name.partition(f"_{split}.csv")[0]
    for where, row in read_placed_rows(file, _TABLE):
        choices = tuple(str(row[name]) for name in _TABLE[1:5])
        answer = str(row["6"]).strip()
        if answer not in LETTERS[:4] or len(answer) != 1:
            raise DataError(f"{where}: the answer {answer!r} is none of A to D", "question, four choices, a letter")
        yield MmluItem(where, subject, str(row["1"]), choices, LETTERS.index(answer))


def _of_rows(source: str) -> Iterator[MmluItem]:
    for where, row in read_placed_rows(source):
        subject = row.get("subject")
        if not isinstance(subject, str) or not subject:
            raise DataError(f"{where}: no text `subject`", "say which subject each question is about")
        text, choices, _ = question_of(row, where)
        yield MmluItem(where, subject, text, tuple(choices), place_of(row["answer"], choices, where))
