"""The numbers of command lines: both sides of every bound, and what a refusal says."""

import pytest
from cyclopts import Token

from orrery.cli import numbers
from orrery.errors import UsageError

MOST, SEED = 2**31 - 1, 2**63 - 1
TAKEN = {
    "COUNT": ["1", "+1", "007", str(MOST)],
    "COUNT_OR_NONE": ["0", "-0", str(MOST)],
    "SEED": ["0", str(SEED)],
    "PLACE": [str(-MOST), "-1", str(MOST)],
}
REFUSED = [
    ("COUNT", "0", f"not between 1 and {MOST:,}", "give 1 or more"),
    ("COUNT", str(MOST + 1), f"not between 1 and {MOST:,}", f"give {MOST:,} or less"),
    ("PORT", "99999", "not between 0 and 65,535", "give 65,535 or less"),
    ("COUNT_OR_NONE", "-1", f"not between 0 and {MOST:,}", "give 0 or more"),
    ("SEED", str(SEED + 1), f"not between 0 and {SEED:,}", f"give {SEED:,} or less"),
    ("PLACE", str(-MOST - 1), f"not between {-MOST:,} and {MOST:,}", f"give {-MOST:,} or more"),
    *(("COUNT", word, "no whole number", "give one from 1") for word in ("", "1.0", "1_000", "\u0661", "x", "1" * 41)),
]


@pytest.mark.parametrize("kind", TAKEN)
def test_numbers_up_to_the_bounds_are_taken(kind):
    for word in TAKEN[kind]:
        assert getattr(numbers, kind).converter(int, [Token(keyword="--n", value=word)]) == int(word)


@pytest.mark.parametrize(("kind", "word", "reason", "hint"), REFUSED)
def test_what_is_no_such_number_is_refused_by_its_flag(kind, word, reason, hint):
    with pytest.raises(UsageError) as refused:
        getattr(numbers, kind).converter(int, [Token(keyword="--n", value=word)])
    assert (refused.value.message, refused.value.hint) == (f"--n {word[:60]} is {reason}", hint)


@pytest.mark.parametrize(("kind", "wrong"), [("COUNT_EACH", "0"), ("SEED_EACH", "-1")])
def test_each_of_several_is_looked_at(kind, wrong):
    convert = getattr(numbers, kind).converter
    assert convert(tuple, [Token(keyword="--n", value=word) for word in ("3", "1")]) == (3, 1)
    with pytest.raises(UsageError, match=f"--n {wrong} is not between"):
        convert(tuple, [Token(keyword="--n", value=word) for word in ("3", wrong)])


@pytest.mark.parametrize("word", ["nan", "inf", "1e999", "", "0x1", "1_0", "--"])
def test_what_is_no_finite_number_is_refused(word):
    with pytest.raises(UsageError, match="is no finite number") as refused:
        numbers.ABOVE_ZERO.converter(float, [Token(keyword="--x", value=word)])
    assert refused.value.hint == "give a number above 0"


def test_bounds_of_numbers_are_said_as_they_are_held():
    def converted(kind, word):
        return getattr(numbers, kind).converter(float, [Token(keyword="--x", value=word)])

    assert converted("ABOVE_ZERO", "1e-9") == 1e-9
    assert converted("NOT_NEGATIVE", "0") == 0.0
    assert converted("NUMBER", "-3.5") == -3.5
    for kind, word, hint in (("ABOVE_ZERO", "0", "above 0"), ("NOT_NEGATIVE", "-1", "from 0")):
        with pytest.raises(UsageError, match=f"--x {word} is out of range") as refused:
            converted(kind, word)
        assert refused.value.hint == f"give a number {hint}"
