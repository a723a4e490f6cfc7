"""Small Python functions with their task in a sentence and three asserts, in the format of MBPP."""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from orrery.data.generated import GeneratedSet, register
from orrery.data.splits import held_back

EVERY = 8
PROMPT = (
    "You are an expert Python programmer, and here is your task: {text} Your code should pass these tests:\n\n"
    "{tests}\n[BEGIN]\n"
)
WORDS = ("apple", "river", "banana", "level", "zebra", "window", "noon", "guitar", "pepper", "orange", "quiz", "yellow")


@dataclass(frozen=True)
class PythonFunction:
    """A function: what it does, in several phrasings, its code, and what its arguments are drawn from."""

    name: str
    phrasings: tuple[str, ...]
    argument: str
    body: str
    draw: Callable[[random.Random], Any]

    @property
    def code(self) -> str:
        """The whole function."""
        return f"def {self.name}({self.argument}):\n    return {self.body}"

    def asserts(self) -> list[str]:
        """Return three asserts on different arguments, the same on every machine."""
        rng, results = random.Random(self.name), dict[str, str]()
        space: dict[str, Any] = {}
        exec(self.code, space)  # written above, by us
        for _ in range(100):
            given = self.draw(rng)
            results.setdefault(repr(given), repr(space[self.name](given)))
            if len(results) == 3:
                break
        return [f"assert {self.name}({given}) == {value}" for given, value in results.items()]


@register
class PythonFunctions(GeneratedSet):
    """Task, code, three asserts, and all of it as MBPP's prompt with its answer."""

    kind = "python_functions"
    what = "tasks in a sentence with a small Python function and three asserts, in the format of MBPP"
    made_from = "this program"
    how = (
        "families of functions over lists, numbers and words; every eighth function (by the sha256 of its name) is "
        "`val`, with one phrasing of its task; `train` has all of them"
    )
    columns = ("task_id", "text", "code", "test_list", "prompted")
    text = "prompted"

    def records(self, part: str) -> Iterator[dict[str, Any]]:
        """Yield the rows of a part."""
        number = 0
        for function in functions():
            if held_back(function.name, EVERY) != (part == "val"):
                continue
            tests = function.asserts()
            for phrasing in function.phrasings[: 1 if part == "val" else None]:
                number += 1
                prompt = PROMPT.format(text=phrasing, tests="\n".join(tests))
                yield {
                    "task_id": number, "text": phrasing, "code": function.code, "test_list": tests,
                    "prompted": f"{prompt}{function.code}\n[DONE]",
                }  # fmt: skip


def functions() -> Iterator[PythonFunction]:
    """Yield all functions, family by family."""
    yield from _of_lists()
    yield from _of_numbers()
    yield from _of_words()


def _of_lists() -> Iterator[PythonFunction]:
    conditions = {"even": ("even", "n % 2 == 0"), "odd": ("odd", "n % 2 == 1"), "positive": ("positive", "n > 0"),
                  "negative": ("negative", "n < 0")}  # fmt: skip
    for k in range(1, 10):
        conditions[f"above_{k}"] = (f"greater than {k}", f"n > {k}")
        conditions[f"below_{k}"] = (f"less than {k}", f"n < {k}")
        if k > 2:
            conditions[f"multiples_of_{k}"] = (f"divisible by {k}", f"n % {k} == 0")
    results = {
        "sum": ("the sum of", "sum(n for n in numbers if {})"),
        "count": ("the number of", "sum(1 for n in numbers if {})"),
        "list": ("a list of", "[n for n in numbers if {}]"),
        "squares": ("a list of the squares of", "[n * n for n in numbers if {}]"),
        "doubles": ("a list of the doubles of", "[2 * n for n in numbers if {}]"),
        "sorted": ("a sorted list of", "sorted(n for n in numbers if {})"),
    }
    for name, (said, condition) in conditions.items():
        for result, (what, body) in results.items():
            phrasings = (
                f"Write a function to find {what} the numbers of a list that are {said}.",
                f"Write a python function to return {what} all numbers {said} in a given list.",
                f"Write a function that takes a list of numbers and gives {what} those that are {said}.",
            )
            yield PythonFunction(f"{result}_{name}", phrasings, "numbers", body.format(condition), _numbers)


def _of_numbers() -> Iterator[PythonFunction]:
    steps = {
        "add": ("add {k} to a number", "number + {k}"),
        "subtract": ("subtract {k} from a number", "number - {k}"),
        "multiply": ("multiply a number by {k}", "number * {k}"),
        "remainder": ("find the remainder of a number divided by {k}", "number % {k}"),
        "divide": ("divide a number by {k} without a remainder", "number // {k}"),
        "divisible": ("check whether a number is divisible by {k}", "number % {k} == 0"),
        "larger": ("check whether a number is larger than {k}", "number > {k}"),
    }
    for k in range(2, 25):
        for name, (said, body) in steps.items():
            task = said.format(k=k)
            phrasings = (f"Write a function to {task}.", f"Write a python function to {task} and return the result.",
                         f"Given an integer, {task}.")  # fmt: skip
            yield PythonFunction(f"{name}_{k}", phrasings, "number", body.format(k=k), lambda rng: rng.randrange(1, 60))


def _of_words() -> Iterator[PythonFunction]:
    for letter in "abcdefghijklmnopqrstuvwxyz":
        yield _word(f"count_{letter}", f"count the letter {letter} in a string", f"text.count('{letter}')")
        yield _word(f"remove_{letter}", f"remove the letter {letter} from a string", f"text.replace('{letter}', '')")
        yield _word(f"begins_with_{letter}", f"check whether a string begins with {letter}",
                    f"text.startswith('{letter}')")  # fmt: skip
        yield _word(f"append_{letter}", f"append the letter {letter} to a string", f"text + '{letter}'")
    for k in range(1, 10):
        yield _word(f"first_{k}", f"get the first {k} characters of a string", f"text[:{k}]")
        yield _word(f"last_{k}", f"get the last {k} characters of a string", f"text[-{k}:]")
        yield _word(f"repeat_{k}", f"repeat a string {k} times", f"text * {k}")


def _word(name: str, task: str, body: str) -> PythonFunction:
    phrasings = (f"Write a function to {task}.", f"Write a python function to {task} and return it.",
                 f"Given a string, {task}.")  # fmt: skip
    return PythonFunction(name, phrasings, "text", body, lambda rng: rng.choice(WORDS))


def _numbers(rng: random.Random) -> list[int]:
    return [rng.randrange(-9, 20) for _ in range(rng.randrange(4, 7))]
