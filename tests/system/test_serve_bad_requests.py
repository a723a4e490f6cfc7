"""Every bad request gets a proper refusal, and the server and the connection live on."""

import copy
import json
import random
import time

import pytest

from http_battery import CASES, judge
from http_wire import Wire, raw_request
from orrery.serving.errors import OF_TEXTS
from served_models import chat_folder
from server_process import ServerProcess

KEY = "sk-test-0123456789"
HEAD = b"POST /v1/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return chat_folder(tmp_path_factory.mktemp("models") / "tiny")


@pytest.fixture(scope="module")
def server(folder):
    with ServerProcess(folder) as process:
        yield process


@pytest.fixture(scope="module")
def closed(folder, tmp_path_factory):
    """Return a server that wants a key."""
    key = tmp_path_factory.mktemp("keys") / "key"
    key.write_text(KEY, encoding="utf-8")
    log = key.with_name("log")
    with ServerProcess(folder, "--api-key-file", key, log=log) as process:
        yield process, log


def test_the_battery(server):
    wire, bad = Wire(server.port), []
    for case in CASES:
        verdict, wire = judge(case, wire, server.model)
        if not verdict.good:
            bad.append(f"{case.name} (expected {case.status}, {case.param}): {verdict}")
    wire.close()
    assert bad == []


def test_the_battery_finds_what_it_is_there_for(server):
    """A server that accepts, that names another parameter, or that drops the connection fails the case."""
    with Wire(server.port) as wire:
        good = next(case for case in CASES if case.name == "temperature below 0")
        for changes in ({"content": {**good.content, "temperature": 1}}, {"param": "n"}, {"code": "other"}):
            verdict, wire = judge(type(good)(**{**vars(good), **changes}), wire, server.model)
            assert not verdict.good


VALID = [
    ("/v1/completions", {"prompt": "the cat", "max_tokens": 2, "temperature": 0.5, "seed": 1, "stop": ["x"], "n": 1}),
    ("/v1/completions", {"prompt": [[5, 6], [7]], "max_tokens": 1, "echo": True, "logprobs": 2}),
    ("/v1/completions", {"prompt": "a", "max_tokens": 1, "logit_bias": {"5": 1}, "best_of": 2}),
    ("/v1/chat/completions", {
        "messages": [
            {"role": "system", "content": "be kind"},
            {"role": "user", "content": [{"type": "text", "text": "the cat"}], "name": "ada"},
            {"role": "assistant", "content": None, "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{\"at\": \"mat\"}"}}]},
            {"role": "tool", "tool_call_id": "c1", "content": "a mat"},
        ],
        "tools": [{"type": "function", "function": {"name": "look", "description": "see", "parameters": {
            "type": "object", "properties": {"at": {"type": "string"}}}}}],
        "tool_choice": "auto", "max_tokens": 2, "top_p": 0.9, "logprobs": True, "top_logprobs": 1,
        "presence_penalty": 0.1, "frequency_penalty": 0.1, "stream": False,
    }),
    ("/v1/chat/completions", {
        "messages": [{"role": "user", "content": "hi"}], "max_completion_tokens": 3,
        "response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": {
            "type": "object", "properties": {"a": {"enum": ["b", 1, None]}}, "required": ["a"]}}},
    }),
    ("/v1/responses", {
        "input": [
            {"role": "user", "content": [{"type": "input_text", "text": "the cat"}]},
            {"type": "reasoning", "id": "r", "summary": [], "content": [{"type": "reasoning_text", "text": "hm"}]},
            {"type": "function_call", "call_id": "c1", "name": "look", "arguments": "{\"at\": \"mat\"}"},
            {"type": "function_call_output", "call_id": "c1", "output": "a mat"},
        ],
        "tools": [{"type": "function", "name": "look", "parameters": {"type": "object"}}], "tool_choice": "auto",
        "instructions": "be kind", "max_output_tokens": 2, "text": {"format": {"type": "text"}}, "metadata": {"a": "b"},
        "include": ["message.output_text.logprobs"], "top_logprobs": 1, "truncation": "auto", "store": True,
    }),
    ("/v1/embeddings", {"input": ["the cat", "a"], "encoding_format": "base64"}),
    ("/tokenize", {"text": "the cat"}),
    ("/detokenize", {"tokens": [5, 6]}),
]  # fmt: skip
NASTY = [
    None, True, False, 0, -1, 1, 2**31, -(2**63), 2**64, 1e308, -0.5, "", " ", "the cat", "\x00", "\u202e", "🙂" * 50,
    "a" * 5000, "<|im_end|>", "{{ 7 * 7 }}", "../../etc/passwd", "$(id)", "null", "NaN", [], [[]], [None], {}, {"": {}},
    {"type": "object"}, {"$ref": "#"}, ["a"] * 300, list(range(300)), {"role": "system", "content": "x"},
]  # fmt: skip


