"""What ``orrery plan`` says of many devices: a layout in its parts, the best by devices, published runs."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from orrery.cli.numbers import ABOVE_ZERO, COUNT, COUNT_EACH

if TYPE_CHECKING:
    from orrery.models.model import ModelSpec
    from orrery.planning.layouts.layout_plan import LayoutPlan
    from orrery.planning.layouts.search import LayoutSearch
    from orrery.planning.layouts.work import DecoderWork

_MACHINE = "The kind of device: v100, a100-40gb, a100-80gb, h100, h200, tpu-v3, tpu-v4, or a YAML file of your own."
_DEVICES = "How many there are; several make a table. The best layout for each is searched."
_LAYOUT = "A layout instead of the best one, such as data=8,tensor=4,recompute=full."
_BATCH = "Tokens of the global batch."
_PUBLISHED = "Print published runs beside what the model of their machine predicts; no subject is needed."
_MEMORY = "Bytes that a device has; by default the machine's."
BATCH = 4_194_304
TOKENS_A_PARAMETER = 20
"""Hoffmann et al. 2022, approaches 1 and 2."""


@Parameter(name="*")
@dataclass(frozen=True)
class LayoutOptions:
    """On what a model is to be trained, and how."""

    machine: Annotated[str | None, Parameter(help=_MACHINE)] = None
    devices: Annotated[tuple[int, ...], COUNT_EACH, Parameter(help=_DEVICES)] = ()
    layout: Annotated[str | None, Parameter(help=_LAYOUT)] = None
    batch: Annotated[int, COUNT, Parameter(help=_BATCH)] = BATCH
    memory: Annotated[float | None, ABOVE_ZERO, Parameter(help=_MEMORY)] = None
    published: Annotated[bool, Parameter(help=_PUBLISHED, negative="")] = False

    @property
    def asked(self) -> list[str]:
        """The flags that ask for a layout; none where none is asked for."""
        given = {
            "--machine": self.machine is not None,
            "--devices": bool(self.devices),
            "--layout": self.layout is not None,
            "--memory": self.memory is not None,
            "--batch": self.batch != BATCH,
        }
        return [flag for flag, is_given in given.items() if is_given]


NO_LAYOUTS = LayoutOptions()
"""What is used unless told otherwise."""


def layouts(spec: "ModelSpec", work: "DecoderWork", options: LayoutOptions, tokens: float | None = None) -> None:
    """Print the given layout, the best one for a number of devices, or the best for each of several.

    Args:
        spec: the model.
        work: its sizes.
        options: what is asked.
        tokens: of the whole training, for days and cost; by default 20 a parameter (Hoffmann et al. 2022).

    Raises:
        UsageError: the machine, the layout or the batch cannot be, or nothing fits: what is wrong, and what would fit.
    """
    from orrery.planning.layouts.layout import parse_layout
    from orrery.planning.layouts.layout_plan import plan_layout, refuse_too_large
    from orrery.planning.layouts.search import LayoutSearch, best, would_fit
    from orrery.planning.layouts.tables import DEVICES
    from orrery.planning.layouts.training import training_of
    from orrery.planning.machines import load_machine

    machine = load_machine(options.machine or "h100")
    training = training_of(work, options.batch, next(iter(machine.rates)))
    tokens = tokens or float(TOKENS_A_PARAMETER * work.active)
    limit = machine.memory if options.memory is None else options.memory
    head = (
        f"{work.name} on {machine.name}: {training.sequences:,} sequences of {training.length:,} tokens a step, "
        f"{tokens:,.0f} tokens in all, {limit:,.0f} bytes a device"
    )
    counts = options.devices or DEVICES
    search = LayoutSearch(work, training, machine, counts[0], limit)
    if options.layout is None and len(counts) > 1:
        print(head)
        print_scaled(search, counts, tokens)
        return
    if options.layout is None:
        plan = best(search)
    else:
        plan = plan_layout(work, training, parse_layout(options.layout), machine)
        _refuse_other_number(plan, options.devices)
        refuse_too_large(plan, limit, would_fit(plan, limit) if plan.memory.total > limit else "")
    print(head)
    print_plan(plan, limit, tokens)
    print(refused_by_a_run(plan, spec) or "the keys parallel.* are those of a recipe")


def refused_by_a_run(plan: "LayoutPlan", spec: "ModelSpec") -> str:
    """Say what of a layout a recipe or a run refuses; nothing where it takes all.

    The layers of a model ask for a module without numbers, so that one of any size is made at once.
    """
    import torch

    from orrery.errors import UsageError
    from orrery.planning.layouts.launch import launch
    from orrery.recipes.parallel import ParallelSettings, unjoined
    from orrery.training.parallel.parts import parts_of

    degrees = launch(plan.layout, plan.training, plan.machine).degrees()
    refused = unjoined({**ParallelSettings().model_dump(), **degrees})
    if refused:
        return "a recipe refuses " + ", ".join(f"parallel.{name} ({why})" for name, why in refused.items())
    if plan.layout.tensor > 1:
        with torch.device("meta"):
            model = spec.build()
        try:
            parts_of(model, plan.layout.tensor)
        except UsageError as error:
            return f"a run refuses it: {error.message}"
    return ""


def _refuse_other_number(plan: "LayoutPlan", devices: tuple[int, ...]) -> None:
    from orrery.errors import UsageError

    own = plan.layout.devices
    if devices and devices != (own,):
        numbers_given = ", ".join(f"{count:,}" for count in devices)
        message = f"the layout {plan.layout.text()} is of {own:,} devices, and --devices says {numbers_given}"
        raise UsageError(message, "its degrees multiply to the devices: change one of them, or leave --devices out")


def print_plan(plan: "LayoutPlan", limit: float, tokens: float) -> None:
    """Print a plan: memory, communication, time, what the training takes, and how it is started."""
    from orrery.cli.tables import print_table
    from orrery.planning.layouts.launch import launch
    from orrery.planning.layouts.tables import dollars, memory_rows, time_rows, traffic_rows

    print(f"\nlayout {plan.layout.text()}: {plan.layout.devices:,} devices")
    print("\nbytes of the fullest device")
    print_table(("what", "bytes", "of the device"), memory_rows(plan, limit))
    if rows := traffic_rows(plan):
        print("\nbytes that each device sends in a step")
        print_table(("parallelism", "ranks", "bytes", "network", "formula", "paper"), rows)
    print("\nseconds of a step")
    print_table(("what", "seconds", "of the step"), time_rows(plan))
    print(
        f"\n{plan.tokens_per_second:,.0f} tokens a second, MFU {100 * plan.mfu():.1f} %, "
        f"{plan.days(tokens):,.1f} days, {dollars(plan.cost(tokens))} dollars"
    )
    start = launch(plan.layout, plan.training, plan.machine)
    print(f"\n{start.micro_batches:,} micro batches a replica; on every node:\n{start.command()}")


def print_scaled(search: "LayoutSearch", counts: tuple[int, ...], tokens: float) -> None:
    """Print the best plan for each number of devices."""
    from orrery.cli.tables import print_table
    from orrery.planning.layouts.tables import SCALED_COLUMNS, scaled, scaled_rows

    plans = scaled(search, counts)
    print()
    print_table(SCALED_COLUMNS, scaled_rows(plans, tokens))
    for one in plans:
        if one.plan is None:
            print(one.why)


def published_layouts() -> None:
    """Print published runs beside what the model of their machine predicts."""
    from orrery.cli.tables import print_table
    from orrery.planning.layouts.published import comparisons
    from orrery.planning.layouts.tables import PUBLISHED_COLUMNS, published_rows

    compared = comparisons()
    print_table(PUBLISHED_COLUMNS, published_rows(compared))
    print("\nsources")
    for source in dict.fromkeys(one.run.source for one in compared):
        print(f"- {source}")
