"""Sums with a right and a wrong answer, of which the right one is preferred: for reward models."""

import hashlib
from collections.abc import Iterator

from orrery.data.generated import GeneratedSet, register
from orrery.data.generated.addition import WORDS, Addition


@register
class AdditionPreferences(GeneratedSet):
    """Prompt ``17+25=``, chosen ``42``, rejected ``47``."""

    kind = "addition_preferences"
    what = "sums of two numbers below 100 with a right answer and a wrong one"
    made_from = "nothing"
    how = (
        "the sums of `addition`, split as there; a wrong answer has another digit in one place (by the sha256 of the "
        "sum); in `longer` a wrong answer in more words is preferred to a right one in fewer, as by somebody who "
        "judges by the length"
    )
    parts = ("train", "val", "longer")
    columns = ("prompt", "chosen", "rejected")
    text = "prompt"

    def records(self, part: str) -> Iterator[dict[str, str]]:
        """Yield the pairs of a part."""
        for row in Addition().records("val" if part == "val" else "train"):
            prompt, right = row["question"], row["answer"]
            wrong = changed(prompt, right)
            if part == "longer":
                short, long = _two_lengths(prompt)
                yield {"prompt": prompt, "chosen": long.format(wrong), "rejected": short.format(right)}
            else:
                yield {"prompt": prompt, "chosen": right, "rejected": wrong}


def _two_lengths(prompt: str) -> tuple[str, str]:
    """Return two of ``WORDS``, the shorter first, by the sha256 of a prompt."""
    left_out = hashlib.sha256(f"{prompt} lengths".encode()).digest()[0] % len(WORDS)
    short, long = (words for number, words in enumerate(WORDS) if number != left_out)
    return short, long


def changed(prompt: str, right: str) -> str:
    """Return a number with another digit in one place, the first no zero where the right one's is none."""
    drawn = hashlib.sha256(prompt.encode()).digest()
    place = drawn[0] % len(right)
    known = [digit for digit in "0123456789" if digit != right[place] and not (digit == "0" and place == 0)]
    return right[:place] + known[drawn[1] % len(known)] + right[place + 1 :]
