"""The server under load: a queue that is full, clients that leave or do not read, answers that fail, the end."""

import contextlib
import http.client
import json
import signal
import socket
import threading
import time

import pytest

import programs
from orrery.errors import RunError
from orrery.language_model.load import load
from orrery.serving.run import listen, run
from orrery.serving.served import Served
from orrery.serving.settings import ServerSettings
from programs import ORRERY, PIPE, Program
from serving_toy import chat_model, events, post, running

LONG = {"prompt": "the cat", "max_tokens": 100, "temperature": 0, "logit_bias": {"0": -100, "2": -100}}
"""An answer that goes on: no end token can come."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return chat_model(tmp_path_factory.mktemp("toy") / "model")


@pytest.fixture
def slowly(monkeypatch):
    """Make the steps of a server's model take a while."""

    def slow(toy, seconds=0.03):
        model, step = toy.served.lm.model, toy.served.lm.model.step

        def stepping(tokens, session, lengths=None):
            time.sleep(seconds)
            return step(tokens, session, lengths)

        monkeypatch.setattr(model, "step", stepping)

    return slow


def until(condition, seconds=30):
    ends = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < ends
        time.sleep(0.005)


def opened(toy, body):
    """Return a connection on which a request has been sent."""
    link = http.client.HTTPConnection(toy.url.removeprefix("http://"), timeout=60)
    link.request("POST", "/v1/completions", json.dumps(body), {"Content-Type": "application/json"})
    return link


def get(toy, path="/health"):
    link = http.client.HTTPConnection(toy.url.removeprefix("http://"), timeout=60)
    link.request("GET", path)
    response = link.getresponse()
    answered = response.status, response.headers, response.read().decode()
    link.close()
    return answered


def inside(toy):
    return toy.served.gauges()["orrery_requests_inside"]


