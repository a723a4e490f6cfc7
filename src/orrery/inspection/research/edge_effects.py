"""What cutting one edge of an attention does to the next token: the measured effect beside the weight."""

import torch
from jaxtyping import Float
from torch import Tensor

from orrery.errors import UsageError
from orrery.inspection.difference import divergence
from orrery.inspection.interventions.interventions import Interventions, in_turn
from orrery.inspection.recorder import Recorder
from orrery.models.model import Model
from orrery.nn.attention.kernels import eager

EDGES = 32
"""Edges of a row that are cut, the heaviest first."""


@torch.no_grad()
def edge_effects(
    edits: Interventions, key: str, head: int, query: int, weight_S: Float[Tensor, "S"]
) -> Float[Tensor, "S"]:
    """Return ``KL(p || p without the edge)`` of the next token, in nats, for the heaviest edges of a row.

    The score of the edge becomes minus infinity, so that the rest of the row shares its weight; each edge is a run of
    the model with the eager kernel. It is measured behind the query, and of a source's query behind the last token.

    Args:
        edits: those of the pass, and what it read.
        key: of the scores.
        head: which looks.
        query: the token that looks.
        weight_S: the weights of the row.

    Returns:
        not a number for an edge that was not cut: it weighs nothing, is not among the heaviest, or is the row's only
        one.

    Raises:
        UsageError: the edits belong to no text.
    """
    if edits.call is None:
        raise UsageError("these edits belong to no text", "take those of a trace: inside.edit()")
    model = edits.model(edits.call.model)
    clean_V = _next(model, edits, key, query)
    effect_S = torch.full(weight_S.shape, float("nan"))
    for place in weight_S.topk(min(EDGES, len(weight_S))).indices.tolist():
        if not float(weight_S[place]) > 0:
            break
        cut = edits.more([{"at": key, "op": "mask", "head": head, "position": query, "key": place}])
        try:
            effect_S[place] = divergence(clean_V, _next(model, cut, key, query))
        except UsageError:  # the query sees nothing else
            continue
    return effect_S


def _next(model: Model, edits: Interventions, key: str, query: int) -> Float[Tensor, "V"]:
    call = edits.call
    assert call is not None
    recorder = Recorder(keep=(), edit=in_turn(call.edit, edits.compiled()))
    logits: Tensor = model.logits(*edits.read(model, call.inputs).values(), kernel=eager, taps=recorder, **call.how)
    if logits.dim() == 2:
        return logits[0]
    return logits[0, -1 if key.startswith("encoder.") else query]
