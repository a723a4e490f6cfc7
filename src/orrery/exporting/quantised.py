"""A model with its matrices in whole numbers, as a folder: written aside, read back, compared, then given its name."""

import time
from dataclasses import dataclass
from pathlib import Path

from torch import nn

from orrery.checkpoints.outputs import OutputFolder
from orrery.exporting.average import WRITTEN
from orrery.exporting.export import compare_bytes
from orrery.language_model.model import LanguageModel
from orrery.models.model import Model
from orrery.reading.read import read
from orrery.reading.weights import weights_of
from orrery.tuning.quantise import Quantise

_HEAD = "head."


@dataclass(frozen=True)
class QuantisedFolder:
    """What was read and written.

    Attributes:
        path: the folder.
        transforms: what was done, in order.
        before: bytes of the weights that were read.
        after: bytes of the weights that were written.
        read_before: seconds that reading the first took.
        read_after: seconds that reading the second took.
        notes: what a user may not expect.
    """

    path: Path
    transforms: tuple[Quantise, ...]
    before: int
    after: int
    read_before: float
    read_after: float
    notes: tuple[str, ...]


def quantise(
    model: str | Path,
    out: str | Path,
    bits: int = 8,
    *,
    group: int | None = None,
    head: int | None = 8,
    overwrite: bool = False,
) -> QuantisedFolder:
    """Write a model with the matrices of its blocks in whole numbers, and those of its head where none is tied.

    The folder is in our own layout, which keeps what was done to a model; it loads as any other model.

    Args:
        model: a run, a checkpoint, or a Hugging Face folder.
        out: the new folder.
        bits: 8 or 4 for the matrices inside blocks.
        group: inputs that share a scale, see `Quantise`.
        head: bits for the head, or none, and it stays as it is. A head that is the embedding table stays too.
        overwrite: replace such a folder that is there.

    Raises:
        UsageError: the rule of `outputs` refuses ``out``, or the model cannot be quantised so.
        ModelFileError: the model is damaged.
        RunError: what was written is not what was read back.
    """
    blocks = Quantise(bits=bits, group=group)
    target = OutputFolder(out, WRITTEN, inputs=[model], overwrite=overwrite)
    start = time.perf_counter()
    stored = read(model)
    reading = time.perf_counter() - start
    before = _bytes(stored.model)
    names, notes = _head_of(stored.model) if head else ((), ())
    heads = [Quantise(bits=head, group=group if head == bits else None, targets=names)] if head and names else []
    for transform in (blocks, *heads):
        transform.apply(stored.model)
    weights = weights_of(stored.model)
    with target.aside(_bytes(stored.model)) as fresh:
        LanguageModel(stored).save(fresh, layout="own")
        start = time.perf_counter()
        again = read(fresh).model
        rereading = time.perf_counter() - start
        compare_bytes(weights, weights_of(again))
    return QuantisedFolder(Path(out), (blocks, *heads), before, _bytes(stored.model), reading, rereading, tuple(notes))


def _head_of(model: Model) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the linears of the head that share no matrix, and a note for those that do."""
    users: dict[int, int] = {}
    for _, parameter in model.named_parameters(remove_duplicate=False):
        users[id(parameter)] = users.get(id(parameter), 0) + 1
    linears = {name: part for name, part in model.named_modules() if isinstance(part, nn.Linear)}
    inside = {name: users[id(part.weight)] > 1 for name, part in linears.items() if name.startswith(_HEAD)}
    notes = tuple(f"{name} is the embedding table and stays as it is" for name, tied in inside.items() if tied)
    return tuple(name for name, tied in inside.items() if not tied), notes


def _bytes(model: Model) -> int:
    return sum(tensor.nbytes for tensor in weights_of(model).values())
