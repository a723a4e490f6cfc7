"""GLA (Yang et al. 2024): gated linear attention, whose every channel forgets as the token says.

Peculiar to it: keys half as wide as values, few heads, a forget gate through a low rank with its sixteenth root taken,
a norm of each head and an output gate. Its block is Llama's in the paper too.
"""

from collections.abc import Mapping
from typing import Any

from orrery.families import _linear
from orrery.families._config import Config
from orrery.families._keys import size
from orrery.models.decoder import Decoder
from orrery.nn.linear.gated_linear_attention import GatedLinearAttention

ARCHITECTURE = "GLALanguageModel"
LIBRARY = "orrery"
DEFAULTS: Mapping[str, Any] = {
    **_linear.DEFAULTS,
    "num_heads": size(4),
    "key_head_dim": size(96),
    "value_head_dim": size(192),
    "gate_low_rank_dim": size(16),
    "chunk_size": size(64),
}
TINY = {**_linear.TINY, "num_heads": 2, "key_head_dim": 4, "value_head_dim": 8, "gate_low_rank_dim": 4, "chunk_size": 8}


def spec(config: Mapping[str, Any]) -> Decoder.Spec:
    """Return the architecture that a configuration describes."""
    c = Config("gla", config, DEFAULTS)
    mixer = GatedLinearAttention.Spec(
        heads=c["num_heads"],
        key_width=c["key_head_dim"],
        value_width=c["value_head_dim"],
        rank=c["gate_low_rank_dim"],
        eps=c["rms_norm_eps"],
        size=c["chunk_size"],
    )
    return _linear.assemble(c, mixer)


WEIGHTS = _linear.own_names(spec)
