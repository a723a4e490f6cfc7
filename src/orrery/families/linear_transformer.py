"""The linear transformer (Katharopoulos et al. 2020): attention whose weights are products of positive features.

Peculiar to it: queries and keys pass ``elu(x) + 1``, so that a sum over the past is a matrix that grows by an outer
product a token; what is read is divided by the sum of the weights. Nothing fades, and nothing but the growing sum tells
the order. Differs from the paper: it stands in Llama's block, with RMSNorm and a gated network.
"""

from collections.abc import Mapping
from typing import Any

from orrery.families import _linear
from orrery.families._config import Config
from orrery.families._keys import size
from orrery.models.decoder import Decoder
from orrery.nn.linear.linear_attention import LinearAttention

ARCHITECTURE = "LinearTransformerLanguageModel"
LIBRARY = "orrery"
DEFAULTS: Mapping[str, Any] = {
    **_linear.DEFAULTS,
    "num_heads": size(12),
    "key_head_dim": size(64),
    "value_head_dim": size(64),
    "chunk_size": size(64),
}
TINY = {**_linear.TINY, "num_heads": 2, "key_head_dim": 4, "value_head_dim": 8, "chunk_size": 4}


def spec(config: Mapping[str, Any]) -> Decoder.Spec:
    """Return the architecture that a configuration describes."""
    c = Config("linear_transformer", config, DEFAULTS)
    mixer = LinearAttention.Spec(
        heads=c["num_heads"],
        key_width=c["key_head_dim"],
        value_width=c["value_head_dim"],
        size=c["chunk_size"],
    )
    return _linear.assemble(c, mixer)


WEIGHTS = _linear.own_names(spec)
