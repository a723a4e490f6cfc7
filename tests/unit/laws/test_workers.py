"""Jobs over several processes: their answers in order, and what happens where one fails or all are stopped."""

import math
import multiprocessing
import os
import time
from functools import partial

import pytest

from orrery.errors import MachineError, UsageError
from orrery.laws import registry
from orrery.laws.workers import cores, spread


def test_answers_come_in_the_order_of_the_jobs():
    done = []
    answers = spread([partial(math.sqrt, n * n) for n in range(7)], 2, done.append)
    assert answers == list(range(7))
    assert sorted(done) == list(range(7))
    assert not multiprocessing.active_children()


def test_an_error_of_a_job_is_raised_here_and_no_process_is_left():
    with pytest.raises(ZeroDivisionError):
        spread([partial(divmod, 1, 0), partial(time.sleep, 60)], 2, lambda number: None)
    assert not multiprocessing.active_children()


def test_a_process_that_is_killed_is_named():
    with pytest.raises(MachineError, match="was killed"):
        spread([partial(os._exit, 9), partial(math.sqrt, 4)], 2, lambda number: None)


def test_there_is_a_core_and_no_fewer_than_one_worker():
    assert cores() >= 1
    with pytest.raises(UsageError, match="0 workers check nothing") as error:
        registry.verify(workers=0)
    assert error.value.hint == "take at least 1"
    with pytest.raises(UsageError, match="no laws are known for the family 'nothing'") as error:
        registry.verify("nothing")
    assert "llama" in error.value.hint


def test_two_processes_find_what_one_finds(monkeypatch):
    monkeypatch.setattr(registry, "families", lambda: ["gpt2", "nplm"])
    monkeypatch.setattr(registry, "CHECKS", registry.CHECKS[:4])
    said = []
    one, two = registry.verify(), registry.verify(workers=2, say=said.append)
    assert one == two
    assert said[-1].endswith("5 of 5")
