"""A model with its matrices in whole numbers, as a folder: written aside, read back, compared, then given its name."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import nn

from orrery.checkpoints.gguf_blocks import BY_NAME
from orrery.checkpoints.outputs import OutputFolder
from orrery.errors import UsageError
from orrery.exchange.exporting.average import WRITTEN
from orrery.exchange.exporting.export import compare_bytes
from orrery.exchange.reading.read import Stored, read
from orrery.exchange.reading.weights import weights_of
from orrery.exchange.saving.beside import copy_beside
from orrery.exchange.saving.stored import save
from orrery.models.model import Model
from orrery.tuning import apply_calibrated
from orrery.tuning.blocks import StoredBlocks, can_stay, store_table
from orrery.tuning.quantise import Quantise

EIGHT_BIT_GROUP = 256
"""Inputs that share a scale where eight bits are asked for and no group: benchmarks/quantisation.json has the cost."""
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
    transforms: tuple[Quantise | StoredBlocks, ...]
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
    eight: Sequence[str] = (),
    head: int | None = 8,
    calibrate: Callable[[Stored], Any] | None = None,
    say: Callable[[str], None] = lambda line: None,
    overwrite: bool = False,
) -> QuantisedFolder:
    """Write a model with the matrices of its blocks and of its head in whole numbers.

    The folder is in our own layout, which keeps what was done to a model; it loads as any other model.

    Args:
        model: a run, a checkpoint, or a Hugging Face folder.
        out: the new folder.
        bits: 8 or 4 for the matrices inside blocks.
        group: inputs that share a scale, at most; by default 256 with eight bits, 32 with four.
        eight: patterns of the matrices that keep eight bits where ``bits`` is 4.
        head: bits for the head, or none, and it stays as it is. A head that is the embedding table, and with it the
            table, is stored in Q8_0, whatever the bits, where its width is a multiple of 32.
        calibrate: lets the model read a text, for which the four-bit numbers of the blocks are chosen (GPTQ).
        say: told what is done.
        overwrite: replace such a folder that is there.

    Raises:
        UsageError: the rule of `outputs` refuses ``out``, or the model cannot be quantised so.
        ModelFileError: the model is damaged.
        RunError: what was written is not what was read back.
    """
    if eight and bits != 4:
        raise UsageError(f"every matrix has {bits} bits already", "take bits=4, or leave out what keeps eight")
    finer = (Quantise(bits=8, group=EIGHT_BIT_GROUP, targets=tuple(eight)),) if eight else ()
    groups = {8: EIGHT_BIT_GROUP, 4: None, bits: group or (EIGHT_BIT_GROUP if bits == 8 else None)}
    blocks = Quantise(bits=bits, group=groups[bits], leave=(*Quantise.leave, *eight))
    target = OutputFolder(out, WRITTEN, inputs=[model], overwrite=overwrite)
    start = time.perf_counter()
    stored = read(model)
    reading = time.perf_counter() - start
    before = _bytes(stored.model)
    for transform in finer:
        transform.apply(stored.model)
    if calibrate is None:
        blocks.apply(stored.model)
    else:
        read_text = calibrate
        apply_calibrated(blocks, stored.model, lambda: read_text(stored), say)
    behind, notes = _head(stored.model, head, groups.get(head)) if head else ((), ())
    weights = weights_of(stored.model)
    with target.aside(_bytes(stored.model)) as fresh:
        save(stored, fresh, layout="own")
        copy_beside(stored.folder, fresh)
        start = time.perf_counter()
        again = read(fresh).model
        rereading = time.perf_counter() - start
        compare_bytes(weights, weights_of(again))
    done = (*finer, blocks, *behind)
    return QuantisedFolder(Path(out), done, before, _bytes(stored.model), reading, rereading, notes)


def _head(model: Model, bits: int, group: int | None) -> tuple[tuple[Quantise | StoredBlocks, ...], tuple[str, ...]]:
    """Store the head in whole numbers, and return what was done, and a note on one that is the embedding table."""
    names, tied = _head_of(model)
    heads = (Quantise(bits=bits, group=group, targets=names),) if names else ()
    for transform in heads:
        transform.apply(model)
    if tied is None:
        return heads, ()
    tables, notes = _stored_table(model, *tied)
    return (*heads, *tables), notes


def _head_of(model: Model) -> tuple[tuple[str, ...], tuple[str, str] | None]:
    """Return the linears of the head that share no matrix, and the names of one that does and of its table."""
    users: dict[int, list[str]] = {}
    for name, parameter in model.named_parameters(remove_duplicate=False):
        users.setdefault(id(parameter), []).append(name)
    linears = {name: part for name, part in model.named_modules() if isinstance(part, nn.Linear)}
    inside = {name: users[id(part.weight)] for name, part in linears.items() if name.startswith(_HEAD)}
    tied = [(name, shared[0]) for name, shared in inside.items() if len(shared) > 1]
    return tuple(name for name, shared in inside.items() if len(shared) == 1), tied[0] if tied else None


def _stored_table(model: Model, head: str, table: str) -> tuple[tuple[StoredBlocks, ...], tuple[str, ...]]:
    """Store the table that a head is tied to in blocks, and return what was done, and a note."""
    width = model.get_parameter(table).shape[1]
    if width % BY_NAME["Q8_0"].block or not can_stay(model, table) or not can_stay(model, f"{head}.weight"):
        return (), (f"{head} is the embedding table and stays as it is: a table of {width} channels has no blocks",)
    return (store_table(model, table),), (f"{head} is the embedding table: both are in Q8_0, eight bits a number",)


def _bytes(model: Model) -> int:
    return sum(tensor.nbytes for tensor in weights_of(model).values())
