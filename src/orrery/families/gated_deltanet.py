"""Gated DeltaNet (Yang, Kautz and Hatamizadeh 2025): a matrix state that forgets, and corrects what it says to a key.

Peculiar to it: the delta rule takes away what the state says to a key before the new value is written, so that a key
can be given another value; short convolutions before it, keys of length one, a norm of each head and an output gate.
Its block is Llama's in the paper too.
"""

from collections.abc import Mapping
from typing import Any

from orrery.families import _linear
from orrery.families._config import Config
from orrery.families._keys import size
from orrery.models.decoder import Decoder
from orrery.nn.linear.gated_delta import Forgetting, GatedDelta

ARCHITECTURE = "GatedDeltaNetLanguageModel"
LIBRARY = "orrery"
DEFAULTS: Mapping[str, Any] = {
    **_linear.DEFAULTS,
    "num_heads": size(6),
    "key_head_dim": size(96),
    "value_head_dim": size(192),
    "conv_size": size(4),
    "chunk_size": size(64),
}
TINY = {**_linear.TINY, "num_heads": 2, "key_head_dim": 4, "value_head_dim": 8, "conv_size": 3, "chunk_size": 4}


def spec(config: Mapping[str, Any]) -> Decoder.Spec:
    """Return the architecture that a configuration describes."""
    c = Config("gated_deltanet", config, DEFAULTS)
    mixer = GatedDelta.Spec(
        heads=c["num_heads"],
        key_width=c["key_head_dim"],
        value_width=c["value_head_dim"],
        forget=Forgetting.Spec(heads=c["num_heads"]),
        places=c["conv_size"],
        eps=c["rms_norm_eps"],
        size=c["chunk_size"],
    )
    return _linear.assemble(c, mixer)


WEIGHTS = _linear.own_names(spec)
