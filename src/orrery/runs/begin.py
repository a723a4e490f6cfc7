"""Where a run begins: with fresh weights, or with those of a model that exists."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Any

import torch
from torch import Tensor, nn

from orrery.errors import UsageError
from orrery.exchange.reading.gguf_model import SUFFIX
from orrery.exchange.reading.read import Stored, read
from orrery.exchange.reading.weights import weights_of
from orrery.models.heads import HEADS, HeadSettings
from orrery.models.model import HIDDEN, ModelSpec
from orrery.recipes.config import ModelSettings
from orrery.runs.carried import carried
from orrery.tuning import merge, refuse_transformed

Take = Callable[[Tensor, Tensor], None]
"""Copies the second tensor into the first."""


@dataclass(frozen=True)
class Base:
    """The model that a run begins from, and what was said of it when it was found."""

    stored: Stored
    notes: Sequence[str] = field(default_factory=tuple)


def base_of(settings: ModelSettings) -> Base | None:
    """Return the model that a recipe begins from, or nothing where it begins with new weights.

    Raises:
        ModelFileError: there is no model, or its files are damaged.
        UsageError: the model has transforms, which a recipe does not have.
    """
    if settings.begin is None:
        return None
    notes: list[str] = []
    stored = read(settings.begin, notes.append)
    if stored.folder.suffix == SUFFIX and stored.model.transforms:
        merge(stored.model)
        notes.append(f"{stored.folder}: what was rounded into blocks is unpacked to float32, for blocks do not learn")
    refuse_transformed(stored.model, "a recipe cannot begin from")
    return Base(stored, notes)


def with_heads(spec: ModelSpec, heads: Mapping[str, HeadSettings]) -> ModelSpec:
    """Return an architecture with more heads.

    Raises:
        UsageError: the model has a head of this name.
    """
    if not heads:
        return spec
    for name in heads:
        if name in (*spec.head_names, HIDDEN):
            raise UsageError(f"model.heads.{name}: the model has one of this name", "choose another name")
    own: Any = spec
    new = {name: HEADS.class_of(head).over(head, spec) for name, head in heads.items()}
    return replace(own, heads={**own.heads, **new})


@torch.no_grad()
def take_weights(
    model: nn.Module,
    base: Base,
    renewed: Sequence[str] = (),
    config: Mapping[str, Any] | None = None,
    rows: Collection[str] = (),
    take: Take | None = None,
) -> list[str]:
    """Copy the weights of a model that exists, and return what to say: how many, which are new, which were left.

    Those whose names begin with one of ``renewed`` are not taken; ``take`` copies the tensors that ``rows`` names. With
    the configuration of the new class, parts of its heads are taken that the base's files hold beside the base's own.

    Raises:
        UsageError: a tensor of the same name has another shape.
    """
    there, own = weights_of(base.stored.model), weights_of(model)
    there = {name: tensor for name, tensor in there.items() if not name.startswith(tuple(renewed))}
    there |= {} if config is None else carried(model, base.stored, config, renewed)
    for name in own.keys() & there.keys():
        if take is not None and name in rows:
            take(own[name], there[name])
        elif own[name].shape != there[name].shape:
            shapes = f"{list(there[name].shape)}, here {list(own[name].shape)}"
            raise UsageError(f"{base.stored.folder}: {name} has the shape {shapes}", "begin from a model of this size")
        else:
            own[name].copy_(there[name])
    new, left = sorted(own.keys() - there.keys()), sorted(there.keys() - own.keys())
    base.stored.model.to("meta")  # its weights are not needed twice
    loaded = len(own) - len(new)
    said = f"begun from {base.stored.folder}: {loaded:,} tensors loaded, {len(new):,} new, {len(left):,} left"
    listed = [f"{what}: {', '.join(names)}" for what, names in (("new", new), ("left", left)) if names]
    return [*base.notes, said, *listed]


@torch.no_grad()
def take_encoder(model: nn.Module, path: str) -> list[str]:
    """Copy the encoder of a model that exists into that of a new one, and return what to say.

    Raises:
        ModelFileError: there is no model.
        UsageError: neither has an encoder of the other's, or a tensor of it has another shape.
    """
    notes: list[str] = []
    there, own = weights_of(read(path, notes.append).model), weights_of(model)
    before = "reader." if any(name.startswith("reader.") for name in own) else ""
    theirs = "reader." if any(name.startswith("reader.") for name in there) else ""
    found = {
        name: f"{before}{name.removeprefix(theirs)}"
        for name in there
        if name.startswith((f"{theirs}embed.", f"{theirs}stack."))
    }
    if not found or not set(found.values()) <= own.keys():
        lacks = next((name for name in found.values() if name not in own), "no encoder")
        raise UsageError(
            f"model.from.encoder: {path} does not fit: {lacks}", "begin from an encoder of the same family"
        )
    for name, ours in found.items():
        if own[ours].shape != there[name].shape:
            shapes = f"{list(there[name].shape)}, here {list(own[ours].shape)}"
            raise UsageError(f"model.from.encoder: {path}: {name} has the shape {shapes}", "give both the same sizes")
        own[ours].copy_(there[name])
    return [*notes, f"the encoder is that of {path}: {len(found):,} tensors"]


def freeze(model: nn.Module, patterns: Sequence[str]) -> list[str]:
    """Let no gradient change the parameters that a pattern names, and return what to say.

    Raises:
        UsageError: a pattern names none, or nothing is left to learn.
    """
    parameters = dict(model.named_parameters(remove_duplicate=False))
    for pattern in patterns:
        frozen = [name for name in parameters if fnmatchcase(name, pattern)]
        if not frozen:
            near = ", ".join(list(parameters)[:3])
            raise UsageError(f"model.freeze: no parameter is called {pattern!r}", f"names look like {near}")
        for name in frozen:
            parameters[name].requires_grad_(False)
    if not patterns:
        return []
    still = [parameter for parameter in model.parameters() if not parameter.requires_grad]
    learned = [parameter for parameter in model.parameters() if parameter.requires_grad]
    if not learned:
        raise UsageError("model.freeze leaves nothing to learn", "name fewer parameters")
    numbers = [sum(parameter.numel() for parameter in some) for some in (still, learned)]
    return [f"frozen: {len(still):,} tensors of {numbers[0]:,} numbers; {numbers[1]:,} numbers learn"]
