"""DiffLlama (2025): Llama with differential attention (Ye et al. 2024).

Peculiar to it: the pattern of each head less that of another, over the values of both, behind an RMSNorm of each pair
without a gain; what is taken away begins at ``0.8 - 0.6 exp(-0.3 l)`` in layer l, and what is left is multiplied by
one less that number.
"""

import math
from collections.abc import Mapping
from typing import Any

from orrery.checkpoints.rules import rename
from orrery.errors import ModelFileError
from orrery.families import _decoders, _legacy_names, _parts
from orrery.families._config import Config
from orrery.families._keys import number, size
from orrery.models.decoder import Decoder
from orrery.nn.attention.differential import Contrast, DifferentialAttention
from orrery.nn.norms import HeadNorm, PlainRMSNorm, RMSNorm
from orrery.nn.residual import Chain, Scale

ARCHITECTURE = "DiffLlamaForCausalLM"
DEFAULTS: Mapping[str, Any] = {
    **{key: value for key, value in _decoders.DEFAULTS.items() if key != "attention_dropout"},
    "hidden_size": size(2048),
    "intermediate_size": size(8192),
    "num_hidden_layers": size(16),
    "rms_norm_eps": 1e-5,
    "attention_bias": False,
    "lambda_std_dev": number(0.1),
}
TINY = {**_decoders.TINY, "num_attention_heads": 4}
# The paper does not say how to drop of a difference, and the reference refuses to.
_FIXED = {"attention_dropout": 0.0, "mlp_bias": False}
_IGNORED = ("patch_size",)


def spec(config: Mapping[str, Any]) -> Decoder.Spec:
    """Return the architecture that a ``config.json`` describes."""
    c = Config("diffllama", config, DEFAULTS, fixed=_FIXED, ignored=_IGNORED)
    norm, feed_forward = RMSNorm.Spec(eps=c["rms_norm_eps"]), _decoders.feed_forward(c)
    blocks = [_decoders.pre_norm(norm, _attention(c, i), feed_forward) for i in range(c["num_hidden_layers"])]
    return _decoders.decoder(c, _decoders.stack(c, blocks, norm))


def _attention(c: Config, layer: int) -> DifferentialAttention.Spec:
    """Return the attention of a layer.

    Raises:
        ModelFileError: the key-value heads make no pairs.
    """
    heads, width = c["num_attention_heads"], _decoders.head_width(c)
    kv_heads = c["num_key_value_heads"] or heads
    if kv_heads % 2:
        message = f"{c.family}: num_key_value_heads = {kv_heads} makes no pairs, whose values two heads share"
        raise ModelFileError(message, "choose an even number")
    if c["num_key_value_heads"]:
        c.divide("num_attention_heads", "num_key_value_heads")
    initial = 0.8 - 0.6 * math.exp(-0.3 * layer)
    pair = HeadNorm.Spec(norm=PlainRMSNorm.Spec(eps=c["rms_norm_eps"]), head_width=2 * width)
    return DifferentialAttention.Spec(
        heads=heads,
        kv_heads=kv_heads,
        head_width=width,
        contrast=Contrast(initial=initial, deviation=c["lambda_std_dev"] or 0.0),
        norm=Chain.Spec(parts=(pair, Scale.Spec(factor=1 - initial))),
        biases=_parts.biases(c["attention_bias"]),
        position="rotary",
    )


LEGACY_NAMES = _legacy_names.ROTARY
_MOVING = tuple((f"lambda_{x}{n + 1}", f"{ours}.{n}") for x, ours in (("q", "a"), ("k", "b")) for n in range(2))
WEIGHTS = (
    *_decoders.weights(*_decoders.PRE_NORMS),
    *(
        rename(f"{_decoders.LAYER}.self_attn.{theirs}", f"{_decoders.BLOCK}.attention.branch.{ours}")
        for theirs, ours in _MOVING
    ),
    *_decoders.gated_weights(),
)
