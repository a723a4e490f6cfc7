"""Sums of two numbers of one or two digits, to be worked out: the smallest task whose answers can be checked."""

import hashlib
from collections.abc import Iterator

from orrery.data.generated import GeneratedSet, register
from orrery.data.splits import held_back

EVERY = 10
FEW = 8
NUMBERS = 100
CARRIED = 3
"""The careless part carries in one of so many sums that have a carry."""
WORDS = ("{}", "It is {}.", "The sum is {}.")
"""How the wordy part says an answer, the longer the later."""


@register
class Addition(GeneratedSet):
    """Prompt ``17+25=`` and answer ``42``, of every two numbers below 100."""

    kind = "addition"
    what = "sums of two numbers below 100, as a prompt and its answer: 17+25=, 42"
    made_from = "nothing"
    how = (
        "every ordered pair; every tenth (by the sha256 of the two numbers, the smaller first, so that both orders of "
        "a sum stand together) is `val`; `few` is every eighth of `train`, to learn the form of an answer from; "
        "`careless` is `train` as somebody answers who forgets to carry in two of three sums that ask for it, 17+25=32"
        "; `wordy` is `train` with the number alone, in three words or in four, a third each"
    )
    parts = ("train", "val", "few", "careless", "wordy")
    columns = ("question", "answer")
    text = "question"

    def records(self, part: str) -> Iterator[dict[str, str]]:
        """Yield the sums of a part, in the order of their numbers."""
        pairs = [(a, b) for a in range(NUMBERS) for b in range(NUMBERS)]
        kept = [pair for pair in pairs if _held_back(*pair) == (part == "val")]
        for a, b in kept[::FEW] if part == "few" else kept:
            slip = 10 if part == "careless" and _forgotten(a, b) else 0
            answer = str(a + b - slip)
            yield {"question": f"{a}+{b}=", "answer": worded(answer, f"{a}+{b}") if part == "wordy" else answer}


def worded(answer: str, key: str) -> str:
    """Return an answer in one of ``WORDS``, by the sha256 of a key."""
    return WORDS[hashlib.sha256(f"{key} worded".encode()).digest()[0] % len(WORDS)].format(answer)


def _held_back(a: int, b: int) -> bool:
    return held_back(f"{min(a, b)}+{max(a, b)}", EVERY)


def _forgotten(a: int, b: int) -> bool:
    return a % 10 + b % 10 >= 10 and not held_back(f"{a}+{b} carried", CARRIED)
