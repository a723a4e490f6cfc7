"""Texts in batches: every text once, like lengths together, answers in the order of the texts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orrery.errors import UsageError
from orrery.generation.batched import in_batches


@given(st.lists(st.integers(1, 9)), st.integers(1, 7))
def test_every_text_is_answered_in_its_place(lengths: list[int], size: int) -> None:
    batches: list[list[int]] = []
    told: list[int] = []

    def answer(numbers: list[int]) -> list[str]:
        batches.append(numbers)
        return [f"answer to {number}" for number in numbers]

    answers = in_batches(lengths, size, answer, told.append)
    assert answers == [f"answer to {number}" for number in range(len(lengths))]
    asked = [number for batch in batches for number in batch]
    assert sorted(asked) == list(range(len(lengths)))
    assert [lengths[number] for number in asked] == sorted(lengths, reverse=True)
    assert all(len(batch) == size for batch in batches[:-1])
    assert told == [min(len(lengths), size * (n + 1)) for n in range(len(batches))]


def test_an_answer_too_few_is_an_error() -> None:
    with pytest.raises(ValueError, match="zip"):
        in_batches([1, 2], 2, lambda numbers: ["one"])


@pytest.mark.parametrize("size", [0, -1])
def test_a_batch_holds_at_least_one_text(size: int) -> None:
    with pytest.raises(UsageError, match=f"batch_size = {size} is not possible") as error:
        in_batches([1], size, lambda numbers: [])
    assert "at least 1" in error.value.hint
