"""Gemma 1 (Gemma Team 2024): Llama with GEGLU and a louder entrance.

Peculiar to it: embeddings multiplied by ``sqrt(D)``; norms that store their gain minus one; gelu in its tanh form in
the gate, also where a file says plain ``gelu``; heads of 256 channels whatever the width; a tied head.
Differs from transformers below float32: there ``sqrt(D)`` is rounded to the weights' precision (55.43 to 55.5).
"""

from collections.abc import Mapping
from typing import Any

from orrery.families import _decoders, _gemma, _parts, _rotary
from orrery.families._config import Config
from orrery.families._keys import size
from orrery.models.decoder import Decoder
from orrery.nn.stack import repeat

ARCHITECTURE = "GemmaForCausalLM"
DEFAULTS: Mapping[str, Any] = {
    "vocab_size": size(256000),
    "hidden_size": size(3072),
    "intermediate_size": size(24576),
    "num_hidden_layers": size(28),
    "num_attention_heads": size(16),
    "num_key_value_heads": size(16, null=True),
    "head_dim": size(256, null=True),
    "hidden_act": "gelu_pytorch_tanh",
    "max_position_embeddings": 8192,
    "rms_norm_eps": 1e-6,
    "attention_bias": False,
    "attention_dropout": 0.0,
    "tie_word_embeddings": True,
    **_rotary.DEFAULTS,
}
TINY = {**_decoders.TINY, "num_attention_heads": 4, "num_key_value_heads": 1, "head_dim": 8}
_FIXED = {"use_bidirectional_attention": None}
_IGNORED = ("hidden_activation",)  # says again what hidden_act says; the reference reads hidden_act alone


def spec(config: Mapping[str, Any]) -> Decoder.Spec:
    """Return the architecture that a ``config.json`` describes."""
    c = Config("gemma", config, DEFAULTS, fixed=_FIXED, ignored=_IGNORED)
    attention = _decoders.attention(c, biases=_parts.biases(c["attention_bias"]))
    activation = "gelu_tanh" if c["hidden_act"] == "gelu" else c.activation("hidden_act")
    block = _decoders.pre_norm(_gemma.norm(c), attention, _decoders.feed_forward(c, activation=activation))
    blocks = repeat(block, c["num_hidden_layers"])
    return _decoders.decoder(c, _decoders.stack(c, blocks, _gemma.norm(c), enter=_gemma.louder(c)))


WEIGHTS = (*_decoders.weights(*_decoders.PRE_NORMS), *_decoders.gated_weights())
