"""InternLM3 (Shanghai AI Laboratory 2025): Llama with biases in two groups, each a setting of its own.

Peculiar to it: ``qkv_bias`` gives queries, keys and values a bias, ``bias`` the output of the attention and all three
matrices of the feed-forward network; the published model has neither, and stretches its rotary positions by the
length of what is read.
"""

from collections.abc import Mapping
from typing import Any

from orrery.families import _decoders
from orrery.families._config import Config
from orrery.families._keys import size
from orrery.models.decoder import Decoder
from orrery.nn.attention.multihead import Biases
from orrery.nn.norms import RMSNorm
from orrery.nn.stack import repeat

ARCHITECTURE = "InternLM3ForCausalLM"
DEFAULTS: Mapping[str, Any] = {
    **_decoders.DEFAULTS,
    "vocab_size": size(128512),
    "intermediate_size": size(10240),
    "num_hidden_layers": size(48),
    "num_key_value_heads": size(2, null=True),
    "head_dim": size(128, null=True),
    "max_position_embeddings": 32768,
    "rms_norm_eps": 1e-5,
    "qkv_bias": False,
    "bias": False,
}
TINY = {**_decoders.TINY, "num_attention_heads": 4, "head_dim": 8, "qkv_bias": True, "bias": True}
_ALIASES = {"attention_bias": "qkv_bias", "mlp_bias": "bias"}
"""What transformers calls them in the files that it writes."""


def spec(config: Mapping[str, Any]) -> Decoder.Spec:
    """Return the architecture that a ``config.json`` describes."""
    c = Config("internlm3", config, DEFAULTS, aliases=_ALIASES)
    norm, asked = RMSNorm.Spec(eps=c["rms_norm_eps"]), c["qkv_bias"]
    biases = Biases(q=asked, k=asked, v=asked, out=c["bias"])
    block = _decoders.pre_norm(norm, _decoders.attention(c, biases=biases), _decoders.feed_forward(c, bias=c["bias"]))
    return _decoders.decoder(c, _decoders.stack(c, repeat(block, c["num_hidden_layers"]), norm))


WEIGHTS = (*_decoders.weights(*_decoders.PRE_NORMS), *_decoders.gated_weights())
