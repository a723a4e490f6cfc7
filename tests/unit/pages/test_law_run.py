import time

import pytest

from orrery.errors import UsageError
from orrery.laws.registry import verify
from orrery.pages.law_run import LawRun


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
