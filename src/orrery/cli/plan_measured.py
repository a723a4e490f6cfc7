"""What `orrery plan --measure` prints: a step of training on this machine, predicted and measured."""

import sys
from typing import TYPE_CHECKING

from orrery.cli.tables import print_table

if TYPE_CHECKING:
    from orrery.planning.measure import PredictedAndMeasured
    from orrery.planning.plan import Plan


def print_measured(plan: "Plan") -> None:
    """Take steps of a model that fits here, and print what was predicted of them beside it."""
    import torch

    from orrery.kernels.processor import this_processor
    from orrery.planning.fitting import check_fits
    from orrery.planning.measure import calibration, compare
    from orrery.planning.whole_step import WholeStep
    from orrery.training.precision import choose_precision

    name = str(plan.dtype).removeprefix("torch.")
    precision = choose_precision(name, "cpu", this_processor(), torch.get_num_threads())
    step = WholeStep(plan.spec, plan.rows, plan.length, plan.optimizer, precision)
    print(f"rehearsing a step of {plan.name}", file=sys.stderr)
    check_fits(plan)
    print("measuring how fast this processor is, then taking steps", file=sys.stderr)
    compared = compare(step, calibration(precision))
    print(f"{plan.name}: a step of {plan.rows:,} x {plan.length:,} tokens, {name}, {precision.threads} threads\n")
    rows = [
        ("MB of tensors", *_cells(compared.tensors, 1e6, ",.1f")),
        ("MB of the process", *_cells(compared.process, 1e6, ",.1f")),
        ("seconds", *_cells(compared.seconds, 1, ".3g")),
    ]
    print_table(("", "predicted", "measured", "miss"), rows)


def _cells(pair: "PredictedAndMeasured", unit: float, form: str) -> tuple[str, str, str]:
    return f"{pair.predicted / unit:{form}}", f"{pair.measured / unit:{form}}", f"{pair.miss:+.1%}"