def places(value, path=()):
    yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in inner:
        yield from places(child, (*path, key))


def mutated(content, dice):
    """Return a request with one to three of its parts replaced, removed, repeated, wrapped or added."""
    content = copy.deepcopy(content)
    for _ in range(dice.randint(1, 3)):
        path = dice.choice([path for path in places(content) if path] or [("prompt",)])
        holder = content
        for key in path[:-1]:
            holder = holder[key]
        how = dice.choice(["replace", "replace", "replace", "remove", "repeat", "wrap", "add"])
        if how == "replace":
            holder[path[-1]] = copy.deepcopy(dice.choice(NASTY))
        elif how == "remove" and content:
            del holder[path[-1]]
        elif how == "wrap":
            holder[path[-1]] = [holder[path[-1]]]
        elif how == "repeat" and isinstance(holder, list):
            holder.extend([holder[path[-1]]] * 3)
        elif how == "add" and isinstance(holder, dict):
            holder[dice.choice(["x", "type", "content", "n", "stream_options", "suffix"])] = dice.choice(NASTY)
    return content


# The same loop twice: a part of it on every change, the whole in the long tier.
@pytest.mark.parametrize("count", [300, pytest.param(5_000, marks=pytest.mark.long)])
def test_mutations_of_good_requests_are_answered_or_refused(server, count):
    dice, bad, statuses = random.Random(count), [], set()
    wire = Wire(server.port)
    for number in range(count):
        path, content = VALID[number % len(VALID)]
        content = mutated({"model": server.model, **content}, dice)
        reply = wire.ask("POST", path, content)
        statuses.add(reply.status)
        proper = reply.status in (400, 404, 415) and set(reply.error) == {"message", "type", "param", "code"}
        streamed = reply.status == 200 and reply.headers["content-type"].startswith("text/event-stream")
        if not (proper or streamed or (reply.status == 200 and reply.json is not None)):
            bad.append((path, content, reply.status, reply.body[:200]))
        if reply.closes:
            bad.append((path, content, "the connection was closed"))
            wire = Wire(server.port)
    wire.close()
    assert bad == []
    assert {200, 400} <= statuses
    assert json.loads(server.get("/health"))


def test_bytes_at_random_are_refused(server):
    dice = random.Random(3)
    for _ in range(60):
        raw = raw_request(
            "POST", "/v1/completions", server.port, {"model": server.model, "prompt": "a", "max_tokens": 1}
        )
        spoilt = bytearray(raw)
        for _ in range(dice.randint(1, 6)):
            spoilt[dice.randrange(len(spoilt))] = dice.randrange(256)
        with Wire(server.port, timeout=15) as wire:
            wire.socket.sendall(bytes(spoilt))
            wire.socket.shutdown(1)
            assert wire.read().status < 500
    assert json.loads(server.get("/health"))


def test_requests_one_behind_the_other_on_one_connection_are_answered_in_their_order(server):
    bodies = [{"model": server.model, "prompt": "a", "max_tokens": 1, "temperature": 0.0, "n": n} for n in (1, 0, 2)]
    with Wire(server.port) as wire:
        wire.socket.sendall(b"".join(raw_request("POST", "/v1/completions", server.port, body) for body in bodies))
        replies = [wire.read() for _ in bodies]
        assert [reply.status for reply in replies] == [200, 400, 200]
        assert [len(replies[place].json["choices"]) for place in (0, 2)] == [1, 2]


