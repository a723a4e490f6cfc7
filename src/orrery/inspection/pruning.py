"""Pruning: heads taken out of the weights, after which the model is smaller and computes without them."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, final

import torch
from torch import Tensor

from orrery.errors import UsageError
from orrery.models.model import Model, ModelSpec
from orrery.nn.attention.multihead import MultiHeadAttention
from orrery.nn.norms import HeadNorm
from orrery.nn.residual import Identity
from orrery.nn.spec import traverse
from orrery.nn.stack import Stack

_PLACE = re.compile(r"blocks\.(\d+)\.([a-z_.]+)")


@final
@dataclass(frozen=True)
class Pruned:
    """A model without some of its heads, and what that did.

    Attributes:
        model: the smaller model.
        before: the measure of the model as it was.
        after: the measure of the smaller one.
        removed: how many parameters are gone.
    """

    model: Model
    before: float
    after: float
    removed: int


@torch.no_grad()
def prune(model: Model, heads: Mapping[str, Sequence[int]], measure: Callable[[Model], float]) -> Pruned:
    """Remove heads and measure the model before and after (Michel et al. 2019).

    Args:
        model: a decoder or an encoder, or an encoder-decoder of which the decoder is pruned.
        heads: by attention, ``{"blocks.4.attention": [1, 3]}``, the heads to remove, counted from 0.
        measure: what is measured, such as a loss on a text; no gradients are kept meanwhile.

    Raises:
        UsageError: as in ``without_heads``.
    """
    smaller = without_heads(model, heads)
    sizes = [sum(parameter.numel() for parameter in one.parameters()) for one in (model, smaller)]
    return Pruned(smaller, measure(model), measure(smaller), sizes[0] - sizes[1])


@torch.no_grad()
def without_heads(model: Model, heads: Mapping[str, Sequence[int]]) -> Model:
    """Return a copy of a model without some of its heads: their rows of q, k, v and gates, and columns of the output.

    ``sum_h W_out_h head_h`` loses a term for each removed head, so that the copy computes what the model computes with
    ``mixed`` of these heads set to zero. Where several query heads share a key-value head, what is left must still be
    shared evenly.

    Raises:
        UsageError: there is no such attention or head, no head would be left, the rest cannot be shared evenly, or
            the attention has numbers by head that are not its own (ALiBi, relative distances, norms over all heads).
    """
    if model.transforms:
        raise UsageError("the model has been transformed, and its weights are not its own", "merge adapters first")
    stack, weights = model.spec.answering, dict(model.state_dict())
    if stack.order is not None:
        raise UsageError("blocks of this model stand at several depths", "set heads to zero at one depth instead")
    prefix = next(name for name, module in model.named_modules() if module is model.stack)
    blocks = list(stack.blocks)
    for place, removed in heads.items():
        number, path, attention = _find(model.stack, place)
        specs = {where: part for where, part in traverse(blocks[number]) if isinstance(part, MultiHeadAttention.Spec)}
        modules = [
            where for where, part in model.stack.blocks[number].named_modules() if isinstance(part, MultiHeadAttention)
        ]
        where, old = list(specs.items())[modules.index(path)]
        kept = _kept(place, old, removed)
        _check(place, old, stack)
        groups = _groups(place, old, kept)
        blocks[number] = _with(blocks[number], where.split("."), replace(old, heads=len(kept), kv_heads=len(groups)))
        _cut(weights, f"{prefix}.blocks.{number}.{path}", attention, kept, groups)
    smaller = _with_stack(model.spec, replace(stack, blocks=tuple(blocks))).build()
    smaller.to(next(model.parameters())).load_state_dict(weights)
    smaller.kernel, smaller.scan = model.kernel, model.scan
    return smaller.train(model.training)


def _find(stack: Stack, place: str) -> tuple[int, str, MultiHeadAttention]:
    """Return the number of the block, the path inside it and the attention that taps call so."""
    known = {
        f"blocks.{number}.{part.role}": (number, path, part)
        for number, block in enumerate(stack.blocks)
        for path, part in block.named_modules()
        if isinstance(part, MultiHeadAttention)
    }
    if place not in known:
        raise UsageError(f"there is no attention {place!r} whose heads can be removed", f"there is: {', '.join(known)}")
    return known[place]


def _kept(place: str, spec: MultiHeadAttention.Spec, removed: Sequence[int]) -> list[int]:
    for head in removed:
        if not 0 <= head < spec.heads:
            raise UsageError(
                f"{place} has {spec.heads} heads, and head {head} is to go", f"they are 0 to {spec.heads - 1}"
            )
    kept = [head for head in range(spec.heads) if head not in removed]
    if not kept:
        raise UsageError(f"{place} would be left without a head", "leave one, or set what the attention adds to zero")
    return kept


def _groups(place: str, spec: MultiHeadAttention.Spec, kept: Sequence[int]) -> list[int]:
    """Return the key-value heads that stay."""
    shared = spec.heads // spec.kv_heads
    users: dict[int, int] = {}
    for head in kept:
        users[head // shared] = users.get(head // shared, 0) + 1
    if len(set(users.values())) > 1:
        raise UsageError(
            f"{place}: {shared} heads share keys and values, and those left would share them unevenly",
            "remove all heads of a group, or as many of each",
        )
    return list(users)


def _check(place: str, spec: MultiHeadAttention.Spec, stack: Stack.Spec) -> None:
    """Refuse an attention with numbers by head outside itself."""
    by_head = [name for name, scheme in stack.positions.items() if "heads" in {field.name for field in fields(scheme)}]
    if by_head:
        message = f"{place}: the positions {', '.join(by_head)} have numbers for each head"
        raise UsageError(message, "set the mixed of the heads to zero instead")
    if not isinstance(spec.qk_norm, Identity.Spec | HeadNorm.Spec):
        raise UsageError(f"{place} norms all its heads together", "set the mixed of the heads to zero instead")


def _cut(
    weights: dict[str, Tensor], path: str, attention: MultiHeadAttention, kept: Sequence[int], groups: Sequence[int]
) -> None:
    """Take the rows and columns of the removed heads out of the weights."""

    def channels(chosen: Sequence[int]) -> Tensor:
        width = attention.head_width
        return torch.tensor([head * width + channel for head in chosen for channel in range(width)])

    rows = {"q": channels(kept), "k": channels(groups), "v": channels(groups), "gate.linear": channels(kept)}
    for name, index in rows.items():
        for part in ("weight", "bias"):
            if (tensor := weights.get(f"{path}.{name}.{part}")) is not None:
                weights[f"{path}.{name}.{part}"] = tensor[index.to(tensor.device)]
    out = weights[f"{path}.out.weight"]
    weights[f"{path}.out.weight"] = out[:, channels(kept).to(out.device)]
    if (sinks_H := weights.get(f"{path}.sinks.weight")) is not None:
        weights[f"{path}.sinks.weight"] = sinks_H[torch.tensor(list(kept), device=sinks_H.device)]


def _with_stack(spec: ModelSpec, stack: Stack.Spec) -> Any:
    """Return the spec of a model with another stack in the place of the one that answers."""
    place = next(where for where, part in traverse(spec) if part is spec.answering)
    return _with(spec, place.split("."), stack)


def _with(value: Any, path: Sequence[str], new: Any) -> Any:
    """Return a tree of specs with another part at the end of a path."""
    if not path:
        return new
    first, rest = path[0], path[1:]
    if isinstance(value, Mapping):
        return {**value, first: _with(value[first], rest, new)}
    if isinstance(value, tuple):
        return tuple(_with(item, rest, new) if str(n) == first else item for n, item in enumerate(value))
    return replace(value, **{first: _with(getattr(value, first), rest, new)})
