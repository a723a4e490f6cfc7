"""Questions of several subjects with four choices, in the shape of MMLU, about Unicode and Python's library."""

import builtins
import hashlib
import random
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from orrery.data.generated import GeneratedSet, register
from orrery.data.generated._characters import named_characters
from orrery.data.generated._library import PYTHON, library_docstrings

DEV, VAL, TEST = 5, 20, 100
"""Questions of a subject in each part."""

TYPES = (str, bytes, list, tuple, dict, set, int, float)


@dataclass(frozen=True)
class SubjectQuestion:
    """A question, its answer, and what could stand in the answer's place."""

    question: str
    answer: str
    others: tuple[str, ...]


@register
class SubjectQuestions(GeneratedSet):
    """Subject, question, four choices and the place of the answer."""

    kind = "subject_questions"
    what = "questions of six subjects with four choices, in the shape of MMLU"
    made_from = f"Unicode's character database in Python, and {PYTHON}"
    how = (
        f"of each subject {DEV} questions in `dev`, for examples, {VAL} in `val` and at most {TEST} in `test`, in an "
        "order by sha256; each answer stands at each place about equally often"
    )
    parts = ("dev", "val", "test")
    columns = ("subject", "question", "choices", "answer")
    text = "question"

    def records(self, part: str) -> Iterator[dict[str, Any]]:
        """Yield the questions of a part, subject by subject."""
        for subject, make in SUBJECTS.items():
            questions = sorted(_once(make()), key=lambda one: _number(subject, one.question))
            start, count = {"dev": (0, DEV), "val": (DEV, VAL), "test": (DEV + VAL, TEST)}[part]
            for place, one in enumerate(questions[start : start + count]):
                rng = random.Random(_number(subject, one.question, one.answer))
                choices = rng.sample(sorted(set(one.others) - {one.answer}), 3)
                choices.insert((place + rng.randrange(2) * 2) % 4, one.answer)
                yield {
                    "subject": subject, "question": one.question, "choices": choices,
                    "answer": choices.index(one.answer),
                }  # fmt: skip


def unicode_names() -> Iterator[SubjectQuestion]:
    """Yield which name a letter has; the others are names of neighbours."""
    letters = [(sign, name) for part in ("train", "val") for sign, name in named_characters(part) if sign.isalpha()]
    for place in range(0, len(letters), max(1, len(letters) // 400)):
        sign, name = letters[place]
        near = tuple(other for _, other in letters[max(0, place - 20) : place + 20])
        yield SubjectQuestion(f"What is the name of the character {sign}?", name, near)


def unicode_numbers() -> Iterator[SubjectQuestion]:
    """Yield which code point a character of the first 0x250 has."""
    points = [point for point in range(0x21, 0x250) if unicodedata.name(chr(point), "")]
    for point in points:
        near = tuple(f"U+{other:04X}" for other in points if 0 < abs(other - point) < 12)
        yield SubjectQuestion(f"Which code point has {unicodedata.name(chr(point))}?", f"U+{point:04X}", near)


def python_modules() -> Iterator[SubjectQuestion]:
    """Yield which module begins its docstring with a line."""
    own = {module: text for module, text in reversed(library_docstrings()) if "." not in module}
    names = tuple(name for name in own if not name.startswith("_"))
    for name in names:
        line = own[name].strip().partition("\n")[0].strip()
        if len(line.split()) > 3 and name.lower() not in line.lower():
            yield SubjectQuestion(f"Which module of Python's library says of itself: {line}", name, names)


def python_methods() -> Iterator[SubjectQuestion]:
    """Yield which built-in type has a method that the others lack."""
    for kind in TYPES:
        for name in sorted(vars(kind)):
            lacking = tuple(other.__name__ for other in TYPES if not hasattr(other, name))
            if not name.startswith("_") and len(lacking) >= 3:
                yield SubjectQuestion(f"Which of these types has the method {name}?", kind.__name__, lacking)


def python_exceptions() -> Iterator[SubjectQuestion]:
    """Yield which class an exception of Python's own inherits from."""
    kinds = [kind for kind in vars(builtins).values() if isinstance(kind, type) and issubclass(kind, BaseException)]
    names = tuple(sorted({kind.__name__ for kind in kinds}))
    for kind in sorted(kinds, key=lambda kind: kind.__name__):
        base = kind.__base__
        if base is not None and base is not object:
            others = tuple(name for name in names if not issubclass(kind, getattr(builtins, name)))
            yield SubjectQuestion(f"Which class does {kind.__name__} inherit from directly?", base.__name__, others)


def python_values() -> Iterator[SubjectQuestion]:
    """Yield what small expressions are."""
    templates: dict[str, Callable[[int, int], int]] = {
        "{a} + {b} * 2": lambda a, b: a + b * 2,
        "{a} // {b}": lambda a, b: a // b,
        "{a} % {b}": lambda a, b: a % b,
        "len('x' * {b})": lambda a, b: b,
        "sum(range({b}))": lambda a, b: sum(range(b)),
        "max({a}, {b}) - min({a}, {b})": lambda a, b: abs(a - b),
        "int('{a}{b}')": lambda a, b: int(f"{a}{b}"),
    }
    for a in range(11, 40, 7):
        for b in range(3, 12, 2):
            for text, value in templates.items():
                right = value(a, b)
                near = tuple(str(right + step) for step in (-10, -2, -1, 1, 2, 10) if right + step >= 0)
                yield SubjectQuestion(f"What is the value of {text.format(a=a, b=b)}?", str(right), near)


SUBJECTS: dict[str, Callable[[], Iterator[SubjectQuestion]]] = {
    make.__name__: make
    for make in (python_exceptions, python_methods, python_modules, python_values, unicode_names, unicode_numbers)
}


def _once(questions: Iterator[SubjectQuestion]) -> Sequence[SubjectQuestion]:
    """Return the questions, each once, of which no other has another answer."""
    by_question: dict[str, SubjectQuestion] = {}
    for one in questions:
        by_question.setdefault(one.question, one)
    return list(by_question.values())


def _number(*names: str) -> int:
    return int.from_bytes(hashlib.sha256("\n".join(names).encode()).digest()[:8])
