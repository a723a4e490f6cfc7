"""What the server does with those who do not ask as they should: raw sockets against a server of this process."""

import contextlib
import json
import logging
import socket
import time
from types import SimpleNamespace

import pytest

from chat_toy import chat_tokenizer
from orrery.errors import MachineError
from orrery.exchange.saving.save import save_model
from orrery.serving import background
from orrery.serving.errors import MESSAGES, OF_TEXTS
from orrery.serving.run import server_of
from serving_toy import chat_model, post, running
from tiny_models import CONFIGS, tiny

KEY = "correct-horse-battery"
COMPLETION = json.dumps({"prompt": "a", "max_tokens": 1}).encode()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return chat_model(tmp_path_factory.mktemp("toy") / "model")


@pytest.fixture(scope="module")
def toy(folder):
    safety = {"read_timeout": 1.0, "max_body": 64 << 10, "max_headers": 16 << 10, "connections": 20}
    with running(folder, safety=safety) as server:
        yield server


@pytest.fixture(scope="module")
def guarded(folder):
    with running(folder, api_key=KEY, cors_origin="https://chat.example") as server:
        yield server


def connected(toy, timeout=30):
    host, _, port = toy.url.removeprefix("http://").partition(":")
    return socket.create_connection((host, int(port)), timeout=timeout)


def head(path="/health", method="GET", **headers):
    given = {"Host": "127.0.0.1", **{name.replace("_", "-"): value for name, value in headers.items()}}
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in given.items())]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def completion(body=COMPLETION, **headers):
    kind = {"Content-Type": "application/json", "Content-Length": len(body)}
    return head("/v1/completions", "POST", **{**kind, **headers}) + body


def answer(link):
    """Return the status, the headers and the body of one response."""
    with link.makefile("rb") as stream:
        status = int(stream.readline().split()[1])
        headers = {}
        while line := stream.readline().strip():
            name, _, value = line.decode().partition(":")
            headers[name.lower()] = value.strip()
        size = headers.get("content-length")
        body = b"" if status == 204 else stream.read(int(size)) if size is not None else stream.read()
    return status, headers, body


def one(toy, data):
    with connected(toy) as link:
        link.sendall(data)
        return answer(link)


def error_of(body):
    fault = json.loads(body)["error"]
    assert set(fault) == {"message", "type", "param", "code"}
    return fault


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "LOCALHOST:80", "127.0.0.1:8000", "[::1]:9", "127.8.8.8"])
def test_this_machine_by_any_of_its_names_is_answered(toy, host):
    assert one(toy, head(Host=host))[0] == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8000", "127.0.0.1.evil.example", "localhost.", "10.0.0.1"]
)
def test_a_name_that_a_page_could_rebind_is_refused(toy, host):
    status, _, body = one(toy, head(Host=host))
    assert (status, error_of(body)["code"]) == (403, "invalid_host")


@pytest.mark.parametrize("host", ["", "a:b", "[::1", "a:1:2", "[::1]x"])
def test_a_host_that_is_none_is_refused(toy, host):
    assert one(toy, head(Host=host))[0] == 400


def test_a_name_that_is_allowed_is_answered(folder):
    with running(folder, allowed_hosts=["models.lan"]) as toy:
        assert one(toy, head(Host="models.lan:8000"))[0] == 200
        assert one(toy, head(Host="other.lan"))[0] == 403


def test_pages_of_other_origins_may_not_call_and_get_no_leave(toy):
    status, headers, body = one(toy, completion(Origin="https://evil.example"))
    assert (status, error_of(body)["code"]) == (403, "invalid_origin")
    preflight = {"Origin": "https://evil.example", "Access_Control_Request_Method": "POST"}
    for method in ("OPTIONS", "GET"):
        status, headers, _ = one(toy, head("/v1/completions", method, **preflight))
        assert status == 403
        assert not [name for name in headers if name.startswith("access-control")]
    assert one(toy, head(Host="127.0.0.1:80", Origin="http://127.0.0.1:80"))[0] == 200
    assert one(toy, head(Origin="null"))[0] == 403


SITES = ["cross-site", "same-site", "Cross-Site", "", "anything"]
READ = ["/v1/models", "/inspect/session", "/inspect/traces/a/attention", "/inspect/model/places", "/metrics", "/health"]


@pytest.mark.parametrize("site", SITES)
@pytest.mark.parametrize("mode", ["no-cors", "cors", "websocket", None])
def test_what_a_browser_fetches_for_another_site_is_refused_without_an_origin_too(toy, site, mode):
    """An image, a script or a style sheet of a page is asked for with no Origin; Sec-Fetch-Site says whose it is."""
    told = {"Sec-Fetch-Site": site, **({} if mode is None else {"Sec-Fetch-Mode": mode})}
    with connected(toy) as link:
        for data in (*(head(path, **told) for path in READ), completion(**told)):
            link.sendall(data)
            status, _, body = answer(link)
            assert (status, error_of(body)["code"]) == (403, "invalid_origin")


