import json
import subprocess
import threading
import time
from types import SimpleNamespace

import pytest

from orrery.errors import UsageError
from orrery.laws.registry import verify
from orrery.page import law_run
from orrery.page.law_run import LawRun


def wait(run, seconds=120):
    end = time.monotonic() + seconds
    while run.said is not None:
        assert time.monotonic() < end
        time.sleep(0.05)


@pytest.mark.slow
def test_the_laws_of_a_family_are_checked_beside_this_process():
    run = LawRun()
    run.start("elman_rnn")
    with pytest.raises(UsageError, match="already"):
        run.start("gpt2")
    wait(run)
    assert run.failure is None
    assert run.of == "elman_rnn"
    assert run.report is not None
    expected = verify("elman_rnn").as_json()
    assert {**run.report, "seconds": {}} == {**expected, "seconds": {}}


class Process:
    """A process that says given lines, the last of them when it may end."""

    __class__ = property(lambda self, kind=subprocess.Popen: kind)  # types are checked at run time

    def __init__(self, lines):
        self.lines, self.may_end = lines, threading.Event()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        pass

    @property
    def stdout(self):
        yield from self.lines[:-1]
        self.may_end.wait(30)
        yield from self.lines[-1:]

    def poll(self):
        return None

    def terminate(self):
        self.lines = []
        self.may_end.set()

    def wait(self, seconds):
        pass


@pytest.fixture
def started(monkeypatch):
    """Start runs whose processes say what a test has them say; what was begun is kept."""
    begun = []

    def start(run, family, *lines):
        process = Process([json.dumps(line) for line in lines])
        monkeypatch.setattr(law_run.subprocess, "Popen", lambda command, **how: begun.append(command) or process)
        run.start(family)
        return process

    start.begun = begun
    return start


def test_one_run_at_a_time_tells_where_it_is_and_what_it_found(started):
    run = LawRun()
    process = started(run, "gpt2", {"said": "cache of gpt2"}, {"report": {"checks": []}})
    with pytest.raises(UsageError, match="the laws are being checked already") as error:
        run.start("llama")
    assert error.value.hint == "wait for the end of this run, or stop it"
    process.may_end.set()
    wait(run)
    assert (run.report, run.of, run.runs, run.failure) == ({"checks": []}, "gpt2", 1, None)
    started(run, None, {"failure": "no room: free some"}).may_end.set()
    wait(run)
    assert (run.failure, run.of, run.runs) == ("no room: free some", "gpt2", 1)
    started(run, None).may_end.set()
    wait(run)
    assert run.failure == "the process that checked was killed"
    assert [command[3:] for command in started.begun] == [["gpt2"], [], []]


def test_a_run_that_is_stopped_says_so(started):
    run = LawRun()
    run.stop()
    assert run.failure is None
    started(run, None, {"report": {"checks": []}})
    run.stop()
    wait(run)
    assert (run.failure, run.report) == ("stopped", None)


@pytest.mark.parametrize("words", [["gpt2"], []])
def test_the_process_tells_each_step_and_the_end_in_lines_of_json(monkeypatch, capsys, words):
    asked = []

    def verify(family, *, workers, say):
        asked.append((family, 1 <= workers <= law_run.MOST))
        say("the first")
        if family is None:
            raise UsageError("it cannot be", "do something else")
        return SimpleNamespace(as_json=lambda: {"checks": [1]})

    monkeypatch.setattr(law_run, "verify", verify)
    monkeypatch.setattr(law_run.signal, "signal", lambda *given: None)
    monkeypatch.setattr(law_run, "_end_with_input", lambda: None)
    law_run.check(words)
    said = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    last = {"report": {"checks": [1]}} if words else {"failure": "it cannot be: do something else"}
    assert said == [{"said": "the first"}, last]
    assert asked == [("gpt2" if words else None, True)]


@pytest.mark.slow
def test_a_run_can_be_stopped_and_another_begun():
    run = LawRun()
    run.stop()
    assert run.failure is None
    run.start(None)
    run.stop()
    wait(run)
    assert (run.failure, run.report) == ("stopped", None)
    run.start("no_such_family")
    wait(run)
    assert "no_such_family" in run.failure
