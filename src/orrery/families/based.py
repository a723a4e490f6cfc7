"""Based (Arora et al. 2024): linear attention for what is far away, exact attention in a small window for what is near.

Peculiar to it: blocks of linear attention with the Taylor features of narrow keys, and between them blocks of ordinary
attention with rotary positions that look back ``sliding_window`` tokens. So a session remembers a matrix and a window.
Differs from the paper: the two kinds take turns, and there are no blocks of gated convolutions beside them.
"""

from collections.abc import Mapping
from typing import Any

from orrery.families import _linear, _windows
from orrery.families._config import Config
from orrery.families._keys import positive, size
from orrery.models.decoder import Decoder
from orrery.nn.attention.multihead import MultiHeadAttention
from orrery.nn.linear.linear_attention import LinearAttention
from orrery.nn.linear.taylor import Taylor
from orrery.nn.masks import RecurrentPast
from orrery.nn.positions.rotary import Rotary

ARCHITECTURE = "BasedLanguageModel"
LIBRARY = "orrery"
DEFAULTS: Mapping[str, Any] = {
    **_linear.DEFAULTS,
    "num_heads": size(12),
    "feature_dim": size(16),
    "sliding_window": size(128),
    "rope_theta": positive(10_000.0),
    "chunk_size": size(64),
}
TINY = {**_linear.TINY, "num_heads": 2, "feature_dim": 3, "sliding_window": 5, "chunk_size": 4}


def spec(config: Mapping[str, Any]) -> Decoder.Spec:
    """Return the architecture that a configuration describes."""
    c = Config("based", config, DEFAULTS)
    heads, width = c["num_heads"], c.divide("hidden_size", "num_heads")
    far = LinearAttention.Spec(
        heads=heads, key_width=c["feature_dim"], value_width=width, features=Taylor.Spec(), size=c["chunk_size"]
    )
    near = MultiHeadAttention.Spec(heads=heads, kv_heads=heads, head_width=width, position="rotary", mask="local")
    kinds = (_linear.block(c, far), _linear.block(c, near, "attention"))
    return _linear.decoder(
        c,
        [kinds[depth % 2] for depth in range(c["num_hidden_layers"])],
        positions={"rotary": Rotary.Spec(width=width, base=c["rope_theta"])},
        masks={"past": RecurrentPast(), "local": _windows.causal(c, c["sliding_window"])},
    )


WEIGHTS = _linear.own_names(spec)
