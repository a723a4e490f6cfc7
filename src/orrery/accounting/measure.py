"""What a step of training is predicted to take on this machine beside what it takes."""

from dataclasses import dataclass

from orrery.accounting.measured_step import measure
from orrery.accounting.speed import Speed
from orrery.accounting.whole_step import WholeStep, rehearse


@dataclass(frozen=True)
class Compared:
    """A prediction and its measurement.

    Attributes:
        peak: bytes of tensors at once, predicted.
        seconds: of a step, predicted.
        measured_peak: bytes of tensors at once, measured.
        measured_resident: bytes by which an ordinary process grew, with the gaps of its allocator.
        measured_seconds: of a step, measured.
    """

    peak: int
    seconds: float
    measured_peak: int
    measured_resident: int
    measured_seconds: float

    @property
    def memory_miss(self) -> float:
        """How far the predicted bytes lie above the measured ones, as a share of these."""
        return self.peak / self.measured_peak - 1

    @property
    def time_miss(self) -> float:
        """How far the predicted seconds lie above the measured ones, as a share of these."""
        return self.seconds / self.measured_seconds - 1


def compare(step: WholeStep, speed: Speed, steps: int = 5) -> Compared:
    """Predict a step from its rehearsal and the speed of the machine, then take it."""
    planned = rehearse(step)
    found = measure(step, steps)
    return Compared(planned.peak, speed.seconds(planned.calls), found.peak, found.resident, found.seconds)
