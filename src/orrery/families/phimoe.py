"""Phi-3.5 MoE (Abdin et al. 2024): Mixtral's experts, chosen two by two by SparseMixer.

Peculiar to it: the first expert is the best, the second the best of the others, and each is weighed by a softmax over
the experts that come near it, within ``router_jitter_noise`` (Liu et al. 2023); LayerNorm with bias; biases on all
projections and on the head; LongRoPE whose factor on queries and keys stands in the file.
"""

from collections.abc import Mapping
from typing import Any

from orrery.checkpoints.rules import rename
from orrery.errors import ModelFileError
from orrery.families import _decoders, _mixture, _parts, _rotary, _windows
from orrery.families._config import Config
from orrery.families._keys import count, positive, size
from orrery.models.decoder import Decoder
from orrery.nn.feedforward.moe import MoE
from orrery.nn.feedforward.routers import SparseMixerRouter, TopK
from orrery.nn.norms import LayerNorm
from orrery.nn.positions.rotary import Rotary
from orrery.nn.stack import repeat

ARCHITECTURE = "PhimoeForCausalLM"
DEFAULTS: Mapping[str, Any] = {
    **_decoders.DEFAULTS,
    "vocab_size": size(32064),
    "intermediate_size": size(6400),
    "num_key_value_heads": size(8, null=True),
    "num_local_experts": size(16),
    "num_experts_per_tok": size(2),
    "router_jitter_noise": 0.01,
    "max_position_embeddings": 131072,
    "original_max_position_embeddings": size(None),
    "sliding_window": count(None),
    "rms_norm_eps": 1e-5,
    "attention_bias": False,
    "lm_head_bias": False,
    "rope_theta": positive(1_000_000.0),
}
TINY = {
    **_decoders.NARROW,
    "intermediate_size": 8,
    "num_local_experts": 4,
    "router_jitter_noise": 0.2,
    "sliding_window": 7,
    "attention_bias": True,
    "lm_head_bias": True,
}
_IGNORED = ("output_router_logits", "router_aux_loss_coef", "input_jitter_noise")


def spec(config: Mapping[str, Any]) -> Decoder.Spec:
    """Return the architecture that a ``config.json`` describes.

    Raises:
        ModelFileError: another number of experts a token than the router chooses.
    """
    c = Config("phimoe", config, DEFAULTS, ignored=_IGNORED)
    if c["num_experts_per_tok"] != 2:
        raise ModelFileError(
            f"phimoe: num_experts_per_tok = {c['num_experts_per_tok']}, but SparseMixer chooses two",
            "transformers reads past this key; set it to 2",
        )
    mixture = MoE.Spec(
        expert=_decoders.feed_forward(c),
        router=SparseMixerRouter.Spec(
            experts=c["num_local_experts"], choice=TopK(chosen=2), jitter=c["router_jitter_noise"]
        ),
    )
    norm, attention = (
        LayerNorm.Spec(eps=c["rms_norm_eps"]),
        _decoders.attention(c, biases=_parts.biases(c["attention_bias"])),
    )
    blocks = repeat(_decoders.pre_norm(norm, attention, mixture), c["num_hidden_layers"])
    masks = {"causal": _windows.causal(c, c["sliding_window"])}
    stack = _decoders.stack(c, blocks, norm, masks=masks, positions={"rotary": _positions(c)})
    return _decoders.decoder(c, stack, bias=c["lm_head_bias"])


def _positions(c: Config) -> Rotary.Spec:
    """Return the rotary positions; the two factors on queries and keys must be one.

    Raises:
        ModelFileError: texts beyond the trained length would have another factor, or a setting is missing.
    """
    given = dict(c["rope_scaling"] or c["rope_parameters"] or {})
    kind = given.pop("rope_type", given.pop("type", "default"))
    given["rope_type"] = "longrope" if kind == "su" else kind
    if kind != "default":
        short, long = given.pop("short_mscale", None), given.pop("long_mscale", None)
        if short is None or short != long:
            raise ModelFileError(
                f"phimoe: rope_parameters (or rope_scaling): short_mscale = {short!r} and long_mscale = {long!r}",
                "one factor on queries and keys is supported for all lengths: both must be the same number",
            )
        given["attention_factor"] = short
        given.setdefault("original_max_position_embeddings", c["original_max_position_embeddings"])
    width, context = _decoders.head_width(c), c["max_position_embeddings"]
    return _rotary.from_settings(c.family, given, c["rope_theta"], width, context, kinds=("default", "longrope"))


WEIGHTS = (
    *_decoders.weights(*_decoders.PRE_NORMS),
    *_mixture.MIXTRAL,
    rename("lm_head.bias", "head.vocabulary.bias"),
)
