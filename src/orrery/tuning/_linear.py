"""Linear maps that transforms put in the place of others: found by name, replaced everywhere, merged again."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from fnmatch import fnmatchcase
from math import prod

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from orrery.checkpoints.gguf_file import Kind
from orrery.errors import UsageError
from orrery.models.meta_device import build_on_meta
from orrery.models.model import Model
from orrery.tuning._stored import Blocks, StoredMatrix, WholeNumbers, multiply


class TransformedLinear(nn.Module, ABC):
    """``y = x M^T + b`` with a matrix M that a transform made of a linear's.

    It takes over the tensors of the linear that it replaces, the same objects under the same names: ``weight``,
    ``bias``, and ``weight_scale`` where the weight is stored as whole numbers. ``blocks`` says how, where it is stored
    in the blocks of a GGUF file. Shapes: ``[..., in]`` to ``[..., out]``.
    """

    in_features: int
    out_features: int
    weight: nn.Parameter
    weight_scale: nn.Parameter | None
    bias: nn.Parameter | None
    blocks: Kind | None
    floats: Tensor | None
    """No numbers, but the dtype of a matrix that is unpacked; there where it is stored in blocks."""

    def __init__(self, linear: "nn.Linear | TransformedLinear") -> None:
        super().__init__()
        self.in_features, self.out_features = linear.in_features, linear.out_features
        tensors = dict(linear.named_parameters(recurse=False))
        for name in ("weight", "weight_scale", "bias"):
            self.register_parameter(name, tensors.get(name))
        self.blocks = getattr(linear, "blocks", None)
        self.register_buffer("floats", getattr(linear, "floats", None), persistent=False)

    @property
    def stored_as(self) -> StoredMatrix | None:
        """The form in which the matrix is stored; none where it is of floats."""
        if self.blocks is not None:
            return Blocks(self.weight, self.blocks)
        return None if self.weight_scale is None else WholeNumbers(self.weight, self.weight_scale)

    @property
    def like(self) -> Tensor:
        """A tensor with the dtype and the device of what the matrix stands for."""
        tensors = (self.weight, self.weight_scale, self.floats)
        return next(tensor for tensor in tensors if tensor is not None and tensor.is_floating_point())

    def stored(self) -> Float[Tensor, "out in"]:
        """Return the stored matrix: the weight, written out where that is of whole numbers."""
        stored = self.stored_as
        if stored is None:
            return self.weight
        return torch.cat([stored.written(*part) for part in stored.parts()]).to(self.like.dtype)

    def times_stored(self, x: Float[Tensor, "*rows in"]) -> Float[Tensor, "*rows out"]:
        """Return the product with the stored matrix, plus the bias."""
        stored = self.stored_as
        if stored is None:
            return F.linear(x, self.weight, self.bias)
        product = multiply(x, stored)
        return product if self.bias is None else product + self.bias

    @abstractmethod
    def matrix(self) -> Float[Tensor, "out in"]:
        """Return the whole map as one matrix, which a plain linear may have in its place."""


class BlockEmbedding(nn.Module):
    """``E[id]`` with a table in the blocks of a GGUF file: the rows that are looked up are unpacked.

    ``weight`` is uint8 ``[V, bytes of a row]``. Shapes: ``[...]`` to ``[..., D]``.
    """

    floats: Tensor

    def __init__(self, weight: nn.Parameter, blocks: Kind, floats: Tensor) -> None:
        super().__init__()
        self.weight, self.blocks = weight, blocks
        self.num_embeddings = len(weight)
        self.embedding_dim = weight.shape[1] // blocks.size * blocks.block
        self.register_buffer("floats", floats, persistent=False)

    def forward(self, ids: Int[Tensor, "*B"]) -> Float[Tensor, "*B D"]:
        """Look the rows up."""
        rows = F.embedding(ids.flatten(), self.weight)
        return Blocks(rows, self.blocks).written(0, len(rows)).view(*ids.shape, -1).to(self.floats.dtype)

    def matrix(self) -> Float[Tensor, "V D"]:
        """Return the whole table."""
        stored = Blocks(self.weight, self.blocks)
        return torch.cat([stored.written(*part) for part in stored.parts()]).to(self.floats.dtype)


def matrix_of(module: nn.Module) -> Tensor:
    """Return the matrix of a linear, or the table of an embedding, as floats, whatever form it is stored in."""
    if not isinstance(module, TransformedLinear | BlockEmbedding):
        matrix: Tensor = module.get_parameter("weight")
        return matrix.detach()
    kept = _kept.get()
    return module.matrix().detach() if kept is None else kept.matrix_of(module)


@contextmanager
def matrices_kept(most: int) -> Iterator[None]:
    """Keep what ``matrix_of`` makes until the end of the block, within so many bytes: no weight may change in it."""
    token = _kept.set(_Kept(most))
    try:
        yield
    finally:
        _kept.reset(token)


class _Kept:
    """Matrices by the module that they are of, those that were asked for first."""

    def __init__(self, most: int) -> None:
        self.left = most
        self.of: dict[nn.Module, Tensor] = {}

    def matrix_of(self, module: TransformedLinear | BlockEmbedding) -> Tensor:
        if module not in self.of:
            matrix = module.matrix().detach()
            if matrix.nbytes > self.left:
                return matrix
            self.left -= matrix.nbytes
            self.of[module] = matrix
        return self.of[module]


_kept: ContextVar[_Kept | None] = ContextVar("kept", default=None)


def shapes_of(model: nn.Module) -> dict[int, tuple[int, ...]]:
    """Return the shape of what each parameter stands for, by its identity, whatever form it is stored in."""
    shapes = {id(parameter): tuple(parameter.shape) for parameter in model.parameters()}
    for module in model.modules():
        if isinstance(module, BlockEmbedding):
            shapes[id(module.weight)] = (module.num_embeddings, module.embedding_dim)
        elif isinstance(module, TransformedLinear) and module.stored_as is not None:
            shapes[id(module.weight)] = (module.out_features, module.in_features)
    return shapes


def numbers_of(model: nn.Module) -> int:
    """Return how many numbers a model has, tied ones once, whatever form its matrices are stored in: no scales."""
    scales = {id(getattr(module, "weight_scale", None)) for module in model.modules()}
    return sum(prod(shape) for key, shape in shapes_of(model).items() if key not in scales)


@dataclass(frozen=True)
class _Target:
    """A linear, its names, and the places that hold it."""

    linear: nn.Linear | TransformedLinear
    names: Sequence[str]
    places: Sequence[tuple[nn.Module, str]]


def replace_linears(
    model: Model,
    targets: Sequence[str],
    leave: Sequence[str],
    make: Callable[[str, nn.Linear | TransformedLinear], TransformedLinear],
) -> None:
    """Put another module in the place of each linear that a pattern names, wherever it stands.

    Args:
        model: changed in place, or not at all where an error is raised.
        targets: patterns of names, ``*`` for any characters.
        leave: patterns of names that are left as they are though a target names them.
        make: returns the module for a linear; it is given the name for messages.

    Raises:
        UsageError: a pattern names no linear, or one whose matrix another module uses as well.
    """
    linears = _targets(model, targets, leave)
    made = [(target, make(target.names[0], target.linear)) for target in linears]
    for target, module in made:
        module.train(target.linear.training)
        for owner, leaf in target.places:
            setattr(owner, leaf, module)


def targeted(model: Model, targets: Sequence[str], leave: Sequence[str]) -> dict[str, nn.Linear | TransformedLinear]:
    """Return the linears that ``replace_linears`` would replace, by their first name, in the order of the model.

    Raises:
        UsageError: as it does.
    """
    return {target.names[0]: target.linear for target in _targets(model, targets, leave)}


def named_linears(model: Model, names: Sequence[str]) -> dict[str, nn.Linear | TransformedLinear]:
    """Return the linears of these names.

    Raises:
        UsageError: a name is no linear's, or is that of one whose matrix another module uses as well.
    """
    _targets(model, names, ())
    places = {name: target.linear for target in _linears_of(model) for name in target.names}
    return {name: places[name] for name in names}


def merge(model: Model) -> Model:
    """Put a plain linear with the whole matrix in the place of each transformed one, in place, and return the model.

    The model is then what its architecture alone describes: every family's layout can hold it, and all of it learns
    that learns in a new model.

    Raises:
        UsageError: a transform is no change of matrices, as a network behind a sublayer is; it is named.
    """
    if kept := [transform.kind for transform in model.transforms if not transform.merges]:
        message = f"{', '.join(kept)} cannot be merged: no plain model of this architecture computes the same"
        raise UsageError(message, "our own layout keeps it: lm.save(folder, layout='own')")
    tables = [(name, module) for name, module in model.named_modules() if isinstance(module, BlockEmbedding)]
    merged: dict[int, nn.Parameter] = {}
    for name, table in tables:
        owner, leaf = _place(model, name)
        plain = nn.Embedding(table.num_embeddings, table.embedding_dim, device="meta")
        plain.weight = merged[id(table.weight)] = nn.Parameter(table.matrix())
        setattr(owner, leaf, plain)
    for target in _linears_of(model):
        if isinstance(target.linear, TransformedLinear):
            linear = _plain(target.linear, merged.get(id(target.linear.weight)))
            for owner, leaf in target.places:
                setattr(owner, leaf, linear)
    learns = {name: parameter.requires_grad for name, parameter in build_on_meta(model.spec).named_parameters()}
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(learns[name])
    model.transforms = ()
    return model


def _plain(linear: TransformedLinear, tied: nn.Parameter | None) -> nn.Linear:
    """Return a plain linear; the matrix of a tied one is that of the table."""
    plain = nn.Linear(linear.in_features, linear.out_features, bias=linear.bias is not None, device="meta")
    plain.weight = nn.Parameter(linear.matrix().detach().clone()) if tied is None else tied
    plain.register_parameter("bias", linear.bias)
    return plain.train(linear.training)


def _targets(model: Model, targets: Sequence[str], leave: Sequence[str]) -> list[_Target]:
    known = _linears_of(model)
    for pattern in targets:
        if not any(fnmatchcase(name, pattern) for target in known for name in target.names):
            kinds = dict.fromkeys(f"*.{target.names[0].rpartition('.')[2]}" for target in known)
            raise UsageError(f"no linear is called {pattern!r}", f"this model has {', '.join(kinds)}")
    targets_found = [target for target in known if _named(target, targets) and not _named(target, leave)]
    if not targets_found:
        raise UsageError("the targets name no linear that is not left out", "give patterns of names, '*.q' for example")
    users: dict[int, list[tuple[str, nn.Module]]] = {}
    for name, module in model.named_modules():
        for parameter in module.parameters(recurse=False):
            users.setdefault(id(parameter), []).append((name, module))
    for target in targets_found:
        _refuse_shared(target, users[id(target.linear.weight)])
    return targets_found


def _refuse_shared(target: _Target, users: Sequence[tuple[str, nn.Module]]) -> None:
    """Refuse a linear whose matrix is used without it: there the transform would not be seen.

    A module that multiplies with the matrix of a linear of its own, without a call, lists the linear's attribute in
    ``multiplies_itself``; the law of adapters finds one that does not.
    """
    name = target.names[0]
    for owner, leaf in target.places:
        if leaf in getattr(owner, "multiplies_itself", ()):
            message = f"{name} belongs to a {type(owner).__name__}, which multiplies with its matrix itself"
            raise UsageError(message, f"leave it out: leave=({name!r},); a pattern such as '*.router.*' names all")
    for other, module in users:
        if module is not target.linear:
            message = f"{name}.weight is tied to {other}, which would not see the transform"
            raise UsageError(message, f"leave it out: leave=({name!r},)")


def _named(target: _Target, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns for name in target.names)


def _linears_of(model: Model) -> list[_Target]:
    """Return every linear once, with all the places that hold it."""
    paths: dict[int, list[str]] = {}
    linears: dict[int, nn.Linear | TransformedLinear] = {}
    for name, module in model.named_modules(remove_duplicate=False):
        if isinstance(module, nn.Linear | TransformedLinear):
            linears[id(module)] = module
            paths.setdefault(id(module), []).append(name)
    return [
        _Target(linear, paths[key], [_place(model, name) for name in paths[key]]) for key, linear in linears.items()
    ]


def _place(model: Model, name: str) -> tuple[nn.Module, str]:
    owner, _, leaf = name.rpartition(".")
    return model.get_submodule(owner), leaf
