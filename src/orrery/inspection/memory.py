"""The memory of a trace: how many bytes its kept values take, known before it runs."""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from orrery.errors import MachineError, UsageError
from orrery.inspection.checks import Mixing
from orrery.inspection.definition import LARGEST, DefinitionBeside
from orrery.inspection.kept_on_disk import layer_of
from orrery.inspection.recorder import Recorder
from orrery.models.model import Model
from orrery.nn.attention.kernels import Kernel, eager, sdpa
from orrery.nn.attention.operands import KeysValues, Operands, unseen
from orrery.nn.inputs import Input, Tokens

SMALL = 2**16
"""Tokens of a row times those that they look at: a call of no more is not measured before it runs."""
SHORT, LONGER = 2, 3
"""The lengths from which the sides of all tensors follow."""
MOST_KNOWN = 16
"""Calls whose shapes are kept of a model."""
PIECES = 64
"""Bytes that the definition holds for each score of a piece: about five tensors, some of them in float64."""
_LIMITS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory.current"))


@dataclass(frozen=True)
class TraceCost:
    """What a trace will keep.

    Attributes:
        bytes_of: by key, in the order of computation, for the keys that ``keep`` names.
        shapes: of the same tensors.
    """

    bytes_of: Mapping[str, int]
    shapes: Mapping[str, tuple[int, ...]]

    @property
    def total(self) -> int:
        """The bytes of all of it."""
        return sum(self.bytes_of.values())

    @property
    def largest_layer(self) -> int:
        """The most bytes that are in memory at once where a trace goes to a folder."""
        layers: dict[str, int] = {}
        for key, size in self.bytes_of.items():
            layers[layer_of(key)] = layers.get(layer_of(key), 0) + size
        return max(layers.values(), default=0)

    def by_pattern(self, patterns: Sequence[str]) -> dict[str, int]:
        """Return the bytes that each pattern of keys names; a key that several name counts for each of them."""
        return {
            pattern: sum(size for key, size in self.bytes_of.items() if fnmatchcase(key, pattern))
            for pattern in patterns
        }


@torch.no_grad()
def trace_bytes(
    model: Model, length: int, keep: Sequence[str] = ("*",), *, source_length: int | None = None, rows: int = 1
) -> TraceCost:
    """Return the bytes that a trace of this length will keep, exactly, key by key.

    Every side of a kept tensor is ``c + a L + b S`` for L tokens and S tokens of a source. Calls of two and three
    tokens tell the three numbers, so the estimate costs about ten tokens, whatever the length.

    Args:
        model: any assembly, in eval mode.
        length: the tokens of a row; those of the target where a source stands beside it.
        keep: patterns as in ``trace``.
        source_length: the tokens of an encoder-decoder's source.
        rows: the rows of the call.

    Raises:
        UsageError: a pattern names nothing, or the length of the source is missing.
    """
    reads = list(model.spec.inputs.values())
    lengths = [length] if len(reads) == 1 else [source_length, length]
    wanted: list[int] = []
    for n, read in zip(lengths, reads, strict=True):
        if n is None and isinstance(read, Tokens):
            raise UsageError("this model reads a source, and nothing says how long it is", "give source_length")
        wanted.append(SHORT if n is None or not isinstance(read, Tokens) else n)
    base = _shapes(model, [SHORT] * len(reads), rows, keep)
    sides = {key: list(shape) for key, (shape, _) in base.items()}
    for place, n in enumerate(wanted):
        if n != SHORT:
            longer = _shapes(model, [LONGER if at == place else SHORT for at in range(len(reads))], rows, keep)
            for key, (shape, _) in base.items():
                growth = [b - a for a, b in zip(shape, longer[key][0], strict=True)]
                sides[key] = [side + grows * (n - SHORT) for side, grows in zip(sides[key], growth, strict=True)]
    sizes = {key: base[key][1] * math.prod(along) for key, along in sides.items()}
    return TraceCost(sizes, {key: tuple(along) for key, along in sides.items()})


@dataclass(frozen=True)
class PassCost:
    """What a pass needs that keeps no scores and patterns, and computes their parts when they are asked for.

    Attributes:
        held: bytes of what it keeps.
        working: bytes that it needs beside, while it runs: one layer, pieces of scores, the logits of the check.
    """

    held: int
    working: int

    @property
    def total(self) -> int:
        """The most bytes at once, beside the weights."""
        return self.held + self.working


def pass_bytes(model: Model, cost: TraceCost, held: Collection[str]) -> PassCost:
    """Return the memory of a pass, stated before it runs.

    Args:
        model: what will run.
        cost: of all tensors of the pass.
        held: the keys that are kept.
    """
    linear = {key: size for key, size in cost.bytes_of.items() if not key.endswith((".scores", ".pattern"))}
    layers: dict[str, int] = {}
    for key, size in linear.items():
        layers[layer_of(key)] = layers.get(layer_of(key), 0) + size
    logits = cost.bytes_of.get("logits", 0)
    # A layer's tensors with their temporaries, the logits with and without the recorder and where they differ, and
    # what the definition holds of a piece, in float32 and float64.
    working = 2 * max(layers.values(), default=0) + 3 * logits + PIECES * LARGEST + _bias_bytes(model, cost)
    return PassCost(sum(cost.bytes_of[key] for key in held) + logits, working)


