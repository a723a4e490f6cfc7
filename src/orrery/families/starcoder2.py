"""StarCoder 2 (Lozhkov et al. 2024): a decoder for code with few key-value heads and a sliding window.

Peculiar to it: LayerNorm with bias; rotary positions with a large base; grouped heads; every layer looks back a window
only, where there is one; a plain feed-forward network with gelu in its tanh form; biases everywhere; the head is the
embedding table.
"""

from collections.abc import Mapping
from typing import Any

from orrery.checkpoints.rules import renames
from orrery.families import _decoders, _parts, _rotary, _windows
from orrery.families._config import Config
from orrery.families._keys import count, size
from orrery.models.decoder import Decoder
from orrery.nn.feedforward.mlp import MLP
from orrery.nn.norms import LayerNorm
from orrery.nn.residual import Dropout
from orrery.nn.stack import repeat

ARCHITECTURE = "Starcoder2ForCausalLM"
DEFAULTS: Mapping[str, Any] = {
    "vocab_size": size(49152),
    "hidden_size": size(3072),
    "intermediate_size": size(12288),
    "num_hidden_layers": size(30),
    "num_attention_heads": size(24),
    "num_key_value_heads": size(2, null=True),
    "head_dim": size(None),
    "hidden_act": "gelu_pytorch_tanh",
    "max_position_embeddings": 4096,
    "norm_epsilon": 1e-5,
    "sliding_window": count(None),
    "attention_dropout": 0.0,
    "residual_dropout": 0.0,
    "embedding_dropout": 0.0,
    "use_bias": True,
    "tie_word_embeddings": True,
    **_rotary.DEFAULTS,
}
TINY = {**_decoders.TINY, "sliding_window": 9}
_FIXED = {"mlp_type": "default", "norm_type": "layer_norm", "scale_attn_weights": True}
_IGNORED = (
    "activation_function", "attention_softmax_in_fp32", "scale_attention_softmax_in_fp32", "layer_norm_epsilon",
    "rms_norm_eps",
)  # fmt: skip
"""Left from the program that trained it; the activation is ``hidden_act``, the norms' epsilon ``norm_epsilon``."""


def spec(config: Mapping[str, Any]) -> Decoder.Spec:
    """Return the architecture that a ``config.json`` describes."""
    c = Config("starcoder2", config, DEFAULTS, fixed=_FIXED, ignored=_IGNORED)
    norm, biased = LayerNorm.Spec(eps=c["norm_epsilon"]), c["use_bias"]
    branches = {
        "attention": _decoders.attention(c, biases=_parts.biases(biased)),
        "feed_forward": MLP.Spec(hidden=c["intermediate_size"], activation=c.activation("hidden_act"), bias=biased),
    }
    block = _parts.sequential(branches, pre=norm, dropout=c["residual_dropout"])
    stack = _decoders.stack(
        c,
        repeat(block, c["num_hidden_layers"]),
        norm,
        masks={"causal": _windows.causal(c, c["sliding_window"])},
        start=Dropout.Spec(rate=c["embedding_dropout"]),
    )
    return _decoders.decoder(c, stack)


_MLP = (("c_fc", "up"), ("c_proj", "down"))
WEIGHTS = (
    *_decoders.weights(*_decoders.PRE_NORMS),
    *renames(f"{_decoders.LAYER}.mlp", f"{_decoders.BLOCK}.feed_forward.branch", _MLP),
)
