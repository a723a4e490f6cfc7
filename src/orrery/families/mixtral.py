"""Mixtral (Jiang et al. 2024): Mistral with eight experts, two a token.

Peculiar to it: every feed-forward network is a mixture; the probabilities of the two chosen experts are brought to a
sum of one, which is the softmax over their logits alone (section 2.1); all layers may look through one window.
"""

from collections.abc import Mapping
from typing import Any

from orrery.families import _decoders, _mixture, _windows
from orrery.families._config import Config
from orrery.families._keys import count, positive, size
from orrery.models.decoder import Decoder

ARCHITECTURE = "MixtralForCausalLM"
DEFAULTS: Mapping[str, Any] = {
    **_decoders.DEFAULTS,
    "intermediate_size": size(14336),
    "num_key_value_heads": size(8, null=True),
    "num_local_experts": 8,
    "num_experts_per_tok": size(2),
    "max_position_embeddings": 131072,
    "sliding_window": count(None),
    "rms_norm_eps": 1e-5,
    "rope_theta": positive(1_000_000.0),
}
TINY = {**_decoders.NARROW, "intermediate_size": 12, "num_local_experts": 4, "sliding_window": 7}
_FIXED = {"router_jitter_noise": 0.0}
_IGNORED = ("output_router_logits", "router_aux_loss_coef")


def spec(config: Mapping[str, Any]) -> Decoder.Spec:
    """Return the architecture that a ``config.json`` describes."""
    c = Config("mixtral", config, DEFAULTS, fixed=_FIXED, ignored=_IGNORED)
    layers, masks = c["num_hidden_layers"], {"causal": _windows.causal(c, c["sliding_window"])}
    mixture = _mixture.experts(c, c["num_local_experts"], "intermediate_size", normalised=True)
    return _mixture.decoder(c, [_decoders.attention(c)] * layers, [mixture] * layers, masks)


WEIGHTS = (*_decoders.weights(*_decoders.PRE_NORMS), *_mixture.MIXTRAL)
