"""What spec.json says of a model, and the refusal of a model of which it cannot say all."""

from collections.abc import Sequence
from typing import Any

from torch import Tensor, nn

from orrery.errors import UsageError
from orrery.models.meta_device import build_on_meta
from orrery.models.model import Model, ModelSpec
from orrery.nn.spec import to_json
from orrery.tuning._transform import Transform

TRANSFORMS = "transforms"
"""The key of spec.json under which the transforms of a model are listed, in their order."""


def describe(model: Model) -> dict[str, Any]:
    """Return the content of spec.json: the architecture, and the transforms where there are any.

    Raises:
        UsageError: the model has a tensor that these do not describe, or lacks one that they do.
    """
    described: Model = build_on_meta(model.spec)
    for transform in model.transforms:
        described = transform.apply(described)
    _compare(_tensors(model), _tensors(described))
    return spec_json(model.spec, model.transforms)


def spec_json(spec: ModelSpec, transforms: Sequence[Transform]) -> dict[str, Any]:
    """Return an architecture and its transforms, where there are any, as spec.json has them."""
    listed = {TRANSFORMS: [transform.as_json() for transform in transforms]} if transforms else {}
    return {**to_json(spec), **listed}


def refuse_transformed(model: Model, what: str) -> None:
    """Refuse a model with transforms where only a plain one can be taken.

    Raises:
        UsageError: it has transforms; they are named.
    """
    if model.transforms:
        listed = ", ".join(transform.kind for transform in model.transforms)
        raise UsageError(
            f"{what} a model with transforms ({listed})",
            "merge them first: orrery.tuning.merge(lm.model), or `orrery export MODEL hf OUT --merge`, gguf likewise; "
            "our own layout keeps them: lm.save(folder, layout='own')",
        )


def refuse_untrainable(model: nn.Module) -> None:
    """Refuse to train a model of which nothing learns.

    Raises:
        UsageError: it is so; a matrix of whole numbers is named where there is one.
    """
    if any(parameter.requires_grad for parameter in model.parameters()):
        return
    frozen_name = next((name for name, tensor in model.named_parameters() if not tensor.is_floating_point()), None)
    if frozen_name is None:
        raise UsageError("nothing in the model learns: every tensor is frozen", "let some require a gradient")
    dtype = str(model.get_parameter(frozen_name).dtype).removeprefix("torch.")
    message = f"{frozen_name} is stored in {dtype}, which no gradient can change, and nothing else in the model learns"
    raise UsageError(message, "train the model before it is quantised, or add an adapter: orrery.tuning.lora.LoRA")


def _tensors(model: nn.Module) -> dict[str, Tensor]:
    """Return the tensors that belong to a model's state, a tied one once."""
    parameters = dict(model.named_parameters())
    everything = {name for name, _ in model.named_parameters(remove_duplicate=False)}
    buffers = {name: tensor for name, tensor in model.state_dict().items() if name not in everything}
    return {**parameters, **buffers}


def _compare(own: dict[str, Tensor], described: dict[str, Tensor]) -> None:
    both = own.keys() & described.keys()
    faults = {
        "that spec.json does not describe": [name for name in own if name not in both],
        "missing": [name for name in described if name not in both],
        "of another shape": [name for name in own if name in both and own[name].shape != described[name].shape],
        "of another kind of numbers": [
            name for name in own if name in both and _kind(own[name]) != _kind(described[name])
        ],
    }
    differences = [f"{len(names)} {kind}: {', '.join(names[:10])}" for kind, names in faults.items() if names]
    if differences:
        raise UsageError(
            f"a file could not hold this model; tensors {'; '.join(differences)}",
            "something was added to or taken from it: write that as a transform, see orrery.tuning.Transform",
        )


def _kind(tensor: Tensor) -> str:
    return "floating" if tensor.is_floating_point() else str(tensor.dtype)
