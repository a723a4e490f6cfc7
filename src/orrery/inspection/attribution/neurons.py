"""The channels of a feed-forward: which of them move the logit of a token, and which tokens they promote."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from orrery.errors import UsageError
from orrery.inspection.attribution.frozen import frozen, matrix_of
from orrery.inspection.attribution.sublayers import FEED_FORWARDS, sublayers
from orrery.inspection.attribution.towards import layer_with, towards
from orrery.inspection.attribution.view import TraceView, wide
from orrery.inspection.attribution.vocabulary import vocabulary_head
from orrery.inspection.checks import Check, error
from orrery.inspection.recorded import RecordedPass

BOUND = 1e-4


@dataclass(frozen=True)
class Neurons:
    """The channels that move a logit most, either way, the strongest first.

    Attributes:
        key: of the feed-forward: ``blocks.3.feed_forward``.
        channel_BK: their numbers.
        activation_BK: what each holds.
        effect_BK: what each adds to the logit directly.
        promoted_BKN: the tokens whose logits it raises most.
        promoted_effect_BKN: by how much.
        effect_BF: what every channel adds.
        bias_B: what the bias of the output matrix adds.
        logit_B: the logit.
        token_B: the tokens.
        check: how far all channels and the bias are from what the layer adds, ``max|a - b| / max(1, max|b|)``.
    """

    key: str
    channel_BK: Int[Tensor, "B K"]
    activation_BK: Float[Tensor, "B K"]
    effect_BK: Float[Tensor, "B K"]
    promoted_BKN: Int[Tensor, "B K N"]
    promoted_effect_BKN: Float[Tensor, "B K N"]
    effect_BF: Float[Tensor, "B F"]
    bias_B: Float[Tensor, "B"]
    logit_B: Float[Tensor, "B"]
    token_B: Int[Tensor, "B"]
    check: Check


def top_neurons(
    trace: RecordedPass,
    block: int,
    token: int | None = None,
    *,
    against: int | None = None,
    position: int = -1,
    k: int = 10,
    promoted: int = 5,
    channels: Sequence[int] | None = None,
) -> Neurons:
    """Return the channels of a feed-forward with the greatest direct effect on a token's logit.

    ``added = sum_f hidden_f W_down_f + b``: a channel is a vector that is written as strongly as the channel is active
    (Geva et al. 2021), and its effect on a logit is ``hidden_f W_down_f . d`` with ``d`` as in ``attribute_logit``.
    What a channel promotes follows from the same product, for every token.

    Args:
        trace: which has kept ``hidden`` of the block and what ``attribute_logit`` needs.
        block: the block's number.
        token: an id; by default the most probable one.
        against: another id, whose logit is subtracted.
        position: a negative one from the right.
        k: how many channels.
        promoted: how many tokens for each.
        channels: which, instead of those with the greatest effect.

    Raises:
        UsageError: no such block or channel, experts, whose channels are not shown, or as in ``attribute_logit``.
    """
    view = TraceView(trace, position)
    key, module = _feed_forward(trace, block)
    direction = towards(view, key, token, against)
    hidden_BF, towards_BD = view.stream(f"{key}.hidden")[:, 0], direction.direction_BPD[:, 0]
    matrix_DF = matrix_of(module.down)
    effect_BF = hidden_BF * (towards_BD @ matrix_DF)
    bias = module.down.bias
    bias_B = effect_BF.new_zeros(len(effect_BF)) if bias is None else towards_BD @ wide(bias)
    given_B = (frozen(module.down, hidden_BF)(hidden_BF) * towards_BD).sum(-1)
    off = error(effect_BF.sum(-1) + bias_B, given_B)
    channel_BK = _chosen(key, effect_BF, k, channels)
    activation_BK = hidden_BF.gather(1, channel_BK)
    written_BKD = activation_BK[..., None] * matrix_DF.T[channel_BK]
    # One position has one map, which the channels share.
    read_BKE = direction.target.readout(direction.onward(written_BKD))
    raised_BKV = direction.target.factor * (read_BKE @ matrix_of(vocabulary_head(trace.model).vocabulary).T)
    best = raised_BKV.topk(promoted, dim=-1)
    return Neurons(
        key,
        channel_BK,
        activation_BK,
        effect_BF.gather(1, channel_BK),
        best.indices,
        best.values,
        effect_BF,
        bias_B,
        direction.target.logit_BP[:, 0],
        direction.target.token_BP[:, 0],
        Check("channels and bias sum to what the layer adds", off, BOUND),
    )


def _chosen(key: str, effect_BF: Tensor, k: int, channels: Sequence[int] | None) -> Int[Tensor, "B K"]:
    count = effect_BF.shape[1]
    if channels is None:
        return effect_BF.abs().topk(min(k, count), dim=-1).indices
    wrong = [channel for channel in channels if not 0 <= channel < count]
    if wrong:
        raise UsageError(f"{key} has no channel {wrong[0]}", f"they are 0 to {count - 1}")
    return torch.tensor(channels, device=effect_BF.device).expand(len(effect_BF), -1)


def _feed_forward(trace: RecordedPass, block: int) -> tuple[str, Any]:
    """Return a feed-forward whose channels are shown, with its key."""
    key = f"{trace.model.stack.path}blocks.{block}.feed_forward"
    module = layer_with(sublayers(trace.model.stack), key).leaves[key]
    if not isinstance(module, FEED_FORWARDS):
        raise UsageError(f"{key} is a {type(module).__name__}, whose channels are not shown", "take another block")
    return key, module