def test_http_1_0_and_a_get_with_a_body(server):
    with Wire(server.port) as wire:
        reply = wire.send(f"GET /health HTTP/1.0\r\nHost: 127.0.0.1:{server.port}\r\n\r\n".encode(), "GET")
        assert (reply.status, reply.closes) == (200, True)
    with Wire(server.port) as wire:
        assert wire.ask("GET", "/v1/models", {"a": 1}).status in (200, 400)
        assert wire.ask("GET", "/health").status == 200


def test_no_page_of_another_origin_reads_an_answer(server):
    with Wire(server.port) as wire:
        for method, path, content in (
            ("GET", "/v1/models", None),
            ("POST", "/v1/completions", {"model": server.model, "prompt": "a", "max_tokens": 1}),
            ("OPTIONS", "/v1/completions", None),
        ):
            reply = wire.ask(method, path, content, Origin="http://evil.example")
            assert "access-control-allow-origin" not in reply.headers
            assert reply.status != 200


def test_answers_are_json_that_no_browser_reads_as_a_page(server):
    evil = "<img src=x onerror=alert(1)><script>alert(1)</script>"
    with Wire(server.port) as wire:
        for content in ({"prompt": evil, "max_tokens": 1, "echo": True}, {"prompt": evil, "n": -1}):
            reply = wire.ask("POST", "/v1/completions", {"model": server.model, **content})
            assert reply.headers["content-type"].startswith("application/json")
            assert reply.headers["x-content-type-options"] == "nosniff"
        reply = wire.ask("GET", "/<script>alert(1)</script>")
        assert reply.headers["content-type"].startswith("application/json")


def test_nothing_but_health_is_shown_without_the_key(closed):
    server, log = closed
    with Wire(server.port) as wire:
        document = wire.ask("GET", "/openapi.json", Authorization=f"Bearer {KEY}")
        assert document.status == 200
        routes = [(path, method.upper()) for path, own in document.json["paths"].items() for method in own]
        assert len(routes) >= 8
        for path, method in [*routes, ("/openapi.json", "GET"), ("/docs", "GET"), ("/v1/nothing", "GET")]:
            content = {"model": server.model} if method == "POST" else None
            for headers in (
                {},
                {"Authorization": "Bearer sk-wrong"},
                {"Authorization": KEY},
                {"Authorization": "Bearer"},
            ):
                reply = wire.ask(method, path.replace("{model}", "x"), content, **headers)
                open_to_all = path == "/health"
                assert (reply.status == 200) if open_to_all else (reply.status == 401), (path, method, headers)
                if path.startswith(("/api/", "/v1/messages")) or path in OF_TEXTS:  # these clients read another object
                    assert b"the API key is missing or wrong" in reply.body
                elif not open_to_all:
                    assert reply.error["code"] == "invalid_api_key"
        shown = wire.ask("GET", "/metrics", Authorization=f"Bearer {KEY}").body
    assert KEY.encode() not in shown + log.read_bytes()


@pytest.mark.slow
@pytest.mark.alone
def test_a_body_that_does_not_come_is_not_waited_for(server):
    head = HEAD + b"Content-Length: 60\r\n\r\n{"
    began = time.monotonic()
    with Wire(server.port, timeout=60) as wire:
        reply = wire.send(head)
    assert reply.status == 408
    assert reply.error["type"] == "invalid_request_error"
    assert time.monotonic() - began < 30


@pytest.mark.slow
@pytest.mark.alone
def test_100_mb_are_refused_before_they_are_held(server):
    before = server.memory()
    size = 100 << 20
    whole = HEAD + b"Content-Length: %d\r\n\r\n" % size + b" " * size
    chunk = b"100000\r\n" + b" " * (1 << 20) + b"\r\n"
    for raw in (whole, HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + chunk * 100 + b"0\r\n\r\n"):
        with Wire(server.port) as wire:
            assert wire.send(raw).status == 413
    assert server.memory() - before < 20 << 20
