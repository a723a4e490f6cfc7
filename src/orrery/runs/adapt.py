"""A run that learns an adapter: the transform that a recipe names, applied once the weights are there."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from orrery.errors import ModelFileError, UsageError
from orrery.models.model import Model
from orrery.recipes.config import ModelSettings
from orrery.tuning import Adapter, Transform, from_json, numbers_of


def adapter_of(settings: ModelSettings, heads: Iterable[str] = ()) -> Transform | None:
    """Return the transform of a recipe; the new heads, and those named here, learn beside it.

    Raises:
        UsageError: there is none of this kind, or a setting cannot be meant.
    """
    if settings.adapter is None:
        return None
    try:
        (transform,) = from_json([settings.adapter])
    except ModelFileError as error:
        message = error.message.replace("transforms[0]: ", "")
        raise UsageError(
            f"model.adapter: {message}", "correct the section; a kind and its settings: docs/tuning.md"
        ) from error
    if isinstance(transform, Adapter):
        learning = [f"heads.{name}.*" for name in dict.fromkeys((*settings.heads, *heads))]
        more: dict[str, Any] = {"learn": (*transform.learn, *learning)}
        return replace(transform, **more)
    return transform


def adapt(model: Model, transform: Transform | None, seed: int) -> list[str]:
    """Apply a transform to the model of a run, and return what to say of it.

    Raises:
        UsageError: it does not fit the model.
    """
    if transform is None:
        return []
    there = {id(parameter) for parameter in model.parameters()}
    transform.apply(model, seed)
    learns = [parameter for parameter in model.parameters() if parameter.requires_grad]
    new = sum(parameter.numel() for parameter in learns if id(parameter) not in there)
    beside = sum(parameter.numel() for parameter in learns if id(parameter) in there)
    frozen = numbers_of(model) - new - beside
    said = f"adapter {transform.kind}: {new:,} numbers of its own learn; frozen: {frozen:,} numbers of the model"
    return [said, *([f"beside the adapter learn {beside:,} numbers of the model"] if beside else [])]
