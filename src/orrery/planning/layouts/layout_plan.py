"""The plan of a training: a layout with its memory, time, throughput, utilisation, days and cost."""

from dataclasses import dataclass

from orrery.errors import UsageError
from orrery.planning.layouts.layout import ParallelLayout, check_layout
from orrery.planning.layouts.memory import Memory, memory
from orrery.planning.layouts.step_time import StepTime, step_time
from orrery.planning.layouts.training import TrainingStep
from orrery.planning.layouts.work import DecoderWork
from orrery.planning.machines import Machine

DAY, HOUR = 86_400, 3_600


@dataclass(frozen=True)
class LayoutPlan:
    """A layout on a machine, and what follows.

    Attributes:
        work: the model.
        training: the batch.
        layout: who shares what.
        machine: on which.
        memory: bytes of the fullest device.
        time: seconds of a step.
    """

    work: DecoderWork
    training: TrainingStep
    layout: ParallelLayout
    machine: Machine
    memory: Memory
    time: StepTime

    @property
    def tokens_per_second(self) -> int | float:
        """Tokens that all devices together train on in a second."""
        return self.training.tokens / self.time.total

    def mfu(self, counted: int | float = 1.0) -> int | float:
        """Return the model's operations over what the devices could do in the same time (Chowdhery et al. 2022).

        ``counted`` is the share of all keys that is counted; the paper counts all of them, also those that the causal
        mask hides.
        """
        return self._utilisation(self.work.operations(self.training.length, counted))

    def hfu(self, counted: int | float = 1.0) -> int | float:
        """Return the utilisation with recomputed operations (Korthikanti et al. 2022, section 6.3)."""
        again, work = self.layout.recompute, self.work
        attention = 4 * work.layers * work.heads * work.head_width * work.keys(self.training.length, counted)
        repeated = again.layer * 2 * work.layers * work.block_active + again.attention * attention
        return self._utilisation(work.operations(self.training.length, counted) + repeated)

    def days(self, tokens: int | float) -> int | float:
        """Return the days of a training on so many tokens, without a failure or a pause."""
        return tokens / self.tokens_per_second / DAY

    def cost(self, tokens: int | float) -> int | float | None:
        """Return the dollars of that training; nothing where the machine has no price."""
        if self.machine.price is None:
            return None
        return self.days(tokens) * DAY / HOUR * self.layout.devices * self.machine.price

    def _utilisation(self, operations: int | float) -> int | float:
        peak = self.machine.rate(self.training.number_format) * self.layout.devices
        return operations * self.tokens_per_second / peak


def plan_layout(work: DecoderWork, training: TrainingStep, layout: ParallelLayout, machine: Machine) -> LayoutPlan:
    """Return the plan of a layout, whether or not it fits the machine's memory (`refuse_too_large`).

    Raises:
        UsageError: a degree does not divide what it shares, or the machine does not compute in the number format.
    """
    check_layout(work, training, layout)
    needed = memory(work, training, layout)
    return LayoutPlan(work, training, layout, machine, needed, step_time(work, training, layout, machine))


def refuse_too_large(plan: LayoutPlan, limit: int | float, would_fit: str) -> None:
    """Raise `UsageError` where a plan needs more memory than there is, with what would fit."""
    if plan.memory.total > limit:
        need = f"{plan.memory.total / 1e9:,.1f} GB a device, and {limit / 1e9:,.1f} GB are there"
        raise UsageError(f"the layout {plan.layout.text()} needs {need}", would_fit)
