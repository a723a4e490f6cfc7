"""What `orrery plan --measure` prints: a step of training on this machine, predicted and measured."""

import sys
from typing import TYPE_CHECKING

from orrery.cli.tables import print_table

if TYPE_CHECKING:
    from orrery.accounting.plan import Plan


def print_measured(plan: "Plan") -> None:
    """Take steps of a model that fits here, and print what was predicted of them beside it."""
    import torch

    from orrery.accounting.fitting import check_fits
    from orrery.accounting.measure import compare
    from orrery.accounting.speed import calibrate
    from orrery.accounting.whole_step import WholeStep
    from orrery.kernels.processor import this_processor
    from orrery.training.precision import choose_precision

    name = str(plan.dtype).removeprefix("torch.")
    precision = choose_precision(name, "cpu", this_processor(), torch.get_num_threads())
    step = WholeStep(plan.spec, plan.rows, plan.length, plan.optimizer, precision)
    print(f"rehearsing a step of {plan.name}", file=sys.stderr)
    check_fits(plan)
    print("measuring how fast this processor is, then taking steps", file=sys.stderr)
    found = compare(step, calibrate(precision))
    print(f"{plan.name}: a step of {plan.rows:,} x {plan.length:,} tokens, {name}, {precision.threads} threads\n")
    memory = (f"{found.peak / 1e6:,.1f}", f"{found.measured_peak / 1e6:,.1f}", f"{found.memory_miss:+.1%}")
    seconds = (f"{found.seconds:.3g}", f"{found.measured_seconds:.3g}", f"{found.time_miss:+.1%}")
    print_table(("", "predicted", "measured", "miss"), [("MB of tensors", *memory), ("seconds", *seconds)])
    print(f"\nthe process took {found.measured_resident / 1e6:,.1f} MB: between tensors its allocator keeps gaps")
