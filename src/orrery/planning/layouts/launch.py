"""A layout as the settings of ``torchrun``: nodes, processes of each, and the degrees that the processes share."""

from dataclasses import dataclass

from orrery.planning.layouts.layout import ParallelLayout
from orrery.planning.layouts.training import TrainingStep
from orrery.planning.machines import Machine
from orrery.recipes.parallel import divisors

PORT = 29_500


@dataclass(frozen=True)
class Launch:
    """How a run is started: one process a device.

    Attributes:
        nodes: machines with a set of devices.
        processes: of each node.
        layout: the degrees.
        micro_batches: of each replica in a step.
    """

    nodes: int
    processes: int
    layout: ParallelLayout
    micro_batches: int

    def command(self, recipe: str = "RECIPE") -> str:
        """Return the line to run on every node, with the degrees as a recipe's keys."""
        group = ["torchrun", f"--nnodes {self.nodes}", f"--nproc-per-node {self.processes}"]
        if self.nodes > 1:
            group += ["--rdzv-backend c10d", f"--rdzv-endpoint HOST:{PORT}"]
        keys = [f"--parallel.{name} {str(value).lower()}" for name, value in self.degrees().items()]
        return " ".join([*group, "-m orrery train", recipe, *keys])

    def degrees(self) -> dict[str, int | str | bool]:
        """Return the settings that are not as usual, by their key, and ``micro``, which is no number as usual there."""
        usual, layout = ParallelLayout(), self.layout
        names = ("data", "fsdp", "tensor", "pipeline", "context", "expert", "micro", "interleave")
        settings: dict[str, int | str | bool] = {name: getattr(layout, name) for name in names}
        settings = {name: value for name, value in settings.items() if value != getattr(usual, name) or name == "micro"}
        if layout.fsdp > 1:
            settings["zero"] = layout.zero
        if layout.tensor > 1 and not layout.sequence:
            settings["sequence"] = False
        if layout.recompute != usual.recompute:
            settings["recompute"] = layout.recompute.name
        return settings


def launch(layout: ParallelLayout, training: TrainingStep, machine: Machine) -> Launch:
    """Return how a layout is started: full nodes where its devices are a multiple of a node's.

    Else each node has the largest share of a node's devices that divides them.
    """
    processes = max(n for n in divisors(layout.devices) if n <= machine.node)
    return Launch(layout.devices // processes, processes, layout, layout.micro_batches(training))