@pytest.mark.parametrize("site", ["same-origin", "none", "NONE", None])
def test_the_servers_own_pages_and_programs_are_answered(toy, site):
    told = {} if site is None else {"Sec-Fetch-Site": site, "Sec-Fetch-Mode": "cors"}
    with connected(toy) as link:
        for path in ("/health", "/v1/models", "/inspect/session"):
            link.sendall(head(path, **told))
            assert answer(link)[0] == 200


def test_a_link_of_another_site_opens_the_page_and_nothing_else(toy):
    link = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
    assert one(toy, head("/", **link))[0] == 200
    assert one(toy, head("/inspect/session", **link))[0] == 403


@pytest.mark.parametrize("path", [*READ, "/", "/static/style.css", "/nothing"])
def test_no_answer_may_be_put_into_a_page_of_another_origin(toy, path):
    assert one(toy, head(path))[1]["cross-origin-resource-policy"] == "same-origin"


def test_the_page_that_is_named_may_read_across_sites(guarded):
    told = {"Origin": "https://chat.example", "Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "cors"}
    assert one(guarded, head("/v1/models", Authorization=f"Bearer {KEY}", **told))[0] == 200
    del told["Origin"]
    assert one(guarded, head("/v1/models", Authorization=f"Bearer {KEY}", **told))[0] == 403


def test_the_one_page_that_is_named_may_call(guarded):
    sent = "authorization, content-type, x-api-key, anthropic-version"
    asked = {"Origin": "https://chat.example", "Access_Control_Request_Method": "POST"}
    asked["Access_Control_Request_Headers"] = sent
    status, headers, _ = one(guarded, head("/v1/completions", "OPTIONS", **asked))
    assert status == 204
    assert headers["access-control-allow-origin"] == "https://chat.example"
    assert headers["access-control-allow-headers"] == sent
    status, headers, _ = one(guarded, head(Origin="https://chat.example"))
    assert (status, headers["access-control-allow-origin"]) == (200, "https://chat.example")
    assert one(guarded, head(Origin="https://evil.example"))[0] == 403


def test_a_key_may_come_as_anthropics_clients_send_it(guarded):
    for headers, status in (({"X_API_Key": KEY}, 200), ({"X_API_Key": "x"}, 401), ({"X_API_Key": ""}, 401)):
        assert one(guarded, head("/v1/models", **headers))[0] == status
    wrong = {"Authorization": "Bearer wrong", "X_API_Key": KEY}
    assert one(guarded, head("/v1/models", **wrong))[0] == 401


def test_every_route_but_health_needs_the_key(guarded):
    paths = guarded.app.openapi()["paths"]
    assert "/v1/completions" in paths
    for path in [*paths, "/openapi.json", "/nothing", "/"]:
        for method in ("GET", "POST") if path != "/" else ("POST", "PUT"):
            status, headers, body = one(guarded, head(path.replace("{name}", "toy"), method, Content_Length=0))
            if path == "/health":
                assert status in (200, 405)
                continue
            assert status == 401
            if path.startswith("/api/") or path in OF_TEXTS:  # these clients are told a sentence
                assert "key" in json.loads(body)["error"]
            elif path.startswith(MESSAGES):
                assert json.loads(body)["error"]["type"] == "authentication_error"
            else:
                assert error_of(body)["code"] == "invalid_api_key"
            assert headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize(
    "given",
    [f"Bearer {KEY[:-1]}", f"Bearer {KEY}x", f"Basic {KEY}", KEY, "Bearer", "Bearer \xe9", f"Bearer {KEY} {KEY}"],
)
def test_a_wrong_key_is_none(guarded, given):
    assert one(guarded, head("/v1/models", Authorization=given).decode().encode("latin-1"))[0] == 401


def test_the_right_key_opens_and_is_told_nowhere(guarded, caplog):
    with caplog.at_level(logging.DEBUG):
        for scheme in ("Bearer", "bearer"):
            assert one(guarded, completion(Authorization=f"{scheme} {KEY}"))[0] == 200
        told = one(guarded, head("/metrics", Authorization=f"Bearer {KEY}"))[2].decode()
    assert KEY not in told + caplog.text + repr(guarded.served.settings)
    twice = completion().replace(b"Host:", f"Authorization: Bearer {KEY}\r\nAuthorization: Bearer x\r\nHost:".encode())
    assert one(guarded, twice)[0] == 401


def test_a_body_that_is_declared_too_large_is_refused_before_it_is_sent(toy):
    with connected(toy) as link:
        link.sendall(completion(Content_Length=100 << 20, Expect="100-continue")[: -len(COMPLETION)])
        status, _, body = answer(link)
    assert (status, error_of(body)["code"]) == (413, "request_too_large")


def test_a_body_without_a_length_is_counted(toy):
    chunk = b"4000\r\n" + b" " * 0x4000 + b"\r\n"
    start = head("/v1/completions", "POST", Content_Type="application/json", Transfer_Encoding="chunked")
    with connected(toy) as link:
        link.sendall(start + chunk * 6)
        assert answer(link)[0] == 413
    with connected(toy) as link:
        link.sendall(start + chunk * 2 + b"%x\r\n" % len(COMPLETION) + COMPLETION + b"\r\n0\r\n\r\n")
        assert answer(link)[0] == 200


def test_a_body_that_does_not_come_is_not_waited_for(toy):
    with connected(toy) as link:
        link.sendall(completion()[:-5])
        began = time.monotonic()
        status, headers, body = answer(link)
        assert (status, error_of(body)["code"]) == (408, "request_timeout")
        assert headers["connection"] == "close"
        assert time.monotonic() - began < 20
        assert link.recv(1) == b""


@pytest.mark.parametrize("begun", [b"", b"GET /health HT", head()[:-2]])
def test_headers_that_do_not_come_are_not_waited_for(toy, begun):
    with connected(toy) as link:
        link.sendall(begun)
        with contextlib.suppress(ConnectionResetError):
            assert link.recv(1) == b""


def test_a_connection_that_waits_for_its_next_request_is_kept_for_a_while(toy):
    with connected(toy) as link:
        for _ in range(2):
            link.sendall(head())
            assert answer(link)[0] == 200
            time.sleep(1.3)
        link.sendall(head())
        assert answer(link)[0] == 200


POST = b"POST /tokenize HTTP/1.1\r\nHost: localhost\r\n"


@pytest.mark.parametrize(
    "data",
    [
        b"\x00\x01\x02\r\n\r\n",
        b"GET\r\n\r\n",
        b"GET /health HTTP/9.9\r\nHost: localhost\r\n\r\n",
        b"GET /health HTTP/1.1\r\n\r\n",
        b"GET /health HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 20_000 + b"\r\n\r\n",
        POST + b"Content-Length: -1\r\n\r\n",
        POST + b"Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
        POST + b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        POST + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x00" * 50 + b"\r\n\r\n",
    ],
)
def test_what_is_no_request_is_told_so(toy, data):
    status, _, body = one(toy, data)
    assert status in (400, 431, 501), status
    if body:
        error_of(body)


def test_old_and_pipelined_requests_are_answered(toy):
    assert one(toy, b"GET /health HTTP/1.0\r\n\r\n")[0] == 200
    with connected(toy) as link:
        link.sendall(head() * 3)
        with link.makefile("rb") as stream:
            content = b""
            while content.count(b"HTTP/1.1 200 OK") < 3:
                content += stream.read1()


def test_a_connection_survives_whatever_is_refused(toy):
    with connected(toy) as link:
        for data, wanted in (
            (completion(b"{"), 400),
            (head("/nothing", "POST", Content_Length=3) + b"abc", 404),
            (head("/v1/completions"), 405),
            (head("/v1/completions", "DELETE"), 405),
            (completion(Content_Type="text/plain"), 415),
            (completion(json.dumps({"prompt": "a" * 3000}).encode()), 400),
            (completion(b" " * 70_000), 413),
            (head(Host="evil.example"), 403),
            (head("/health", Content_Length=2) + b"{}", 200),
            (completion(), 200),
        ):
            link.sendall(data)
            status, headers, body = answer(link)
            assert status == wanted, body
            if status >= 400:
                error_of(body)
            assert headers["x-request-id"].startswith("req-")
            assert "access-control-allow-origin" not in headers


def test_a_failure_of_ours_is_told_as_such_and_the_connection_survives(toy, monkeypatch, caplog):
    monkeypatch.setattr("orrery.serving.requests.sampler_for", lambda *_: 1 / 0)
    with connected(toy) as link:
        link.sendall(completion())
        status, _, body = answer(link)
        assert (status, error_of(body)["type"]) == (500, "server_error")
        assert "division" not in body.decode()
        assert "ZeroDivisionError" in caplog.text
        monkeypatch.undo()
        link.sendall(completion())
        assert answer(link)[0] == 200


def test_more_connections_than_may_be_are_closed(toy):
    links = [connected(toy) for _ in range(20)]
    try:
        time.sleep(0.1)
        with connected(toy) as link, contextlib.suppress(ConnectionResetError, BrokenPipeError):
            link.sendall(head())
            assert link.recv(1) == b""
    finally:
        for link in links:
            link.close()
    time.sleep(0.2)
    assert one(toy, head())[0] == 200


def test_a_description_is_there_and_names_what_is_sent(toy):
    description = json.loads(one(toy, head("/openapi.json"))[2])
    fields = description["components"]["schemas"]["CompletionRequest"]["properties"]
    assert fields["n"]["anyOf"][0]["maximum"] == 128
    operation = description["paths"]["/v1/chat/completions"]["post"]
    assert "422" not in operation["responses"]
    assert operation["responses"]["429"]["content"]["application/json"]["schema"]["$ref"].endswith("/FailureBody")
    assert "HTTPValidationError" not in json.dumps(description)
    failures = {"400", "401", "403", "404", "405", "408", "413", "429", "431", "500", "503"}
    told = operation["responses"]
    assert failures <= {*told, "431"}
    assert all(told[status]["description"].endswith(".") for status in failures & set(told))


def test_tokens_and_models_are_told(toy):
    text = "the cat <|im_end|>"
    ids = post(toy, {"prompt": text, "return_token_strs": True}, "/tokenize")[1]
    assert ids["tokens"] == toy.served.lm.tokenizer.encode(text)
    assert "".join(ids["token_strs"]) == text
    assert post(toy, {"tokens": ids["tokens"]}, "/detokenize")[1] == {"prompt": text, "content": text}
    assert post(toy, {"tokens": [10**6]}, "/detokenize")[0] == 400
    assert post(toy, {"tokens": [1] * 10, "model": "other"}, "/detokenize")[0] == 404
    for path in ("/v1/models", "/v1/models/toy"):
        answer = json.loads(one(toy, head(path))[2])
        assert (answer["data"][0] if "data" in answer else answer)["id"] == "toy"
    assert one(toy, head("/v1/models/other"))[0] == 404


def test_what_is_counted_is_told(toy):
    one(toy, completion(json.dumps({"prompt": [1, 2, 3], "max_tokens": 4}).encode()))
    one(toy, head("/nowhere"))

    def tell():
        told = one(toy, head("/metrics"))[2].decode()
        return told, dict(line.rsplit(" ", 1) for line in told.splitlines() if not line.startswith("#"))

    def asked(lines):
        return sum(int(count) for name, count in lines.items() if name.startswith("orrery_requests_total"))

    def settled(lines):  # a request is counted, and its row goes, after its answer is sent
        return not float(lines["orrery_rows"]) and abs(asked(lines) - int(lines["orrery_request_seconds_count"])) <= 1

    until = time.monotonic() + 10
    told, lines = tell()
    while not settled(lines) and time.monotonic() < until:
        time.sleep(0.05)
        told, lines = tell()
    assert int(lines['orrery_requests_total{route="/v1/completions",status="200"}']) > 0
    assert int(lines['orrery_requests_total{route="other",status="404"}']) > 0
    assert int(lines["orrery_generation_tokens_total"]) >= 4
    assert int(lines["orrery_time_to_first_token_seconds_count"]) > 0
    assert settled(lines)
    assert (
        lines['orrery_time_per_output_token_seconds_bucket{le="+Inf"}']
        == (lines["orrery_time_per_output_token_seconds_count"])
    )
    names = [line.split()[2] for line in told.splitlines() if line.startswith("# TYPE")]
    assert len(names) == len(set(names))


def test_a_model_with_spare_rows_has_no_bias_for_ids_that_no_text_has(tmp_path):
    tokenizer = chat_tokenizer("chatml")
    size = tokenizer.size
    config = {**CONFIGS["llama"], "vocab_size": size + 7}
    save_model(tmp_path / "model", tiny("llama", vocab_size=size + 7), "llama", config, tokenizer)
    with running(tmp_path / "model") as server:
        for id, status in ((size - 1, 200), (size, 400), (size + 6, 400)):
            answer = post(server, {"prompt": "a", "max_tokens": 1, "logit_bias": {str(id): 1}})
            assert answer[0] == status, answer
        assert f"give ids from 0 below {size:,}" in answer[1]["error"]["message"]


def test_a_server_that_stops_waits_as_long_as_it_says(toy):
    config = server_of(toy.served, toy.app, lambda: None).config
    assert config.timeout_graceful_shutdown > toy.served.settings.grace


def test_a_server_that_never_starts_is_told_with_where_to_look(toy, monkeypatch):
    async def never(sockets):
        """Start nothing."""

    monkeypatch.setattr(background, "PATIENCE", 0.01)
    monkeypatch.setattr(background, "server_of", lambda *given: SimpleNamespace(serve=never, should_exit=False))
    with pytest.raises(MachineError, match="does not start") as caught, background.serving(toy.served.lm, "toy"):
        pass
    assert "uvicorn.error" in caught.value.hint


@pytest.mark.parametrize("most", [1, 3])
def test_an_engine_with_room_for_few_tokens_serves_what_fits(folder, most):
    with running(folder, most_tokens=most) as toy:
        assert post(toy, {"prompt": "a", "max_tokens": 1})[0] == (200 if most > 1 else 400)
