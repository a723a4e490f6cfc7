"""The counter appears where it is waited for, and now and then where there is no terminal."""

import time

from orrery.cli import progress


def test_what_is_done_at_once_is_not_counted(capsys) -> None:
    with progress.counted("patches") as done:
        for number in range(5):
            done(number + 1, 5)
    assert list(progress.watched([1, 2])) == [1, 2]
    assert capsys.readouterr().err == ""


def test_what_is_waited_for_is_told(monkeypatch, capsys) -> None:
    clock = iter([1000.0, 1001.0, 1003.0, 1004.0, 1014.0])
    monkeypatch.setattr(time, "monotonic", lambda: next(clock))
    with progress.counted("patches") as done:
        for number in range(4):
            done(1000 + number, 2000)
    # After one second nothing; at 3 s for the first time; at 4 s too soon again.
    assert capsys.readouterr().err == "1,001 of 2,000 patches, 3 s\n1,003 of 2,000 patches, 14 s\n"
