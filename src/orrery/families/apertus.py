"""Apertus (Swiss AI 2025): Llama with norms of heads and an activation that learns.

Peculiar to it: xIELU (Huang 2024) in a feed-forward network without a gate, whose two slopes each layer learns and
whose file holds its constants too; RMSNorm on each head of q and of k before the rotation; Llama 3's rescaled rotation
where a file says nothing.
"""

from collections.abc import Mapping
from typing import Any

from orrery.checkpoints.rules import rename
from orrery.families import _decoders, _parts
from orrery.families._config import ACTIVATIONS, Config
from orrery.families._keys import positive, size, table
from orrery.models.decoder import Decoder
from orrery.nn.norms import HeadNorm, RMSNorm
from orrery.nn.stack import repeat

ARCHITECTURE = "ApertusForCausalLM"
DEFAULTS: Mapping[str, Any] = {
    **_decoders.DEFAULTS,
    "vocab_size": size(131072),
    "intermediate_size": size(14336),
    "hidden_act": "xielu",
    "max_position_embeddings": 65536,
    "rms_norm_eps": 1e-5,
    "attention_bias": False,
    "rope_theta": positive(12_000_000.0),
    "rope_parameters": table({
        "rope_type": "llama3", "rope_theta": 12_000_000.0, "factor": 8.0, "original_max_position_embeddings": 8192,
        "low_freq_factor": 1.0, "high_freq_factor": 4.0,
    }, null=True),
}  # fmt: skip
TINY = _decoders.TINY


def spec(config: Mapping[str, Any]) -> Decoder.Spec:
    """Return the architecture that a ``config.json`` describes."""
    c = Config("apertus", config, DEFAULTS)
    norm = RMSNorm.Spec(eps=c["rms_norm_eps"])
    attention = _decoders.attention(
        c,
        biases=_parts.biases(c["attention_bias"]),
        qk_norm=HeadNorm.Spec(norm=norm, head_width=_decoders.head_width(c)),
    )
    activation = c.choose("hidden_act", {**ACTIVATIONS, "xielu": "xielu"})
    block = _decoders.pre_norm(norm, attention, _decoders.plain_feed_forward(c, activation=activation))
    return _decoders.decoder(c, _decoders.stack(c, repeat(block, c["num_hidden_layers"]), norm))


_NORMS = (("attention_layernorm", "attention.pre"), ("feedforward_layernorm", "feed_forward.pre"))
_THEIRS, _OURS = f"{_decoders.LAYER}.mlp.act_fn", f"{_decoders.BLOCK}.feed_forward.branch.activation"
WEIGHTS = (
    *_decoders.weights(*_NORMS, *_decoders.HEAD_NORMS),
    *_decoders.plain_weights(),
    *(rename(f"{_THEIRS}.{part}", f"{_OURS}.{part}") for part in ("alpha_p", "alpha_n", "beta", "eps")),
)
