"""The line that says what is being waited for."""

import time

import pytest

from orrery.reports import status as module
from orrery.reports.status import waiting


def test_quick_work_prints_nothing(capsys):
    with waiting() as line:
        line.now("reading")
    assert capsys.readouterr() == ("", "")


def test_slow_work_says_what_it_does(capsys, monkeypatch):
    monkeypatch.setattr(module, "PATIENCE", 0.01)
    with waiting() as line:
        line.now("reading [a]")
        deadline = time.monotonic() + 10
        while not capsys_holds(capsys) and time.monotonic() < deadline:
            time.sleep(0.01)
        line.now("training")
    assert capsys.readouterr().err == "training\n"


def capsys_holds(capsys):
    printed = capsys.readouterr().err
    assert printed in ("", "reading [a]\n")
    return printed


def test_an_error_ends_the_line(monkeypatch):
    with pytest.raises(ValueError, match="broken"), waiting():
        raise ValueError("broken")


def test_a_count_is_told_now_and_then(capsys, monkeypatch):
    monkeypatch.setattr(module, "PATIENCE", 0.01)
    with waiting() as line:
        line.now("0 of 9,000 scored")
        deadline = time.monotonic() + 10
        while not capsys.readouterr().err and time.monotonic() < deadline:
            time.sleep(0.01)
        for count in range(1, 9000):
            line.now(f"{count:,} of 9,000 scored")
        line.now("writing")
    assert capsys.readouterr().err.splitlines()[-1] == "writing"


def test_counts_are_few_lines(capsys, monkeypatch):
    monkeypatch.setattr(module, "PATIENCE", 0.0)
    with waiting() as line:
        for count in range(2000):
            line.now(f"{count:,} of 2,000 scored")
            time.sleep(0.0001)
    assert len(capsys.readouterr().err.splitlines()) <= 2
