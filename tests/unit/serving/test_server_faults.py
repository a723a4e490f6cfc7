"""A step that fails, and clients that leave while slow tokens are written: what the others and the engine see."""

import threading
import time

import pytest

from http_wire import Wire
from server_load import Stream, ask, until
from serving_toy import chat_model, running

SLOW = 0.05
"""Seconds a step: longer than any way through the server, on a busy machine too."""


class Spoilt:
    """A model whose steps take time, or fail where a row holds a token."""

    def __init__(self, model, slow=0.0, fails_on=None):
        self._model, self._slow, self._fails_on = model, slow, fails_on
        self.steps = 0

    def __getattr__(self, name):
        return getattr(self._model, name)

    def step(self, tokens, session, lengths=None, **more):
        time.sleep(self._slow)
        self.steps += 1
        self._check(tokens)
        return self._model.step(tokens, session, lengths, **more)

    def start(self, source, *given, **more):
        self._check(source)
        return self._model.start(source, *given, **more)

    def _check(self, tokens):
        if self._fails_on is not None and (tokens == self._fails_on).any():
            raise RuntimeError("a secret of the inside")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return chat_model(tmp_path_factory.mktemp("models") / "toy", context=512)


def port(server):
    return int(server.url.rsplit(":", 1)[1])


def body(number, tokens=400, **more):
    return {"model": "toy", "prompt": [5 + number, 9], "max_tokens": tokens, "temperature": 1, "seed": number, **more}


def test_at_most_two_tokens_are_written_after_a_client_has_left(folder, monkeypatch):
    with running(folder) as server:
        slow = Spoilt(server.served.engine._model, SLOW)
        monkeypatch.setattr(server.served.engine, "_model", slow)
        for number in range(3):
            stream = Stream(port(server), body(number))
            stream.texts(2 + number)
            stream.leave()
            left = slow.steps
            assert until(lambda: server.served.engine.rows == 0)
            assert slow.steps - left <= 2


def test_a_client_that_leaves_before_its_prompt_is_read_costs_no_step(folder, monkeypatch):
    with running(folder, most_rows=1) as server:
        slow = Spoilt(server.served.engine._model, SLOW)
        monkeypatch.setattr(server.served.engine, "_model", slow)
        first = Stream(port(server), body(0, 12))
        first.texts(1)
        wires = [Wire(port(server)) for _ in range(4)]
        for wire in wires:
            threading.Thread(target=wire.ask, args=("POST", "/v1/completions", body(1))).start()
        assert until(lambda: server.served.gauges()["orrery_requests_inside"] == 5)
        for wire in wires:
            wire.socket.shutdown(2)
            wire.close()
        assert until(lambda: server.served.gauges()["orrery_requests_inside"] == 1)
        assert list(first.events())[-1] == "[DONE]"
        first.leave()
        assert slow.steps <= 12


def test_a_step_that_fails_ends_its_own_request_and_no_other(folder, monkeypatch):
    with running(folder) as server:
        expected = {number: ask(port(server), body(number, 20)).text for number in range(6)}
        written = {number: list(_ids(server, number)) for number in expected}
        others = {id for number, own in written.items() if number != 3 for id in own} | set(range(12))
        fatal = next(id for id in written[3][:-1] if id not in others)
        monkeypatch.setattr(server.served.engine, "_model", Spoilt(server.served.engine._model, fails_on=fatal))
        replies = {}
        threads = [
            threading.Thread(target=lambda n=number: replies.update({n: _reply(server, body(n, 20))}))
            for number in expected
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert {number for number, reply in replies.items() if reply.status != 200} == {3}
        assert replies[3].status == 500
        assert replies[3].error["type"] == "server_error"
        assert "secret" not in str(replies[3].body)
        assert not replies[3].closes
        for number in set(expected) - {3}:
            assert replies[number].json["choices"][0]["text"] == expected[number]
        with Wire(port(server)) as wire:
            assert wire.ask("GET", "/health").status == 200


def test_a_step_that_fails_ends_a_stream_with_an_error(folder, monkeypatch):
    with running(folder) as server:
        fatal = next(id for id in _ids(server, 0)[3:] if id > 12)
        monkeypatch.setattr(server.served.engine, "_model", Spoilt(server.served.engine._model, fails_on=fatal))
        with Stream(port(server), body(0, 20)) as stream:
            events = list(stream.events())
        told = next(event for event in events if isinstance(event, dict) and "error" in event)
        assert told["error"]["type"] == "server_error"
        assert "secret" not in str(events)


def _reply(server, content):
    with Wire(port(server)) as wire:
        return wire.ask("POST", "/v1/completions", content)


def _ids(server, number):
    """Return the ids of an answer."""
    submit, seen = server.served.worker.submit, []

    def listen(request, ended):
        answering = submit(request, ended)
        seen.append(answering)
        return answering

    server.served.worker.submit = listen
    try:
        assert ask(port(server), body(number, 20)).status == 200
    finally:
        server.served.worker.submit = submit
    return list(seen[0].written)


class Panic(BaseException):
    """As a library in Rust raises it: no `Exception`."""


def panicking(*given, **more):
    raise Panic("a secret of the inside")


PANICS = {
    "/v1/completions": ("orrery.serving.requests.prompt", {"prompt": "a"}),
    "/v1/chat/completions": (
        "orrery.text.chat.render.ChatTemplate.render", {"messages": [{"role": "user", "content": "a"}]}),
    "/inspect/traces": ("orrery.page.passes.Passes.open", {"text": "a"}),
    "/inspect/cost": ("orrery.serving.routes.inspect.memory_of", {"text": "a"}),
    "/tokenize": ("orrery.text.tokenizer.Tokenizer.frame", {"prompt": "a"}),
}  # fmt: skip


@pytest.mark.parametrize("path", PANICS)
def test_what_is_no_exception_is_answered_as_every_other_error(path, folder, monkeypatch):
    """A panic came back as plain text, and one of the engine's thread left every client waiting."""
    where, asked = PANICS[path]
    with running(folder) as server, Wire(port(server)) as wire:
        with monkeypatch.context() as patch:
            patch.setattr(where, panicking)
            reply = wire.ask("POST", path, asked)
        assert reply.status == 500
        assert reply.error["type"] == "server_error"
        assert "secret" not in reply.error["message"]
        assert not reply.closes
        assert ask(port(server), body(0, 2)).status == 200


def test_an_engine_that_panics_is_told_and_takes_no_more(folder, monkeypatch):
    with running(folder) as server:
        monkeypatch.setattr(server.served.engine, "advance", panicking)
        assert ask(port(server), body(0, 4), timeout=20).status == 500
        assert isinstance(server.served.failed, Panic)
        assert ask(port(server), body(1, 4), timeout=20).status == 503
