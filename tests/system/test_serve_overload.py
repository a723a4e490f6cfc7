"""More clients than there is room for, clients that leave or do not read, and the signals that end a server."""

import signal
import threading

import pytest

from http_wire import Wire, raw_request
from outputs_toy import tree
from served_models import chat_folder
from server_load import Stream, Watch, all_at_once, ask, percentile, until
from server_process import ServerProcess, metrics

pytestmark = [pytest.mark.alone, pytest.mark.slow]
CLIENTS, ROWS, QUEUE = 64, 4, 16
PATIENT = 5.0
"""Seconds; the benchmark measures, this only tells waiting in the queue from being refused."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return chat_folder(tmp_path_factory.mktemp("models") / "tiny")


@pytest.fixture(scope="module")
def server(folder):
    with ServerProcess(folder, "--most-rows", str(ROWS), "--queue", str(QUEUE)) as process:
        yield process


def body(model, number, tokens=24, **more):
    drawn = {"max_tokens": tokens, "temperature": 1, "seed": number}
    return {"model": model, "prompt": f"the cat {number} sat", **drawn, **more}


def generated(server):
    return metrics(server.get("/metrics").decode()).get("orrery_generation_tokens_total", 0)


def idle(server):
    return metrics(server.get("/metrics").decode())["orrery_rows"] == 0


def test_each_of_64_clients_gets_its_own_answer_or_a_refusal(server):
    bodies = [body(server.model, number) for number in range(CLIENTS)]
    alone = [ask(server.port, one).text for one in bodies]
    assert len(set(alone)) == CLIENTS
    with Watch(server.port) as watch:
        outcomes = all_at_once(server.port, bodies)
    assert {one.status for one in outcomes} <= {200, 429}
    answered = [number for number, one in enumerate(outcomes) if one.status == 200]
    assert len(answered) >= ROWS + QUEUE
    assert [number for number in answered if outcomes[number].text != alone[number]] == []
    refused = [one for one in outcomes if one.status == 429]
    assert refused
    assert all(one.retry_after for one in refused)
    assert percentile([one.seconds for one in refused], 0.5) < PATIENT
    assert watch.statuses == {200}
    assert max(watch.seconds) < PATIENT
    assert all(ask(server.port, bodies[number]).text == alone[number] for number in (0, CLIENTS - 1))


def test_memory_does_not_grow_with_requests(server):
    with Wire(server.port) as wire:
        for number in range(60):
            assert wire.ask("POST", "/v1/completions", body(server.model, number, 2)).status == 200
        before = server.memory()
        for number in range(300):
            wire.ask("POST", "/v1/completions", body(server.model, number, 2, **({"n": -1} if number % 3 == 0 else {})))
    assert server.memory() - before < 16 << 20


def test_who_leaves_frees_the_row_at_once(server):
    begun = generated(server)
    stream = Stream(server.port, body(server.model, 1, 480))
    read = len(stream.texts(5))
    stream.leave()
    assert until(lambda: idle(server))
    assert read <= generated(server) - begun < 480 / 2
    assert ask(server.port, body(server.model, 1)).status == 200


@pytest.mark.parametrize("where", ["waiting for the whole", "waiting in the queue"])
def test_who_leaves_without_a_stream_frees_the_place(server, where):
    begun, rows = generated(server), ROWS if where == "waiting in the queue" else 0
    streams = [Stream(server.port, body(server.model, number, 480)) for number in range(rows)]
    if streams:
        assert until(lambda: metrics(server.get("/metrics").decode())["orrery_rows"] == ROWS)
    wires = [Wire(server.port) for _ in range(3)]
    for wire in wires:
        wire.socket.sendall(raw_request("POST", "/v1/completions", server.port, body(server.model, 9, 480)))
    for wire in wires:
        wire.close()
    for stream in streams:
        stream.leave()
    assert until(lambda: idle(server))
    assert generated(server) - begun < 480 * (rows + 3) / 2


def test_a_reader_that_does_not_read_delays_nobody(server):
    lazy = [Stream(server.port, body(server.model, number, 480)) for number in range(ROWS - 1)]
    assert all(ask(server.port, body(server.model, number, 4)).status == 200 for number in range(5))
    for stream in lazy:
        stream.leave()
    assert until(lambda: idle(server))


def test_sigterm_lets_answers_end_and_leaves_with_0(folder):
    with ServerProcess(folder, "--most-rows", "2") as server:
        expected = ask(server.port, body(server.model, 1, 200)).text
        answers = []
        waiting = threading.Thread(target=lambda: answers.append(ask(server.port, body(server.model, 1, 200))))
        with Stream(server.port, body(server.model, 1, 200)) as stream:
            pieces = stream.texts(1)
            waiting.start()
            assert until(lambda: metrics(server.get("/metrics").decode())["orrery_rows"] == 2)
            server.process.send_signal(signal.SIGTERM)
            events = list(stream.events())
        waiting.join()
        assert "".join([*pieces, *(e["choices"][0]["text"] for e in events if e != "[DONE]")]) == expected
        assert events[-1] == "[DONE]"
        assert (answers[0].status, answers[0].text) == (200, expected)
        assert server.process.wait(30) == 0


def test_sigterm_ends_a_stream_that_takes_too_long_with_an_error(tmp_path):
    long = chat_folder(tmp_path / "long", context=8192)
    with ServerProcess(long, "--grace", "0") as server:  # a quiet machine writes 8,000 tokens in less than a second
        with Stream(server.port, body(server.model, 1, 8000)) as stream:
            stream.texts(1)
            server.process.send_signal(signal.SIGTERM)
            last = list(stream.events())[-1]
        assert "error" in last
        assert set(last["error"]) >= {"message", "type", "param", "code"}
        assert server.process.wait(30) == 0


def test_sigkill_loses_the_answers_under_way_and_nothing_else(folder):
    before = tree(folder)
    with ServerProcess(folder) as server:
        expected = ask(server.port, body(server.model, 3)).text
        with Stream(server.port, body(server.model, 1, 480)) as stream:
            stream.texts(2)
            server.process.kill()
            assert "[DONE]" not in list(stream.events())
    assert tree(folder) == before
    with ServerProcess(folder) as server:
        assert ask(server.port, body(server.model, 3)).text == expected
