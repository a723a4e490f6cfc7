"""Whether a step fits into the memory that this machine has free, said before it is taken."""

from orrery.errors import UsageError
from orrery.planning.plan import Plan
from orrery.planning.step_cost import step_cost
from orrery.planning.whole_step import with_gaps
from orrery.training.memory import free_bytes

SLOWEST = 1e13
"""Operations of a step up to which it is taken: some minutes on two cores."""


def check_fits(plan: Plan) -> None:
    """Refuse a plan whose step does not fit here.

    Raises:
        UsageError: its weights, gradients, optimizer and activations are more than there is memory, or its
            operations take too long to be waited for.
    """
    free, needed = free_bytes(), plan.memory - plan.cost.kept + with_gaps(plan.cost.kept)
    if free is not None and needed > free:
        message = f"a step of {plan.name} needs {needed / 1e9:,.1f} GB, and {free / 1e9:,.1f} GB are free here"
        raise UsageError(message, smaller(plan, free))
    if plan.cost.training.total > SLOWEST:
        fits = SLOWEST / plan.cost.training.total
        message = f"a step of {plan.name} takes {plan.cost.training.total:.2g} operations, too many to be timed here"
        raise UsageError(message, _fewer(plan, fits))


def smaller(plan: Plan, free: int) -> str:
    """Return what would fit: fewer rows, fewer tokens, or another machine."""
    fixed = plan.weights_bytes + plan.gradients_bytes + plan.optimizer_bytes
    if fixed > free:
        return f"its weights alone need {fixed / 1e9:,.1f} GB with gradients and optimizer: --machine plans for others"
    rows = int((free - fixed) / (with_gaps(plan.cost.kept) / plan.rows))
    if rows >= 1:
        return f"--rows {rows} fits"
    length = plan.length
    while length > 1:
        length //= 2
        if fixed + with_gaps(step_cost(plan.spec, 1, length, plan.dtype).kept) <= free:
            return f"--rows 1 --length {length} fits"
    return "--machine plans for others"


def _fewer(plan: Plan, share: float) -> str:
    rows = int(plan.rows * share)
    if rows >= 1:
        return f"--rows {rows} is little enough"
    return f"--rows 1 --length {max(1, int(plan.length * share * plan.rows))} is little enough"
