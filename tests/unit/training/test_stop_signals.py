"""What a signal does while a run is to be stopped: the first asks, a second Ctrl-C does not wait."""

import signal

import pytest

from orrery.training.signals import StopSignals


@pytest.mark.parametrize("first", [signal.SIGINT, signal.SIGTERM])
def test_only_a_second_interrupt_does_not_wait(first: signal.Signals) -> None:
    with StopSignals() as signals:
        assert signals.received is None
        signal.raise_signal(first)
        assert signals.received == first
        try:
            signal.raise_signal(signal.SIGTERM)  # a supervisor may ask again
        except KeyboardInterrupt:  # left to pytest, it would end the tests and fail none
            pytest.fail("a second SIGTERM does not wait")
        assert signals.received == signal.SIGTERM
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
