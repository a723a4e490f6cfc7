"""Two models on the same tokens: how far apart they are after every step, and where they part first."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TypeAlias

import torch
from torch import Tensor

from orrery.checkpoints.tensors import raw_bytes
from orrery.errors import UsageError
from orrery.exchange.reading.architecture import of_folder
from orrery.exchange.reading.config_keys import read_config
from orrery.exchange.reading.files import CONFIG
from orrery.exchange.reading.placement import DTYPES
from orrery.exchange.reading.read import locate, read
from orrery.exchange.reading.weights import weights_of
from orrery.inspection.recorder import Recorder
from orrery.models.model import ModelSpec
from orrery.nn.inputs import Images
from orrery.tuning import merge

BOUNDS = {"float64": 1e-9, "float32": 1e-5, "bfloat16": 5e-2, "float16": 1e-2}
"""How far two exact implementations are apart, by what they compute in."""
FOREIGN = 1e-6
"""How exact a foreign reader can be: as installed, transformers computes norms and softmax in float32, in float64 too.

What remains of each family is recorded in ``laws/exactness.json``, as is its difference with these casts widened.
"""
ROWS, LONGEST = 2, 16

Values: TypeAlias = Mapping[str, Tensor]
Look: TypeAlias = Callable[[Path, Sequence[Tensor], torch.dtype], Values]


@dataclass(frozen=True)
class ComparedTensor:
    """One tensor inside the models.

    Attributes:
        key: its name, as in a trace.
        error: ``max|a - b| / max(1, max|b|)``; infinite where the shapes differ.
        shapes: of both.
    """

    key: str
    error: float
    shapes: tuple[list[int], list[int]]


@dataclass(frozen=True)
class Parity:
    """What a comparison found.

    Attributes:
        steps: in the order of computation.
        bound: what counts as equal.
        weights: names of the tensors that differ; empty too where the other side is not ours.
        alone: keys that only one of the two has.
    """

    steps: Sequence[ComparedTensor]
    bound: float
    weights: Sequence[str] = ()
    alone: Sequence[str] = ()

    @property
    def first(self) -> ComparedTensor | None:
        """The first step at which the models differ."""
        return next((step for step in self.steps if not step.error <= self.bound), None)


def compare(
    first: str | Path, second: str | Path, dtype: str = "float32", *, other: Look | None = None, seed: int = 0
) -> Parity:
    """Run two models on the same random tokens or images and compare everything inside.

    Only one of them is in memory at a time.

    Args:
        first: a run, a checkpoint or a Hugging Face folder.
        second: another.
        dtype: what both compute in.
        other: reads the second model; by default we do.
        seed: of the inputs, in which no token is padding.

    Raises:
        UsageError: the models take different things, or have nothing in common.
    """
    if dtype not in BOUNDS:
        raise UsageError(f"no dtype {dtype!r}", f"use {', '.join(BOUNDS)}")
    folders = [locate(path) for path in (first, second)]
    drawn = inputs([of_folder(folder) for folder in folders], seed)
    padding = set().union(*map(_paddings, folders))
    given = [_without(x, padding) for x in drawn]
    ours, weights = look(folders[0], given, DTYPES[dtype])
    if other is not None:
        bound = max(BOUNDS[dtype], FOREIGN)
        return Parity(_in_common(_steps(ours, other(folders[1], given, DTYPES[dtype])), bound), bound)
    theirs, their_weights = look(folders[1], given, DTYPES[dtype])
    changed = [name for name, digest in weights.items() if their_weights.get(name, digest) != digest]
    return Parity(_steps(ours, theirs), BOUNDS[dtype], changed, sorted(ours.keys() ^ theirs.keys()))


def inputs(specs: Sequence[ModelSpec], seed: int) -> list[Tensor]:
    """Return random tokens or images that both models know, and the texts that stand beside them.

    Raises:
        UsageError: they take different things.
    """
    kinds = [(spec.target_vocabulary is not None, _images(spec)) for spec in specs]
    if kinds[0] != kinds[1]:
        raise UsageError("these two models do not take the same input", "compare models of one kind")
    pair, image = kinds[0]
    length = min(LONGEST, *(spec.context for spec in specs))
    rng = torch.Generator().manual_seed(seed)
    if image is None:
        known = min(spec.vocabulary for spec in specs if spec.vocabulary)
        given = [torch.randint(known, (ROWS, length), generator=rng)]
    else:
        given = [torch.randn(ROWS, *image, generator=rng)]
    if pair:
        known = min(spec.target_vocabulary for spec in specs if spec.target_vocabulary)
        given.append(torch.randint(known, (ROWS, length), generator=rng))
    return given


def _paddings(folder: Path) -> set[int]:
    """Return the id of padding that a folder names; within a text some families count no position for it."""
    config = read_config(folder) if (folder / CONFIG).is_file() else {}
    named = config.get("pad_token_id")
    return {named} if isinstance(named, int) else set()


def _without(x: Tensor, ids: set[int]) -> Tensor:
    """Return tokens with the next id that is free in the place of some."""
    if x.is_floating_point() or not ids:
        return x
    free = next(id for id in range(len(ids) + 1) if id not in ids)
    return torch.where(torch.isin(x, torch.tensor(sorted(ids))), free, x)


def _images(spec: ModelSpec) -> tuple[int, ...] | None:
    """Return the shape of the images that a model reads, if it reads any."""
    read = spec.inputs.get("images")
    return read.shape if isinstance(read, Images) else None


@torch.no_grad()
def look(folder: Path, given: Sequence[Tensor], dtype: torch.dtype) -> tuple[Values, Mapping[str, str]]:
    """Return what is inside our model on these inputs, and a digest of each of its weights as they are stored."""
    model = merge(read(folder).model) if folder.is_file() else read(folder).model  # what blocks stand for
    weights = {name: sha256(raw_bytes(tensor)).hexdigest() for name, tensor in weights_of(model).items()}
    recorder = Recorder()
    run = model.logits if model.spec.head_names else model.hidden
    model.to(dtype)
    run(*(x.to(dtype) if x.is_floating_point() else x for x in given), taps=recorder)
    return recorder.values, weights


def _steps(ours: Values, theirs: Values) -> list[ComparedTensor]:
    """Compare what both have, in our order of computation."""
    steps = [_step(key, value, theirs[key]) for key, value in ours.items() if key in theirs]
    if not steps:
        raise UsageError("the two models have nothing in common that could be compared", "compare models of one kind")
    return steps


def _in_common(steps: Sequence[ComparedTensor], bound: float) -> list[ComparedTensor]:
    """Leave out steps that differ before one of the same stack that is equal.

    Models that have parted do not meet again: there, the foreign module ends at another place than our block does.
    """
    common: list[ComparedTensor] = []
    met: set[bool] = set()
    for step in reversed(steps):
        side = step.key.startswith("encoder.")
        if step.error <= bound:
            met.add(side)
        if step.error <= bound or side not in met:
            common.append(step)
    return common[::-1]


def _step(key: str, ours: Tensor, theirs: Tensor) -> ComparedTensor:
    shapes = (list(ours.shape), list(theirs.shape))
    if ours.shape != theirs.shape:
        return ComparedTensor(key, float("inf"), shapes)
    a, b = ours.double(), theirs.double()
    same = (a == b) | (a.isnan() & b.isnan())
    gap = torch.where(same, 0.0, (a - b).abs())  # infinite scores of hidden places are equal, not NaN
    scale = torch.where(b.isfinite(), b, 0.0).abs().max().clamp(min=1)
    return ComparedTensor(key, float((gap.nan_to_num(nan=torch.inf) / scale).max()), shapes)
