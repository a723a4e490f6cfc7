"""Matrices in the blocks of a GGUF file: what others have rounded runs as it is stored."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float, UInt8
from torch import Tensor, nn

from orrery.checkpoints.gguf_blocks import BY_NAME, rounded_to_q8_0
from orrery.checkpoints.gguf_file import Kind
from orrery.errors import UsageError
from orrery.kernels.step.codes import BLOCKS as KINDS
from orrery.models.model import Model
from orrery.nn.joined_linear import is_plain
from orrery.tuning._linear import BlockEmbedding, TransformedLinear
from orrery.tuning._registry import register
from orrery.tuning._stored import Blocks, WholeNumbers
from orrery.tuning._transform import Transform
from orrery.tuning._whole_numbers import packed, whole_numbers

Q4_0, Q8_0 = BY_NAME["Q4_0"], BY_NAME["Q8_0"]


class BlockLinear(TransformedLinear):
    """``y = x W^T + b`` with W stored in the blocks of a GGUF file, see ``checkpoints.gguf_blocks``.

    ``weight`` is uint8 ``[out, bytes of a row]``. A few rows (16 for each thread, up to 32) are multiplied by a
    compiled kernel that reads the blocks once, where numba is installed and the model is on a CPU in float32 or less;
    otherwise the matrix is written out, a part at a time. Both give the same numbers but for float32 rounding. Shapes:
    ``[..., in]`` to ``[..., out]``.
    """

    def __init__(self, linear: nn.Linear | TransformedLinear, weight: nn.Parameter, kind: Kind) -> None:
        super().__init__(linear)
        self.weight, self.blocks = weight, kind
        self.register_buffer("floats", torch.empty(0, dtype=torch.float32, device="cpu"), persistent=False)

    def forward(self, x: Float[Tensor, "*rows in"]) -> Float[Tensor, "*rows out"]:
        """Multiply with the matrix that the blocks stand for."""
        return self.times_stored(x)

    def matrix(self) -> Float[Tensor, "out in"]:
        """Return that matrix."""
        return self.stored()


@register
@dataclass(frozen=True, kw_only=True)
class StoredBlocks(Transform):
    """Matrices of linears and tables of tokens in blocks; the model is for use, and nothing in it learns.

    Attributes:
        parameters: names of parameters, each with its kind behind it: ``stack.blocks.0.feed_forward.branch.up.weight
            Q4_K``. Tied ones stand once.
    """

    kind: ClassVar[str] = "blocks"
    parameters: tuple[str, ...]

    def apply(self, model: Model, seed: int = 1337) -> Model:
        """Give each parameter the shape of its blocks; their bytes come with the weights.

        Raises:
            UsageError: a name is that of no linear's matrix and no table of tokens, a kind is unknown, rows are no
                whole blocks, or the model has weights already, which only llama.cpp rounds.
        """
        parameters, owners = dict(model.named_parameters()), _owners(model)
        for name, kind in self.kinds().items():
            parameter = _parameter(parameters, name)
            if not parameter.is_meta:
                message = f"{name} has numbers, and blocks are read from a GGUF file"
                raise UsageError(message, "orrery export MODEL gguf x.gguf --type q8_0 writes such a file")
            stored = nn.Parameter(_empty(name, parameter, kind), requires_grad=False)
            _put(model, owners[id(parameter)], stored, kind)
        model.requires_grad_(False)
        model.transforms = (*model.transforms, self)
        return model

    def kinds(self) -> Mapping[str, Kind]:
        """Return the kind of each parameter.

        Raises:
            UsageError: an entry is no name with a kind.
        """
        by_parameter: dict[str, Kind] = {}
        for entry in self.parameters:
            name, _, kind = entry.partition(" ")
            if kind not in KINDS:
                raise UsageError(f"blocks: {entry!r} is no parameter with a kind", f"kinds are {', '.join(KINDS)}")
            by_parameter[name] = BY_NAME[kind]
        return by_parameter


@torch.no_grad()
def store_table(model: Model, name: str) -> StoredBlocks:
    """Store a table of tokens, and the head that is tied to it, in Q8_0: eight bits and a scale for 32 numbers.

    Args:
        model: changed in place; what is stored so learns nothing.
        name: of the table's parameter.

    Raises:
        UsageError: it is no table, or its rows are no whole blocks.
    """
    kind, parameter = BY_NAME["Q8_0"], _parameter(dict(model.named_parameters()), name)
    _empty(name, parameter, kind)
    stored = nn.Parameter(rounded_to_q8_0(parameter.detach()), requires_grad=False)
    paths = _owners(model)[id(parameter)]
    _put(model, paths, stored, kind)
    for path in paths:
        model.get_submodule(path).to(parameter.dtype)  # that of what it unpacks; the blocks are whole numbers
    transform = StoredBlocks(parameters=(f"{name} {kind.name}",))
    model.transforms = (*model.transforms, transform)
    return transform


def kinds_for(module: nn.Module) -> tuple[Kind, ...]:
    """Return the kinds of blocks that hold what a matrix is stored as: none where that is of floats, or no blocks."""
    if isinstance(module, BlockEmbedding):
        return (module.blocks,)
    stored = module.stored_as if isinstance(module, TransformedLinear) else None
    if isinstance(stored, Blocks):
        return (stored.kind,)
    if not isinstance(stored, WholeNumbers) or stored.group % Q8_0.block or not stored.scale.half().isfinite().all():
        return ()
    return (Q4_0, Q8_0) if stored.weight.dtype == torch.uint8 else (Q8_0,)


def in_blocks(module: nn.Module, kind: Kind) -> tuple[UInt8[Tensor, "out stored"], float]:
    """Return a matrix that is stored in whole numbers in blocks of a kind that holds it, and what they are off by.

    A block keeps the whole numbers as they are, and their scale as a float16: ``max|q| |s - s'|``.
    """
    stored = module.stored_as if isinstance(module, TransformedLinear) else None
    if not isinstance(stored, WholeNumbers):
        return module.get_parameter("weight").detach(), 0.0
    whole = whole_numbers(stored.weight.detach(), stored.scale.shape[1]).reshape(len(stored.weight), -1, kind.block)
    scale = stored.scale.detach().repeat_interleave(stored.group // kind.block, 1)
    half = scale.half()
    numbers = whole.view(torch.uint8) if kind == Q8_0 else packed(whole).unflatten(1, (whole.shape[1], -1))
    deviation = float((whole.abs().amax(2) * (scale - half).abs()).max())
    return torch.cat([half[:, :, None].view(torch.uint8), numbers], 2).flatten(1), deviation


def _owners(model: Model) -> Mapping[int, list[str]]:
    """Return the paths of the modules that hold a weight, by its identity."""
    paths = defaultdict[int, list[str]](list)
    for path, module in model.named_modules(remove_duplicate=False):
        paths[id(getattr(module, "weight", None))].append(path)
    return paths


def _put(model: Model, paths: Iterable[str], stored: nn.Parameter, kind: Kind) -> None:
    """Let each module that held a matrix hold it in blocks; one that two others share has two paths."""
    places = {}
    for path in paths:
        owner, _, leaf = path.rpartition(".")
        places[id(model.get_submodule(owner)), leaf] = (model.get_submodule(owner), leaf, path)
    for owner_module, leaf, path in places.values():
        setattr(owner_module, leaf, _stored(path, getattr(owner_module, leaf), stored, kind))


def _parameter(parameters: Mapping[str, nn.Parameter], name: str) -> nn.Parameter:
    parameter = parameters.get(name)
    if parameter is None:
        raise UsageError(f"blocks: the model has no parameter {name}", "take the architecture that they were read for")
    return parameter


def _empty(name: str, parameter: nn.Parameter, kind: Kind) -> Tensor:
    """Return the place of a matrix in blocks.

    Raises:
        UsageError: its rows are no whole blocks.
    """
    if parameter.ndim != 2 or parameter.shape[1] % kind.block:
        message = (
            f"{name} has the shape {list(parameter.shape)}, and {kind.name} has rows of whole {kind.block} numbers"
        )
        raise UsageError(message, "leave it as it is")
    rows, width = parameter.shape
    return torch.empty(rows, width // kind.block * kind.size, dtype=torch.uint8, device="meta")


def can_stay(model: nn.Module, name: str) -> bool:
    """Say whether a parameter can be in blocks: the matrix of a plain linear that is called, or a table of tokens."""
    path, _, end = name.rpartition(".")
    owner, _, leaf = path.rpartition(".")
    called = leaf not in getattr(model.get_submodule(owner), "multiplies_itself", ())
    owned = model.get_submodule(path)
    return end == "weight" and called and (is_plain(owned) or type(owned) is nn.Embedding)


def _stored(path: str, module: nn.Module, weight: nn.Parameter, kind: Kind) -> nn.Module:
    if is_plain(module):
        return BlockLinear(module, weight, kind).train(module.training)
    if type(module) is nn.Embedding:
        return BlockEmbedding(weight, kind, torch.empty(0, dtype=torch.float32, device="cpu")).train(module.training)
    raise UsageError(f"{path} is a {type(module).__name__}, whose matrix cannot be in blocks", "leave it as it is")
