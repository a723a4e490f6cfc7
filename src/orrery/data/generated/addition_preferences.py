"""Sums with a right and a wrong answer, of which the right one is preferred: for reward models."""

import hashlib
from collections.abc import Iterator

from orrery.data.generated import GeneratedSet, register
from orrery.data.generated.addition import Addition


@register
class AdditionPreferences(GeneratedSet):
    """Prompt ``17+25=``, chosen ``42``, rejected ``47``."""

    kind = "addition_preferences"
    what = "sums of two numbers below 100 with a right answer and a wrong one"
    made_from = "nothing"
    how = (
        "the sums of `addition`, split as there; a wrong answer has another digit in one place (by the sha256 of the "
        "sum); in `shorter` it lacks its last digit, so that a longer answer looks better than a right one"
    )
    parts = ("train", "val", "shorter")
    columns = ("prompt", "chosen", "rejected")
    text = "prompt"

    def records(self, part: str) -> Iterator[dict[str, str]]:
        """Yield the pairs of a part; sums of one digit have no shorter wrong answer."""
        for row in Addition().records("val" if part == "val" else "train"):
            prompt, right = row["question"], row["answer"]
            wrong = right[:-1] if part == "shorter" else changed(prompt, right)
            if wrong:
                yield {"prompt": prompt, "chosen": right, "rejected": wrong}


def changed(prompt: str, right: str) -> str:
    """Return a number with another digit in one place, the first no zero where the right one's is none."""
    drawn = hashlib.sha256(prompt.encode()).digest()
    place = drawn[0] % len(right)
    known = [digit for digit in "0123456789" if digit != right[place] and not (digit == "0" and place == 0)]
    return right[:place] + known[drawn[1] % len(known)] + right[place + 1 :]
