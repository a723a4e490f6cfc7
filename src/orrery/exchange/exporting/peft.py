"""A model's low-rank adapters out as a folder of peft's: written aside, read back, compared, then given its name."""

from pathlib import Path

import torch
from torch import Tensor

from orrery.checkpoints.outputs import OutputFolder
from orrery.checkpoints.tensors import read_tensors
from orrery.errors import RunError
from orrery.exchange.exporting.export import Exported
from orrery.exchange.reading.read import Stored
from orrery.tuning.peft.places import CONFIG, WEIGHTS
from orrery.tuning.peft.save import save_adapter

FILES = (CONFIG, WEIGHTS)
"""What `export_peft` leaves in a folder."""


def export_peft(stored: Stored, folder: str | Path, *, overwrite: bool = False) -> Exported:
    """Write the adapters of a model as peft does; its base is not written.

    Raises:
        UsageError: the rule of `outputs` refuses the folder, or peft's files cannot hold what the model has.
        MachineError: the disk refuses.
        RunError: what was read back differs.
    """
    folder = Path(folder)
    target = OutputFolder(folder, FILES, inputs=[stored.folder], overwrite=overwrite)
    with target.aside(0) as fresh:
        tensors, again = save_adapter(stored, fresh), read_tensors(fresh / WEIGHTS)
        if wrong := [name for name in tensors.keys() | again if not _equal(tensors.get(name), again.get(name))]:
            raise RunError(f"{wrong[0]} was read back as something else", "check the disk")
    size = sum((folder / name).stat().st_size for name in FILES)
    parameters = sum(tensor.numel() for tensor in tensors.values())
    return Exported(folder, f"peft's layout, {stored.family}", parameters, size, 0.0)


def _equal(one: Tensor | None, other: Tensor | None) -> bool:
    return one is not None and other is not None and torch.equal(one, other)
