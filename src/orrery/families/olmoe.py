"""OLMoE (Muennighoff et al. 2024): 64 small experts, eight a token, fully open.

Peculiar to it: an RMSNorm over all heads of q together, and one over those of k, before the rotation; every
feed-forward network is a mixture without a shared expert; weights of the chosen are their probabilities, not
normalised; queries, keys and values may be clipped to a bound (``clip_qkv``), after the norms, before the rotation.
"""

from collections.abc import Mapping
from typing import Any

from orrery.families import _decoders, _mixture, _parts
from orrery.families._config import Config
from orrery.families._keys import number, size
from orrery.models.decoder import Decoder
from orrery.nn.attention.sources import SelfSource
from orrery.nn.elementwise import Clamp
from orrery.nn.masks import Causal
from orrery.nn.norms import RMSNorm
from orrery.nn.residual import Chain, Identity

ARCHITECTURE = "OlmoeForCausalLM"
DEFAULTS: Mapping[str, Any] = {
    **_decoders.DEFAULTS,
    "vocab_size": size(50304),
    "hidden_size": size(2048),
    "intermediate_size": size(2048),
    "num_hidden_layers": size(16),
    "num_attention_heads": size(16),
    "num_experts": 64,
    "num_experts_per_tok": size(8),
    "clip_qkv": number(None),
    "norm_topk_prob": False,
    "max_position_embeddings": 4096,
    "rms_norm_eps": 1e-5,
    "attention_bias": False,
}
TINY = {**_decoders.NARROW, "intermediate_size": 8, "num_experts": 6, "num_experts_per_tok": 3}
_IGNORED = ("output_router_logits", "router_aux_loss_coef")


def spec(config: Mapping[str, Any]) -> Decoder.Spec:
    """Return the architecture that a ``config.json`` describes."""
    c = Config("olmoe", config, DEFAULTS, ignored=_IGNORED)
    layers, norm = c["num_hidden_layers"], RMSNorm.Spec(eps=c["rms_norm_eps"])
    clip = Identity.Spec() if c["clip_qkv"] is None else Clamp.Spec(bound=float(c["clip_qkv"]))
    attention = _decoders.attention(
        c,
        biases=_parts.biases(c["attention_bias"]),
        qk_norm=norm if c["clip_qkv"] is None else Chain.Spec(parts=(norm, clip)),
        source=SelfSource.Spec(values=clip),
    )
    mixture = _mixture.experts(c, c["num_experts"], "intermediate_size", normalised=c["norm_topk_prob"])
    return _mixture.decoder(c, [attention] * layers, [mixture] * layers, {"causal": Causal()})


_BEFORE_A_CLIP = tuple((theirs, f"{ours}.0") for theirs, ours in _decoders.QK_NORMS)
WEIGHTS = (*_decoders.weights(*_decoders.PRE_NORMS, *_decoders.QK_NORMS, *_BEFORE_A_CLIP), *_mixture.EXPERTS)