def test_every_client_is_answered_for_itself_or_told_to_wait(folder, slowly):
    with running(folder, most_rows=4, queue=4) as toy:
        prompts = [f"the cat {chr(97 + i)}" for i in range(16)]
        alone = [post(toy, {**LONG, "prompt": prompt, "max_tokens": 8})[1]["choices"][0]["text"] for prompt in prompts]
        slowly(toy, 0.05)
        answers, waits = [None] * 16, [0.0] * 16

        def client(i):
            began = time.monotonic()
            link = opened(toy, {**LONG, "prompt": prompts[i], "max_tokens": 8})
            response = link.getresponse()
            answers[i] = response.status, response.headers, json.loads(response.read())
            waits[i] = time.monotonic() - began
            link.close()

        threads = [threading.Thread(target=client, args=(i,)) for i in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        served = [i for i, (status, _, _) in enumerate(answers) if status == 200]
        assert len(served) >= 8
        assert [answers[i][2]["choices"][0]["text"] for i in served] == [alone[i] for i in served]
        for status, headers, body in answers:
            if status != 200:
                assert status == 429
                assert 1 <= int(headers["retry-after"]) <= 60
                assert body["error"]["code"] == "server_busy"
        assert inside(toy) == 0
        assert get(toy)[0] == 200


@pytest.mark.parametrize("stream", [True, False])
def test_who_leaves_is_written_for_no_more(folder, slowly, stream):
    with running(folder, most_rows=1) as toy:
        slowly(toy)
        link = opened(toy, {**LONG, "stream": stream})
        engine = toy.served.engine
        until(lambda: engine.rows == 1 and engine._writing and len(engine._writing[0].written) >= 3)
        own = engine._writing[0]
        link.sock.close() if not stream else link.sock.shutdown(socket.SHUT_RDWR)
        count = len(own.written)
        until(lambda: own.done)
        assert len(own.written) <= count + 4
        until(lambda: inside(toy) == 0)
        assert post(toy, {"prompt": "a", "max_tokens": 1})[0] == 200
        link.close()


def test_who_leaves_while_waiting_leaves_the_queue(folder, slowly):
    with running(folder, most_rows=1, queue=1) as toy:
        slowly(toy)
        first = opened(toy, {**LONG, "stream": True})
        until(lambda: toy.served.engine.rows == 1)
        second = opened(toy, LONG)
        until(lambda: inside(toy) == 2)
        assert post(toy, LONG)[0] == 429
        second.close()
        until(lambda: inside(toy) == 1)
        third = opened(toy, {**LONG, "max_tokens": 1})
        assert third.getresponse().status == 200
        first.close()
        third.close()


def test_a_reader_that_does_not_read_is_cut(folder, monkeypatch):
    monkeypatch.setattr("orrery.serving.protocol.SEND_BUFFER", 4_096)
    with running(folder, safety={"write_timeout": 0.05}) as toy:  # a tenth of what writing all of it takes
        host, _, port = toy.url.removeprefix("http://").partition(":")
        link = socket.socket()
        link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        link.connect((host, int(port)))
        body = json.dumps({**LONG, "n": 64, "stream": True, "logprobs": 20}).encode()
        kind = f"Content-Type: application/json\r\nContent-Length: {len(body)}"
        link.sendall(f"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n{kind}\r\n\r\n".encode() + body)
        until(lambda: inside(toy) == 1)
        until(lambda: inside(toy) == 0, 60)
        assert toy.served.metrics.text({}).count("orrery_answers_cancelled_total") == 2
        assert post(toy, {"prompt": "a", "max_tokens": 1})[0] == 200
        link.close()


def test_health_answers_while_a_long_text_is_cut_and_a_long_template_is_rendered(folder):
    with running(folder) as toy:
        bodies = [{"prompt": "the cat sat on the mat " * 50_000}, {"prompt": [list(range(100))] * 4_000}] * 3
        threads = [threading.Thread(target=post, args=(toy, body)) for body in bodies]
        for thread in threads:
            thread.start()
        slowest = 0.0
        while any(thread.is_alive() for thread in threads):
            began = time.monotonic()
            assert get(toy)[0] == 200
            slowest = max(slowest, time.monotonic() - began)
        assert slowest < 5  # measured as such elsewhere: here it is to end at all


def test_a_row_that_fails_is_told_and_the_others_go_on(folder, monkeypatch):
    with running(folder) as toy:
        from orrery.generation import engine

        choose = engine.choose

        def failing(rows, logits_NV):
            choose(rows, logits_NV)
            for row in rows:
                if row.request.seed == 666 and len(row.written) == 3:
                    row.error = MemoryError("no memory is left")

        monkeypatch.setattr(engine, "choose", failing)
        status, answer = post(toy, {**LONG, "seed": 666})
        assert (status, answer["error"]["type"]) == (500, "server_error")
        *_, last = events(post(toy, {**LONG, "seed": 666, "stream": True})[1])
        assert json.loads(last)["error"]["code"] == "internal_error"
        assert post(toy, {**LONG, "seed": 1})[0] == 200
        assert inside(toy) == 0


def test_an_engine_that_fails_is_told_of(folder, monkeypatch):
    with running(folder) as toy:
        monkeypatch.setattr(toy.served.engine, "_write", lambda: 1 / 0)
        assert post(toy, LONG)[0] == 500
        assert isinstance(toy.served.failed, ZeroDivisionError)
        with contextlib.suppress(OSError):  # it has left already: what watches over it sees the exit code
            assert get(toy)[0] == 503


def test_a_server_whose_engine_fails_says_so_and_ends(folder, monkeypatch, caplog):
    settings = ServerSettings(port=0, grace=1)
    served = Served(load(folder, "cpu", "float64", say=lambda line: None), settings, "toy")
    monkeypatch.setattr(served.engine, "_write", lambda: 1 / 0)
    asking = []

    def ask(line):
        body = json.dumps(LONG).encode()
        kind = {"Content-Type": "application/json"}
        link = http.client.HTTPConnection(line.rsplit("//", 1)[1], timeout=60)
        asking.append(
            threading.Thread(target=lambda: (link.request("POST", "/v1/completions", body, kind), link.close()))
        )
        asking[0].start()

    with listen(settings) as listener, pytest.raises(RunError, match="the engine failed: division by zero"):
        run(served, listener, ask)
    asking[0].join(60)
    assert "ZeroDivisionError" in caplog.text


def started(folder, *words):
    """Return a server in a process of its own, and its port."""
    command = [*ORRERY, "serve", folder, "--port", "0", "--device", "cpu", *words]
    process = Program(command, stdout=PIPE, stderr=PIPE, text=True)
    line = process.stdout.readline()
    assert line.startswith("serving model on http://127.0.0.1:"), process.stderr.read()
    return process, int(line.rsplit(":", 1)[1])


def ended(process, link):
    """Look at the end of a server that was told to stop."""
    link.close()
    assert process.wait(30) == 0
    process.stdout.close()
    process.stderr.close()


@pytest.mark.slow
def test_sigterm_lets_a_stream_come_to_its_end(folder):
    process, port = started(folder)
    link = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    body = json.dumps({**LONG, "stream": True})
    link.request("POST", "/v1/completions", body, {"Content-Type": "application/json"})
    response = link.getresponse()
    first = response.read1()
    process.send_signal(signal.SIGTERM)
    lines = events((first + response.read()).decode())
    assert lines[-1] == "[DONE]"
    assert json.loads(lines[-2])["choices"][0]["finish_reason"] == "length"
    ended(process, link)
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.1", port), timeout=5)


@pytest.mark.slow
def test_what_the_grace_does_not_suffice_for_ends_with_an_error_event(folder):
    process, port = started(folder, "--grace", "0", "--most-rows", "1")
    body = json.dumps({**LONG, "n": 128, "stream": True})
    link = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    link.request("POST", "/v1/completions", body, {"Content-Type": "application/json"})
    response = link.getresponse()
    first = response.read1()
    process.send_signal(signal.SIGTERM)
    last = events((first + response.read()).decode())[-1]
    assert json.loads(last)["error"]["type"] == "server_error"
    ended(process, link)


@pytest.mark.slow
def test_a_port_that_is_taken_and_an_open_address_are_refused_before_anything_is_read(folder):
    def serve(*words):
        return programs.run([*ORRERY, "serve", folder / "nothing", *words], capture_output=True, text=True)

    (folder / "nothing").mkdir()  # a folder that is there, and no model
    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = serve("--port", str(taken.getsockname()[1]))
        assert done.returncode == 5
        assert "cannot listen on" in done.stderr
    done = serve("--host", "0.0.0.0")
    assert done.returncode == 2
    assert "there is no key" in done.stderr
