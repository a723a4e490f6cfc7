"""The list of instructions of a step while it is written, without numba: streams, matrices and where all stand."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from torch import Tensor, nn

from orrery.kernels.step import instructions as code
from orrery.kernels.step.codes import BLOCKS, ROUNDED, TURN, prepared_width
from orrery.nn.joined_linear import is_plain

LANES = 16


class NotRunnableError(Exception):
    """A part that no instruction computes; the message names it."""


class WorkspaceSlice(NamedTuple):
    """Some numbers of each row: the place in the workspace, how many, and how far apart rows are."""

    place: int
    width: int

    @property
    def step(self) -> int:
        """Return the numbers from row to row."""
        return padded(self.width)


def padded(width: int) -> int:
    """Return the least multiple of sixteen that holds so many numbers."""
    return (width + LANES - 1) // LANES * LANES


@dataclass
class Listing:
    """Instructions, matrices, and what must stay alive because its address stands there.

    Attributes:
        schemes: names of the stack's positions in the order of their numbers.
        depths: by depth, the mask whose store it keeps keys in, its key-value heads and their width.
    """

    instructions: list[list[int]] = field(default_factory=list)
    reals: list[list[float]] = field(default_factory=list)
    matrices: list[list[int]] = field(default_factory=list)
    alive: list[Tensor] = field(default_factory=list)
    schemes: list[str] = field(default_factory=list)
    depths: dict[int, tuple[str, int, int]] = field(default_factory=dict)
    heads: int = 1
    used: int = 0
    most: int = 0

    def stream(self, width: int) -> WorkspaceSlice:
        """Return a new stream."""
        slice_of_stream = WorkspaceSlice(self.used, width)
        self.used += padded(width)
        self.most = max(self.most, self.used)
        return slice_of_stream

    def add(
        self,
        do: int,
        x: WorkspaceSlice | None,
        y: WorkspaceSlice | None,
        out: WorkspaceSlice | None,
        *numbers: int,
        reals: Sequence[float] = (),
    ) -> None:
        """Append an instruction."""
        streams = [WorkspaceSlice(0, 0) if s is None else s for s in (x, y, out)]
        row = [do, *(s.place for s in streams), *(s.step for s in streams), *numbers]
        self.instructions.append(row + [0] * (code.NUMBERS - len(row)))
        self.reals.append([*reals, *[0.0] * (code.REALS - len(reals))])

    def products(self, x: WorkspaceSlice, matrices: Sequence[nn.Module]) -> list[WorkspaceSlice]:
        """Multiply a stream with several matrices in one instruction and return what comes out."""
        first, turns, outputs = len(self.matrices), 0, []
        several = [stored_matrix(matrix) for matrix in matrices]
        kinds = {stored.kind for stored in several}
        reads = {
            PAIRS: self.rounded(x) if PAIRS in kinds else x,
            IN_BLOCKS: self.prepared(x) if IN_BLOCKS in kinds else x,
        }
        for stored in several:
            out, read = self.stream(stored.channels), reads.get(stored.kind, x)
            bias = 0 if stored.bias is None else self.numbers(stored.bias)
            self.alive.append(stored.weight)
            row = [
                stored.kind, stored.weight.data_ptr(), stored.weight.stride(0) * stored.weight.element_size(),
                stored.channels, stored.length, bias, read.place, read.step, out.place, out.step, turns,
                *(stored.blocks if stored.kind == IN_BLOCKS else self._scales(stored.scale)),
            ]  # fmt: skip
            if stored.length != x.width:
                raise NotRunnableError(f"a matrix of {stored.length} columns for {x.width} channels")
            self.matrices.append(row)
            turns += -(-stored.channels // TURN)
            outputs.append(out)
        self.add(code.MULTIPLY, None, None, None, first, len(self.matrices), turns)
        return outputs

    def _scales(self, scale: Tensor | None) -> tuple[int, int]:
        """Return the address of the scales, and how many a channel has."""
        if scale is None:
            return 0, 0
        held = scale.detach().to(torch.float32).contiguous()
        self.alive.append(held)
        return held.data_ptr(), held.shape[1]

    def elementwise(
        self,
        number: int,
        x: WorkspaceSlice,
        y: WorkspaceSlice | None = None,
        out: WorkspaceSlice | None = None,
        p: float = 0.0,
    ) -> WorkspaceSlice:
        """Compute a function of every number, by default in place."""
        out = x if out is None else out
        self.add(code.ELEMENTWISE, x, y, out, number, x.width, reals=[p])
        return out

    def rounded(self, x: WorkspaceSlice) -> WorkspaceSlice:
        """Return a stream's numbers in bfloat16, two in the place of one."""
        out = self.stream(padded(x.width) // 2)
        return self.elementwise(ROUNDED, x, out=out)

    def prepared(self, x: WorkspaceSlice) -> WorkspaceSlice:
        """Return a stream as products with blocks read it."""
        out = self.stream(prepared_width(x.width))
        self.add(code.PREPARE, x, None, out, x.width)
        return out

    def numbers(self, values: Tensor, groups: int = 1) -> int:
        """Return the address of float32 numbers; each of ``groups`` begins at a multiple of sixteen."""
        rows = values.detach().to(torch.float32).reshape(groups, -1)
        held = torch.zeros(groups, padded(rows.shape[1]), dtype=torch.float32)
        held[:, : rows.shape[1]] = rows
        self.alive.append(held)
        return held.data_ptr()


class ListedMatrix(NamedTuple):
    """A matrix as it is stored: how, its numbers, how many channels come out and go in, its bias and its scales."""

    kind: int
    weight: Tensor
    channels: int
    length: int
    bias: Tensor | None
    scale: Tensor | None = None
    blocks: tuple[int, int] = (0, 0)
    """The number of their kind, and how many a channel has."""


FLOAT32, BFLOAT16, PAIRS, EIGHT_BITS, FOUR_BITS, IN_BLOCKS = range(6)
KINDS = {torch.float32: FLOAT32, torch.bfloat16: BFLOAT16}
"""How a table or a cache may be stored, and the number by which the kernels know it."""
MATRICES = {FLOAT32: FLOAT32, BFLOAT16: PAIRS}
"""How the kernels multiply with a matrix that is stored so: a stream is rounded to bfloat16 for one in bfloat16."""


WHOLE_NUMBERS: set[type[nn.Module]] = set()
"""Linears whose ``weight`` is int8 or, two numbers a byte, uint8, and whose ``weight_scale`` is ``[out, groups]``."""


BLOCK_MODULES: set[type[nn.Module]] = set()
"""Linears and embeddings whose ``weight`` is uint8, in blocks of the kind ``blocks``."""


def kind_of(values: Tensor, what: str) -> int:
    """Return the number of a dtype.

    Raises:
        NotRunnableError: the kernels have no such numbers.
    """
    if values.dtype not in KINDS:
        raise NotRunnableError(f"{what} in {str(values.dtype).removeprefix('torch.')}")
    return KINDS[values.dtype]


def block_row(module: nn.Module) -> tuple[int, int]:
    """Return of a matrix in blocks the number of their kind, and how many a row has.

    Raises:
        NotRunnableError: the kernels cannot read them.
    """
    weight, stored = (getattr(module, name) for name in ("weight", "blocks"))
    if stored.name not in BLOCKS or weight.stride(1) != 1:
        raise NotRunnableError(f"a matrix in blocks of {stored.name}")
    return BLOCKS.index(stored.name), weight.shape[1] // stored.size


def stored_matrix(module: nn.Module) -> ListedMatrix:
    """Return how a linear's matrix is stored.

    Raises:
        NotRunnableError: it is no plain linear.
    """
    if type(module) in WHOLE_NUMBERS:
        weight, scale, bias = (getattr(module, name) for name in ("weight", "weight_scale", "bias"))
        four = weight.dtype == torch.uint8
        length = weight.shape[1] * (2 if four else 1)
        return ListedMatrix(FOUR_BITS if four else EIGHT_BITS, weight, len(weight), length, bias, scale)
    if type(module) in BLOCK_MODULES:
        weight, stored, bias = (getattr(module, name) for name in ("weight", "blocks", "bias"))
        how = block_row(module)
        return ListedMatrix(IN_BLOCKS, weight, len(weight), how[1] * stored.block, bias, None, how)
    if not is_plain(module):
        raise NotRunnableError(f"a {type(module).__name__}")
    weight = module.weight.detach()
    if weight.stride(1) != 1:
        raise NotRunnableError("a matrix whose rows are not stored one after another")
    kind = MATRICES[kind_of(weight, "a matrix")]
    return ListedMatrix(kind, weight, weight.shape[0], weight.shape[1], module.bias)
