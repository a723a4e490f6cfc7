"""RetNet (Sun et al. 2023): each head forgets at a fixed pace of its own, from 32 tokens on.

Peculiar to it: no normaliser but a norm of each head; a state that turns, as rotary positions do; an output gate;
values twice as wide as keys, for which the network after it is smaller. Differs from the paper: it stands in Llama's
block, whose network is gated; it is narrower, so that a layer has the paper's 12 parameters for each of D^2.
"""

from collections.abc import Mapping
from typing import Any

from orrery.families import _linear
from orrery.families._config import Config
from orrery.families._keys import size
from orrery.models.decoder import Decoder
from orrery.nn.linear.retention import Retention

ARCHITECTURE = "RetNetLanguageModel"
LIBRARY = "orrery"
DEFAULTS: Mapping[str, Any] = {
    **_linear.DEFAULTS,
    "intermediate_size": size(1024),
    "num_heads": size(3),
    "key_head_dim": size(256),
    "value_head_dim": size(512),
    "chunk_size": size(64),
}
TINY = {**_linear.TINY, "num_heads": 2, "key_head_dim": 4, "value_head_dim": 8, "chunk_size": 4}


def spec(config: Mapping[str, Any]) -> Decoder.Spec:
    """Return the architecture that a configuration describes."""
    c = Config("retnet", config, DEFAULTS)
    mixer = Retention.Spec(
        heads=c["num_heads"],
        key_width=c["key_head_dim"],
        value_width=c["value_head_dim"],
        eps=c["rms_norm_eps"],
        size=c["chunk_size"],
    )
    return _linear.assemble(c, mixer)


WEIGHTS = _linear.own_names(spec)
