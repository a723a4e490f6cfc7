"""Youtu-LLM (Tencent 2026): DeepSeek-V3's latent attention in a small dense model.

Peculiar to it: every layer has one gated network in the place of experts; a tied head.
"""

from collections.abc import Mapping
from typing import Any

from orrery.checkpoints.rules import Rule
from orrery.families import _decoders, _deepseek
from orrery.families._config import Config
from orrery.families._keys import plain, size
from orrery.models.decoder import Decoder
from orrery.nn.norms import RMSNorm
from orrery.nn.stack import repeat

ARCHITECTURE = "YoutuForCausalLM"
DEFAULTS: Mapping[str, Any] = {
    **_deepseek.DEFAULTS,
    "vocab_size": size(128256),
    "hidden_size": size(2048),
    "intermediate_size": size(6144),
    "num_hidden_layers": size(32),
    "num_attention_heads": size(16),
    "max_position_embeddings": 131072,
    "rope_interleave": True,
    "tie_word_embeddings": True,
}
TINY = {
    **_deepseek.TINY,
    "pad_token_id": None,
}
_IGNORED = ("num_key_value_heads", "embedding_initializer_range")


def spec(config: Mapping[str, Any]) -> Decoder.Spec:
    """Return the architecture that a ``config.json`` describes."""
    c = _deepseek.check(Config("youtu", config, DEFAULTS, ignored=_IGNORED))
    norm = RMSNorm.Spec(eps=c["rms_norm_eps"])
    block = _decoders.pre_norm(norm, _deepseek.attention(c), _decoders.feed_forward(c))
    positions = _deepseek.positions(c, interleaved=c["rope_interleave"])
    return _decoders.decoder(c, _decoders.stack(c, repeat(block, c["num_hidden_layers"]), norm, positions=positions))


def WEIGHTS(config: Mapping[str, Any]) -> tuple[Rule, ...]:  # noqa: N802 - the name of a family's rules
    """Return the rules of the files, which depend on the number of heads."""
    return _deepseek.weights({**plain(DEFAULTS), **config})
