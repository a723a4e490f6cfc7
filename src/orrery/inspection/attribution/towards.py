"""How much what a sublayer adds counts for a logit at the end of the stream."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from orrery.errors import UsageError
from orrery.inspection.attribution.frozen import Map, chained, pull
from orrery.inspection.attribution.sublayers import (
    Sublayer,
    behind_branch,
    behind_leaf,
    branch_parts,
    leaf_parts,
    on_stream,
    sublayers,
)
from orrery.inspection.attribution.view import TraceView
from orrery.inspection.attribution.vocabulary import TokenDirection, direction_of


@dataclass(frozen=True)
class Towards:
    """The direction of a logit as one branch of one sublayer sees it.

    Attributes:
        direction_BPD: a vector ``v`` that the branch gives adds ``v . direction`` to the logit.
        onward: the linear map from what the branch gives to the stream after the last block.
        target: the logit itself.
    """

    direction_BPD: Float[Tensor, "B P D"]
    onward: Map
    target: TokenDirection


def towards(view: TraceView, key: str, token: int | None, against: int | None) -> Towards:
    """Return how what the branch ``key`` gives, such as ``blocks.3.attention``, counts for a token's logit.

    Norms and factors behind the branch, on the stream and before the head act with the scales of this pass.

    Raises:
        UsageError: no such branch, one whose parts cannot be told apart, or as in ``attribute_logit``.
    """
    layers = sublayers(view.trace.model.stack)
    wanted = layer_with(layers, key)
    target = direction_of(view, token, against, layers[-1].after)
    y_BPD = torch.stack(list(branch_parts(wanted, view).values())).sum(0)
    here = behind_leaf(wanted, key, leaf_parts(wanted.leaves[key], key, view))
    maps = [here.linear, behind_branch(wanted, y_BPD).linear]
    for layer in layers[layers.index(wanted) :]:
        skip, out = on_stream(layer, view)
        maps += [out.linear] if layer is wanted else [skip.linear, out.linear]
    onward = chained(maps)
    return Towards(pull(onward, target.direction_BPD, y_BPD), onward, target)


def layer_with(layers: list[Sublayer], key: str) -> Sublayer:
    """Return the sublayer with a branch of this key.

    Raises:
        UsageError: there is none.
    """
    for layer in layers:
        if key in layer.leaves:
            return layer
    known = [leaf for layer in layers for leaf in layer.leaves]
    raise UsageError(f"nothing is called {key!r} in the stack that answers", f"there is: {', '.join(known[:6])}")
