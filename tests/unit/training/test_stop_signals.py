"""What a signal does while a run is to be stopped: the first asks, a second Ctrl-C does not wait."""

import signal

import pytest

from orrery.training.signals import StopSignals


def interrupts(number: signal.Signals) -> bool:
    """Say whether a signal interrupts at once; an interrupt that reaches pytest would end the tests and fail none."""
    try:
        signal.raise_signal(number)
    except KeyboardInterrupt:
        return True
    return False


@pytest.mark.parametrize("first", [signal.SIGINT, signal.SIGTERM])
def test_only_a_second_interrupt_does_not_wait(first: signal.Signals) -> None:
    with StopSignals() as signals:
        assert signals.received is None
        assert not interrupts(first)
        assert signals.received == first
        assert not interrupts(signal.SIGTERM)  # a supervisor may ask again
        assert signals.received == signal.SIGTERM
        assert interrupts(signal.SIGINT)
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
