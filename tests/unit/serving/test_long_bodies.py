"""Long bodies hold the interpreter while they are parsed: one after another, with rests, and no number is looked at."""

import asyncio
import json
import time
from itertools import pairwise

import pytest

from orrery.serving import body
from orrery.serving.body import DEPTH, REST, LongBodies, parse
from orrery.serving.errors import ApiError


def test_long_bodies_are_parsed_one_after_another_with_rests_between(monkeypatch: pytest.MonkeyPatch) -> None:
    times: list[tuple[float, float]] = []

    def slow(given: bytes) -> bytes:
        began = time.monotonic()
        time.sleep(0.01)
        times.append((began, time.monotonic()))
        return given

    monkeypatch.setattr(body, "parse", slow)

    async def all_at_once() -> list[bytes]:
        bodies = LongBodies()
        return await asyncio.gather(*(bodies.parse(bytes([number])) for number in range(4)))

    assert asyncio.run(all_at_once()) == [bytes([number]) for number in range(4)]
    for (began, ended), (after, _) in pairwise(times):
        assert after - ended >= 0.9 * REST * (ended - began)


def test_a_body_that_is_refused_is_rested_from_too() -> None:
    async def two() -> list[object]:
        bodies = LongBodies()
        return await asyncio.gather(bodies.parse(b"{" * 5000), bodies.parse(b"[1]"), return_exceptions=True)

    refused, read = asyncio.run(two())
    assert isinstance(refused, ApiError)
    assert read == [1]


def test_lists_of_numbers_are_not_looked_through_for_their_depth(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[object] = []
    monkeypatch.setattr(body, "_check_depth", looked.append)
    given = {"edits": [{"at": "*", "vector": [0.5] * 1000}] * 20, "text": "a"}
    assert parse(json.dumps(given).encode()) == given
    assert not looked
    parse(json.dumps([[]] * DEPTH).encode())
    assert len(looked) == 1


@pytest.mark.parametrize("opens", ["[", '{"a":'])
@pytest.mark.parametrize("levels", [DEPTH - 1, DEPTH, DEPTH + 1, DEPTH + 2, 5000])
def test_the_bound_of_levels_is_the_one_it_was(levels: int, opens: str) -> None:
    text = opens * levels + "1" + ("]" if opens == "[" else "}") * levels
    if levels <= DEPTH + 1:  # a list counts where something is in it
        assert parse(text.encode()) is not None
    else:
        with pytest.raises(ApiError, match=f"nested more than {DEPTH} levels"):
            parse(text.encode())
