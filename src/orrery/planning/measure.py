"""What a step of training is predicted to take on this machine beside what it takes."""

from dataclasses import dataclass

from orrery.planning.measured_step import libraries_bytes, measure
from orrery.planning.speed import MachineSpeed, calibrate
from orrery.planning.whole_step import WholeStep, rehearse
from orrery.training.precision import Precision


@dataclass(frozen=True)
class PredictedAndMeasured:
    """A number predicted, and the same measured."""

    predicted: float
    measured: float

    @property
    def miss(self) -> float:
        """How far the predicted one lies above the measured one, as a share of this."""
        return self.predicted / self.measured - 1


@dataclass(frozen=True)
class ComparedPrediction:
    """A prediction and its measurement.

    Attributes:
        tensors: bytes that tensors have at once.
        process: bytes of the process, its libraries and the gaps between its tensors among them.
        seconds: of a step.
    """

    tensors: PredictedAndMeasured
    process: PredictedAndMeasured
    seconds: PredictedAndMeasured


@dataclass(frozen=True)
class Calibration:
    """What is known of this machine before a step is taken: its speed, and the bytes of a process without a model."""

    speed: MachineSpeed
    libraries: int


def calibration(precision: Precision) -> Calibration:
    """Measure both; it takes some ten seconds, and nothing is kept."""
    return Calibration(calibrate(precision), libraries_bytes(precision))


def compare(step: WholeStep, machine: Calibration, steps: int = 5) -> ComparedPrediction:
    """Predict a step from its rehearsal and the machine, then take it."""
    planned = rehearse(step)
    seconds = machine.speed.seconds(planned.calls)
    measured = measure(step, steps)
    return ComparedPrediction(
        PredictedAndMeasured(planned.peak, measured.peak),
        PredictedAndMeasured(machine.libraries + planned.growth, measured.process),
        PredictedAndMeasured(seconds, measured.seconds),
    )
