"""Granite 3 (IBM 2024): Llama with four multipliers.

Peculiar to it, after maximal update parametrisation (Yang et al. 2022): the embeddings are multiplied
(``embedding_multiplier``), what each branch adds is multiplied (``residual_multiplier``), the scores are multiplied by
``attention_multiplier`` in the place of ``1 / sqrt(C)``, and the logits are divided (``logits_scaling``).
"""

from collections.abc import Mapping
from typing import Any

from orrery.families import _decoders, _parts
from orrery.families._config import Config
from orrery.families._keys import positive
from orrery.models.decoder import Decoder
from orrery.nn.attention.multihead import ScoreSettings
from orrery.nn.norms import RMSNorm
from orrery.nn.residual import Scale
from orrery.nn.stack import repeat

ARCHITECTURE = "GraniteForCausalLM"
DEFAULTS: Mapping[str, Any] = {
    **_decoders.DEFAULTS,
    "embedding_multiplier": 1.0,
    "residual_multiplier": 1.0,
    "attention_multiplier": positive(1.0),
    "logits_scaling": positive(1.0),
    "rms_norm_eps": 1e-6,
    "attention_bias": False,
    "mlp_bias": False,
}
TINY = {
    "vocab_size": 61,
    "hidden_size": 24,
    "intermediate_size": 40,
    "num_hidden_layers": 2,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "max_position_embeddings": 48,
    "embedding_multiplier": 12.0,
    "residual_multiplier": 0.22,
    "attention_multiplier": 0.25,
    "logits_scaling": 8.0,
    "tie_word_embeddings": True,
}


def spec(config: Mapping[str, Any]) -> Decoder.Spec:
    """Return the architecture that a ``config.json`` describes."""
    c = Config("granite", config, DEFAULTS)
    attention = _decoders.attention(
        c,
        biases=_parts.biases(c["attention_bias"]),
        scoring=ScoreSettings(scale=c["attention_multiplier"], dropout=c["attention_dropout"]),
    )
    feed_forward = _decoders.feed_forward(c, bias=c["mlp_bias"])
    norm, softer = RMSNorm.Spec(eps=c["rms_norm_eps"]), Scale.Spec(factor=c["residual_multiplier"])
    block = _parts.sequential({"attention": attention, "feed_forward": feed_forward}, pre=norm, post=softer)
    louder = Scale.Spec(factor=c["embedding_multiplier"])
    stack = _decoders.stack(c, repeat(block, c["num_hidden_layers"]), norm, enter=louder)
    return _decoders.decoder(c, stack, cap=Scale.Spec(factor=1 / c["logits_scaling"]))


WEIGHTS = (*_decoders.weights(*_decoders.PRE_NORMS), *_decoders.gated_weights())
