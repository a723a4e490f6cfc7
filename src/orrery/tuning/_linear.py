"""Linear maps that transforms put in the place of others: found by name, replaced everywhere, merged again."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from orrery.errors import UsageError
from orrery.models.meta_device import build_on_meta
from orrery.models.model import Model
from orrery.tuning._whole_numbers import multiply, written_out


class TransformedLinear(nn.Module, ABC):
    """``y = x M^T + b`` with a matrix M that a transform made of a linear's.

    It takes over the tensors of the linear that it replaces, the same objects under the same names: ``weight``,
    ``bias``, and ``weight_scale`` where the weight is stored as whole numbers. Shapes: ``[..., in]`` to ``[..., out]``.
    """

    in_features: int
    out_features: int
    weight: nn.Parameter
    weight_scale: nn.Parameter | None
    bias: nn.Parameter | None

    def __init__(self, linear: "nn.Linear | TransformedLinear") -> None:
        super().__init__()
        self.in_features, self.out_features = linear.in_features, linear.out_features
        tensors = dict(linear.named_parameters(recurse=False))
        for name in ("weight", "weight_scale", "bias"):
            self.register_parameter(name, tensors.get(name))

    def stored(self) -> Float[Tensor, "out in"]:
        """Return the stored matrix: the weight, written out where that is of whole numbers."""
        return self.weight if self.weight_scale is None else written_out(self.weight, self.weight_scale)

    def times_stored(self, x: Float[Tensor, "*rows in"]) -> Float[Tensor, "*rows out"]:
        """Return the product with the stored matrix, plus the bias."""
        if self.weight_scale is None:
            return F.linear(x, self.weight, self.bias)
        product = multiply(x, self.weight, self.weight_scale)
        return product if self.bias is None else product + self.bias

    @abstractmethod
    def matrix(self) -> Float[Tensor, "out in"]:
        """Return the whole map as one matrix, which a plain linear may have in its place."""


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
    found = _targets(model, targets, leave)
    made = [(target, make(target.names[0], target.linear)) for target in found]
    for target, module in made:
        module.train(target.linear.training)
        for owner, leaf in target.places:
            setattr(owner, leaf, module)


def named_linears(model: Model, names: Sequence[str]) -> dict[str, nn.Linear | TransformedLinear]:
    """Return the linears of these names.

    Raises:
        UsageError: a name is no linear's, or is that of one whose matrix another module uses as well.
    """
    _targets(model, names, ())
    places = {name: target.linear for target in _found(model) for name in target.names}
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
    for target in _found(model):
        if isinstance(target.linear, TransformedLinear):
            plain = _plain(target.linear)
            for owner, leaf in target.places:
                setattr(owner, leaf, plain)
    learns = {name: parameter.requires_grad for name, parameter in build_on_meta(model.spec).named_parameters()}
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(learns[name])
    model.transforms = ()
    return model


def _plain(linear: TransformedLinear) -> nn.Linear:
    plain = nn.Linear(linear.in_features, linear.out_features, bias=linear.bias is not None, device="meta")
    plain.weight = nn.Parameter(linear.matrix().detach().clone())
    plain.register_parameter("bias", linear.bias)
    return plain.train(linear.training)


def _targets(model: Model, targets: Sequence[str], leave: Sequence[str]) -> list[_Target]:
    known = _found(model)
    for pattern in targets:
        if not any(fnmatchcase(name, pattern) for target in known for name in target.names):
            near = ", ".join(target.names[0] for target in known[:3])
            raise UsageError(f"no linear is called {pattern!r}", f"names look like {near}")
    found = [target for target in known if _named(target, targets) and not _named(target, leave)]
    if not found:
        raise UsageError("the targets name no linear that is not left out", "give patterns of names, '*.q' for example")
    users: dict[int, list[tuple[str, nn.Module]]] = {}
    for name, module in model.named_modules():
        for parameter in module.parameters(recurse=False):
            users.setdefault(id(parameter), []).append((name, module))
    for target in found:
        _refuse_shared(target, users[id(target.linear.weight)])
    return found


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


def _found(model: Model) -> list[_Target]:
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
