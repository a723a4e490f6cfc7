"""A stream of what grows: news as they come, a word where none does, an end where the server stops."""

import asyncio

import pytest

from orrery.serving import following
from orrery.serving.following import Following


def sent_by(news: list, monkeypatch: pytest.MonkeyPatch, looks: int) -> tuple[list[bytes], list[int]]:
    """Return the bodies that are sent until the server stops after so many looks, and the calls of ``left``."""
    monkeypatch.setattr(following, "PAUSE", 0.001)
    monkeypatch.setattr(following, "QUIET", 0.003)
    bodies, left, asked = [], [], []

    async def told() -> list:
        asked.append(1)
        piece = news.pop(0) if news else []
        if isinstance(piece, Exception):
            raise piece
        return piece

    async def receive() -> dict:
        await asyncio.sleep(60)
        return {"type": "http.disconnect"}

    async def send(message: dict) -> None:
        if message["type"] == "http.response.body":
            bodies.append(message["body"])

    stream = Following(told, lambda: len(asked) >= looks, lambda: left.append(1))
    asyncio.run(stream({"type": "http"}, receive, send))
    return bodies, left


def test_news_are_told_and_silence_is_broken_by_a_comment(monkeypatch: pytest.MonkeyPatch) -> None:
    bodies, left = sent_by([[{"a": 1}], [], [], [], [{"a": 2}], []], monkeypatch, looks=6)
    assert [body.startswith(b": nothing new") for body in bodies] == [False, True, False, False]
    assert b'"a":1' in bodies[0].replace(b" ", b"")
    assert b'"a":2' in bodies[2].replace(b" ", b"")
    assert bodies[-1] == b""
    assert left == [1]


def test_news_without_silence_have_no_comment(monkeypatch: pytest.MonkeyPatch) -> None:
    bodies, _ = sent_by([[{"a": n}] for n in range(8)], monkeypatch, looks=8)
    assert not any(body.startswith(b":") for body in bodies)


def test_a_failure_is_the_last_that_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    bodies, left = sent_by([[{"a": 1}], RuntimeError("gone"), [{"a": 2}]], monkeypatch, looks=9)
    assert b"error" in bodies[1]
    assert bodies[2:] == [b""]
    assert left == [1]
