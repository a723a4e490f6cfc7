"""Seed-OSS (ByteDance 2025): Llama with biases on queries, keys and values.

Peculiar to it: a bias on the output of the attention is a setting of its own; what a branch adds is dropped in
training (``residual_dropout``); heads may be wider than the width shared out among them.
"""

from collections.abc import Mapping
from typing import Any

from orrery.families import _decoders, _parts
from orrery.families._config import Config
from orrery.families._keys import size
from orrery.models.decoder import Decoder
from orrery.nn.attention.multihead import Biases
from orrery.nn.norms import RMSNorm
from orrery.nn.stack import repeat

ARCHITECTURE = "SeedOssForCausalLM"
DEFAULTS: Mapping[str, Any] = {
    **_decoders.DEFAULTS,
    "vocab_size": size(155136),
    "intermediate_size": size(27648),
    "num_hidden_layers": size(64),
    "num_attention_heads": size(80),
    "num_key_value_heads": size(8, null=True),
    "head_dim": size(128, null=True),
    "max_position_embeddings": 524288,
    "rms_norm_eps": 1e-6,
    "attention_bias": True,
    "attention_out_bias": False,
    "mlp_bias": False,
    "attention_dropout": 0.1,
    "residual_dropout": 0.1,
}
TINY = {**_decoders.TINY, "num_attention_heads": 4, "head_dim": 8, "attention_dropout": 0.0, "residual_dropout": 0.0}


def spec(config: Mapping[str, Any]) -> Decoder.Spec:
    """Return the architecture that a ``config.json`` describes."""
    c = Config("seed_oss", config, DEFAULTS)
    norm, biased = RMSNorm.Spec(eps=c["rms_norm_eps"]), c["attention_bias"]
    biases = Biases(q=biased, k=biased, v=biased, out=c["attention_out_bias"])
    branches = {
        "attention": _decoders.attention(c, biases=biases),
        "feed_forward": _decoders.feed_forward(c, bias=c["mlp_bias"]),
    }
    block = _parts.sequential(branches, pre=norm, dropout=c["residual_dropout"])
    return _decoders.decoder(c, _decoders.stack(c, repeat(block, c["num_hidden_layers"]), norm))


WEIGHTS = (*_decoders.weights(*_decoders.PRE_NORMS), *_decoders.gated_weights())
