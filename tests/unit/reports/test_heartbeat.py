"""Where no terminal is something is said at least every so many seconds, and nothing behind the end."""

import io
import threading
import time
from itertools import pairwise

import pytest
from rich.console import Console

from orrery.reports import status
from orrery.reports.heartbeat import PAUSE, Heartbeat, duration
from orrery.training import progress
from orrery.training.pace import Pace
from orrery.training.progress import Lines


def until(condition, seconds=5.0):
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.005)
    assert condition()


def test_ten_seconds_are_the_longest_silence():
    assert PAUSE == progress.PAUSE == status.PAUSE == 10


def test_silence_is_broken_and_only_silence():
    said = []
    heart = Heartbeat(lambda: said.append(time.monotonic()), 0.02)
    until(lambda: len(said) >= 3)
    heart.stop()
    count = len(said)
    time.sleep(0.06)
    assert len(said) == count
    assert min(b - a for a, b in pairwise(said)) >= 0.015
    quiet = Heartbeat(lambda: said.append(0.0), 0.5)
    for _ in range(10):
        quiet.beat()
        time.sleep(0.005)
    quiet.stop()
    assert 0.0 not in said
    assert not [thread for thread in threading.enumerate() if thread.name == "heartbeat"]


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0, "0 s"), (1.4, "1 s"), (59, "59 s"), (119, "119 s"), (120, "2 min"), (3599, "60 min"), (7200, "2.0 h"),
     (90_000, "25.0 h"), (172_800, "2.0 days"), (8_640_000, "100.0 days")],
)  # fmt: skip
def test_a_time_in_words(seconds, words):
    assert duration(seconds) == words


def lines(monkeypatch, pause):
    monkeypatch.setattr(progress, "PAUSE", pause)
    screen = io.StringIO()
    return Lines(Console(file=screen, width=60)), screen


def test_a_run_without_a_terminal_says_how_long_it_takes(monkeypatch):
    now = [100.0]
    monkeypatch.setattr("orrery.training.pace.monotonic", lambda: now[0])
    shown, screen = lines(monkeypatch, 1000)
    for step in range(1, 5):
        shown.progress(step, 100, {"step": step, "train/loss": 1.5} if step in (1, 4) else None)
        now[0] += 2
    shown.progress(100, 100, {"step": 100, "train/loss": 1.0})
    shown.close()
    assert screen.getvalue().splitlines() == [
        "step 1/100  loss 1.5000",
        "step 4/100  loss 1.5000  3 min left",
        "step 100/100  loss 1.0000",
    ]


@pytest.mark.parametrize(
    ("steps", "says"),
    [((), "before the first step, for"), ((1,), "step 1/9 is done, for"), ((1, 2, 3), "s a step  0 s left"),
     ((5, 6), "step 6/9 is done, for"), ((8, 9), "behind the last step, for")],
)  # fmt: skip
def test_a_run_that_says_nothing_says_where_it_is(steps, says, monkeypatch):
    shown, screen = lines(monkeypatch, 0.02)
    shown.line("begun")
    for step in steps:
        shown.progress(step, 9, None)
    until(lambda: says in screen.getvalue())
    shown.close()
    shown.close()
    said = screen.getvalue()
    time.sleep(0.05)
    assert screen.getvalue() == said


def test_a_run_that_goes_on_is_timed_from_where_it_went_on(monkeypatch):
    now = [0.0]
    monkeypatch.setattr("orrery.training.pace.monotonic", lambda: now[0])
    pace = Pace()
    for step in (501, 502, 503):
        now[0] += 10
        pace.reached(step, 603)
    assert pace.left() == "  17 min left"


def test_what_is_waited_for_is_said_again(monkeypatch, capsys):
    monkeypatch.setattr(status, "PATIENCE", 0.01)
    monkeypatch.setattr(status, "PAUSE", 0.03)
    said = []

    def told():
        said.append(capsys.readouterr().err)
        return "".join(said).count("scoring [b], for 0 s") >= 2

    with status.waiting() as line:
        line.now("scoring [b]")
        until(told)
    assert "".join(said).startswith("scoring [b]\n")
