"""Granite 3 (IBM 2024): Llama with four multipliers.

Peculiar to it, after maximal update parametrisation (Yang et al. 2022): the embeddings are multiplied
(``embedding_multiplier``), what each branch adds is multiplied (``residual_multiplier``), the scores are multiplied by
``attention_multiplier`` in the place of ``1 / sqrt(C)``, and the logits are divided (``logits_scaling``).
"""

from collections.abc import Mapping
from typing import Any

from orrery.families import _decoders, _granite
from orrery.families._config import Config
from orrery.models.decoder import Decoder

ARCHITECTURE = "GraniteForCausalLM"
DEFAULTS: Mapping[str, Any] = {
    **_decoders.DEFAULTS,
    **_granite.DEFAULTS,
    "mlp_bias": False,
}
TINY = {
    **_decoders.TINY,
    "embedding_multiplier": 12.0,
    "residual_multiplier": 0.22,
    "attention_multiplier": 0.25,
    "logits_scaling": 8.0,
    "tie_word_embeddings": True,
}


def spec(config: Mapping[str, Any]) -> Decoder.Spec:
    """Return the architecture that a ``config.json`` describes."""
    c = Config("granite", config, DEFAULTS)
    return _granite.decoder(c, _decoders.feed_forward(c, bias=c["mlp_bias"]))


WEIGHTS = (*_decoders.weights(*_decoders.PRE_NORMS), *_decoders.gated_weights())
