import threading
import time

import pytest

from orrery.errors import RunError, UsageError
from orrery.generation.engine import Engine
from orrery.generation.generate import generate
from orrery.generation.requests import Request
from orrery.generation.row import Limits
from orrery.generation.samplers import sampler
from orrery.serving.worker import BusyError, ClosedError, Worker
from tiny_models import TOKENIZER, smallest

CONTEXT = 64
DRAWN = sampler(temperature=1.0)


def worker_of(most_waiting=8, model=None, **settings):
    return Worker(Engine(model or smallest("llama"), TOKENIZER, CONTEXT, **settings), most_waiting)


def request_of(number=0, tokens=8, told=None):
    return Request([5, 9, 3 + number], Limits(tokens, CONTEXT), DRAWN, seed=number, told=told)


class Ending:
    def __init__(self):
        self.answers, self.event = [], threading.Event()

    def __call__(self, answering):
        self.answers.append(answering)
        self.event.set()


def test_requests_of_many_threads_are_each_answered_as_alone():
    worker, model = worker_of(most_waiting=64, most_rows=4), smallest("llama")
    endings = [Ending() for _ in range(24)]
    threads = [threading.Thread(target=lambda i=i: worker.submit(request_of(i), endings[i])) for i in range(24)]
    for thread in threads:
        thread.start()
    for number, ending in enumerate(endings):
        assert ending.event.wait(60)
        request = request_of(number)
        how = {"sampler": DRAWN, "seed": number}
        assert (
            ending.answers[0].result().ids == generate(model, [request.prompt], TOKENIZER, request.limits, **how)[0].ids
        )
    assert worker.served == 24
    assert worker.going == 0
    assert worker.close(10)


def slow(written):
    time.sleep(0.05)


def test_who_comes_when_too_many_wait_is_told_at_once():
    worker = worker_of(most_waiting=1, most_rows=1)
    endings = [Ending(), Ending()]
    for ending in endings:
        worker.submit(request_of(tokens=30, told=slow), ending)
    began = time.monotonic()
    with pytest.raises(BusyError, match="2 requests"):
        worker.submit(request_of(), Ending())
    assert time.monotonic() - began < 5
    assert worker.close(60)
    assert all(ending.answers[0].result().finish_reason == "length" for ending in endings)
    with pytest.raises(ClosedError):
        worker.submit(request_of(), Ending())


def test_a_cancelled_answer_ends_and_its_row_serves_the_next():
    worker = worker_of(most_rows=1)
    first, second, written = Ending(), Ending(), []
    own = worker.submit(request_of(tokens=50, told=lambda one: (written.append(one), slow(one))), first)
    worker.submit(request_of(1), second)
    while len(written) < 3:
        time.sleep(0.01)
    worker.cancel(own)
    count = len(written)
    assert second.event.wait(60)
    assert len(written) <= count + 2
    with pytest.raises(RunError, match="cancelled"):
        first.answers[0].result()
    assert second.answers[0].result().ids
    assert worker.close(10)


def test_what_is_under_way_when_the_grace_ends_is_cancelled():
    worker, ending = worker_of(), Ending()
    worker.submit(request_of(tokens=50, told=slow), ending)
    assert not worker.close(0.2)
    with pytest.raises(RunError, match="cancelled"):
        ending.answers[0].result()


def test_an_engine_that_fails_ends_every_answer_and_takes_no_more(monkeypatch):
    worker, endings = worker_of(most_rows=1), [Ending(), Ending()]
    for ending in endings:
        worker.submit(request_of(tokens=50, told=slow), ending)
    monkeypatch.setattr(worker._engine, "_write", lambda: 1 / 0)
    for ending in endings:
        assert ending.event.wait(60)
        with pytest.raises(ZeroDivisionError):
            ending.answers[0].result()
    assert isinstance(worker.error, ZeroDivisionError)
    with pytest.raises(ClosedError):
        worker.submit(request_of(), Ending())
    assert not worker.close(1)


def test_who_listens_no_more_harms_nobody_and_nonsense_is_refused_before_it_waits():
    worker, ending = worker_of(), Ending()

    def gone(answering):
        raise ConnectionError

    worker.submit(request_of(), gone)
    worker.submit(request_of(1), ending)
    with pytest.raises(UsageError):
        worker.submit(Request([], Limits(3, CONTEXT)), Ending())
    assert ending.event.wait(60)
    assert worker.close(10)