def _bias_bytes(model: Model, cost: TraceCost) -> int:
    """Return the bytes of what is added to the scores of each pair of tokens (ALiBi, T5), and of one copy with a mask.

    The model makes such a bias whole, whatever is kept; blocks that share one hold it once.
    """
    recorder, biases = Recorder(), dict[int, tuple[Tensor, int]]()
    kernel = eager if model.kernel is eager else sdpa

    def noting(q_BHLC: Tensor, kv: KeysValues, operands: Operands) -> Tensor:
        bias = operands.bias_BHLS
        if bias is not None:
            shape = cost.shapes[recorder.key(operands.tap, "scores")]
            sides = [1 if now == 1 else side for now, side in zip(bias.shape, shape, strict=True)]
            biases[bias.data_ptr()] = bias, bias.element_size() * math.prod(sides)
        return kernel(q_BHLC, kv, operands._replace(tap=unseen))

    _run(model, [SHORT] * len(model.spec.inputs), 1, noting, recorder)
    sizes = [size for _, size in biases.values()]
    return sum(sizes) + max(sizes, default=0)


def refuse_too_large(model: Model, inputs: Sequence[Tensor], keep: Sequence[str], *, to_disk: bool) -> None:
    """Refuse a trace whose kept values do not fit into the memory that is free.

    Raises:
        MachineError: says how much it would keep, how much is free, and what takes most of it.
    """
    length, source = inputs[-1].shape[1], inputs[0].shape[1]
    if len(inputs[-1]) * length * max(length, source) <= SMALL:
        return
    cost = trace_bytes(model, length, keep, source_length=source, rows=len(inputs[-1]))
    needed, free = cost.largest_layer if to_disk else cost.total, free_bytes(inputs[-1].device)
    if free is None or needed <= free:
        return
    largest = max(cost.bytes_of, key=cost.bytes_of.__getitem__)
    raise MachineError(
        f"this trace would keep {readable(needed)} at once, and {readable(free)} of memory are free",
        f"keep fewer values (keep=[...]; {largest} alone takes {readable(cost.bytes_of[largest])})"
        + ("" if to_disk else ", or stream them to the disk (folder=PATH)"),
    )


def free_bytes(device: torch.device) -> int | None:
    """Return the memory that a program may still take there, or nothing where the system does not say."""
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    facts = Path("/proc/meminfo")
    lines = facts.read_text().splitlines() if facts.exists() else []
    limits = [int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")]
    if all(path.exists() for path in _LIMITS):
        limit, used = (path.read_text().strip() for path in _LIMITS)
        limits += [max(0, int(limit) - int(used))] if limit.isdigit() else []
    return min(limits, default=None)


_Shapes = Mapping[str, tuple[tuple[int, ...], int]]
_KNOWN: WeakKeyDictionary[Model, dict[tuple[object, ...], _Shapes]] = WeakKeyDictionary()
"""By model, what was measured: a page asks for several lengths, which all follow from the same calls."""


def _shapes(model: Model, lengths: Sequence[int], rows: int, keep: Sequence[str]) -> _Shapes:
    """Return the shapes of what a trace of so few tokens keeps, and the bytes of a number."""
    numbers = sum(one.numel() for one in model.parameters())  # others once it is pruned
    known, asked = _KNOWN.setdefault(model, {}), (model.dtype, model.kernel, numbers, *lengths, rows, *keep)
    if asked not in known:
        if len(known) >= MOST_KNOWN:
            known.clear()
        recorder = Recorder(keep)
        kernel = eager if model.kernel is eager else DefinitionBeside(sdpa, recorder, Mixing())
        _run(model, lengths, rows, kernel, recorder)
        recorder.check_used()
        known[asked] = {key: (tuple(one.shape), one.element_size()) for key, one in recorder.values.items()}
    return known[asked]


def _run(model: Model, lengths: Sequence[int], rows: int, kernel: Kernel, recorder: Recorder) -> None:
    """Run a model over so few tokens, or an image."""
    device = next(model.parameters()).device
    given = [_zeros(read, rows, n, model.dtype) for read, n in zip(model.spec.inputs.values(), lengths, strict=True)]
    model.logits(*(x.to(device) for x in given), kernel=kernel, taps=recorder)


def _zeros(read: Input, rows: int, length: int, dtype: torch.dtype) -> Tensor:
    if isinstance(read, Tokens):
        return torch.zeros(rows, length, dtype=torch.long)
    return torch.zeros(rows, *read.shape, dtype=dtype)


def readable(count: int) -> str:
    """Return a number of bytes as people read it."""
    return f"{count / 2**30:,.1f} GiB" if count >= 2**30 else f"{count / 2**20:,.0f} MiB"
