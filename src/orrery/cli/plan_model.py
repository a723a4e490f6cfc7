"""What `orrery plan` prints of one model."""

import sys
from collections import Counter
from typing import TYPE_CHECKING

from orrery.cli.tables import print_table

if TYPE_CHECKING:
    from orrery.planning.plan import Plan


def print_plan(plan: "Plan") -> None:
    """Print a model's parameters by matrix, operations, and memory."""
    from orrery.planning.matrices import LECTURE, Convention, total

    print(f"rehearsing a step of {plan.name}", file=sys.stderr)
    operations = operation_rows(plan)  # before a line is printed: a length may be one that the model has no places for
    own, lecture = total(plan.matrices, Convention()), plan.by_convention(LECTURE)
    counts = plan.parameters
    print(f"{plan.name}\n")
    rows = [
        ("parameters", f"{counts.trained + counts.fixed:,}", "each storage once"),
        ("in matrices", f"{own[1]:,}", "q, k and v one a head, what mixes heads one a layer"),
        ("as the course counts", f"{lecture[0]:,} in {lecture[1]:,}", "no biases, norms or positions; the head apart"),
    ]
    if counts.active != counts.trained + counts.fixed:
        rows.append(("active", f"{counts.active:,}", "those that one token meets"))
    print_table(("", "number", "counted"), rows)
    print()
    print_table(("matrix", "shape", "how many", "parameters"), matrix_rows(plan))
    narrow = str(plan.dtype).removeprefix("torch.")
    print(f"\na step of {plan.rows:,} x {plan.length:,} tokens, products in {narrow}\n")
    print_table(("operations", "by weights", "between tokens", "in all", "a token"), operations)
    print()
    print_table(("memory", "bytes", "GB", ""), memory_rows(plan))
    if plan.training is not None:
        print_training(plan.training, plan.tokens or 0, counts.trained)


def matrix_rows(plan: "Plan") -> list[tuple[str, ...]]:
    """Return a row for each kind of matrix and its shape."""
    many, sizes = Counter[tuple[str, tuple[int, ...], bool]](), dict[tuple[str, tuple[int, ...], bool], int]()
    for one in plan.matrices:
        key = (one.kind, one.shape, one.tied)
        many[key] += one.copies
        sizes[key] = one.numel
    return [
        (kind, " x ".join(f"{n:,}" for n in shape), f"{many[kind, shape, tied]:,}", "tied" if tied else f"{count:,}")
        for (kind, shape, tied), size in sizes.items()
        for count in (size * many[kind, shape, tied],)
    ]


def operation_rows(plan: "Plan") -> list[tuple[str, ...]]:
    """Return the rows of the forward pass, the backward pass and both."""
    cost = plan.cost
    parts = (("forward", cost.forward), ("backward", cost.training - cost.forward), ("training", cost.training))
    return [
        (name, *(f"{n:,}" for n in (work.weights, work.tokens, work.total)), f"{work.total / plan.positions:,.0f}")
        for name, work in parts
    ]


def memory_rows(plan: "Plan") -> list[tuple[str, ...]]:
    """Return the rows of training, and of writing where the model writes."""
    rows = [
        ("weights", plan.weights_bytes, "float32"),
        ("gradients", plan.gradients_bytes, "float32"),
        ("optimizer", plan.optimizer_bytes, plan.optimizer),
        ("activations", plan.cost.kept, "kept for the backward pass"),
        ("training in all", plan.memory, "but for what comes and goes inside a step"),
        *recomputed_rows(plan),
    ]
    if plan.cache:
        rows.append(("cache of a token", plan.cache_per_token, "keys and values, while the model writes"))
        rows.append(("cache of a row", plan.cache, f"{plan.length:,} tokens"))
    if plan.state:
        rows.append(("state of a row", plan.state, "however long it is"))
    return [(name, f"{count:,}", f"{count / 1e9:,.3f}", note) for name, count, note in rows]


def recomputed_rows(plan: "Plan") -> list[tuple[str, int, str]]:
    """Return the rows of a training whose blocks are recomputed, where that keeps less."""
    kept, again = plan.recomputed_bytes, plan.recomputed.training.total / plan.cost.training.total - 1
    if kept >= plan.cost.kept:
        return []
    note = f"blocks keep their inputs, one is whole at a time: {again:+.0%} operations"
    return [
        ("activations, recomputed", kept, note),
        ("training, recomputed", plan.memory - plan.cost.kept + kept, ""),
    ]


def print_training(operations: float, tokens: float, parameters: int) -> None:
    """Print what a whole training takes, and by the rule of thumb that leaves attention out."""
    from orrery.planning.training_compute import petaflop_days, training_flops

    print(f"\na training on {tokens:,.0f} tokens")
    rule = training_flops(parameters, tokens)
    for name, number in (("counted", operations), ("6 N D", rule)):
        print(f"{name:8}  {number:.4g} operations, {float(petaflop_days(number)):,.4g} petaflop/s-days")
