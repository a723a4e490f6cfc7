"""Falcon Mamba 7B (Zuo et al. 2024): Mamba with norms on what selects.

Peculiar to it: an RMSNorm without a gain stands behind the low-rank step sizes, B and C, which kept the training of the
large model stable.
"""

from collections.abc import Mapping
from typing import Any

from orrery.families import _state_space
from orrery.families._config import Config
from orrery.families._keys import size
from orrery.models.decoder import Decoder
from orrery.nn.norms import PlainRMSNorm

ARCHITECTURE = "FalconMambaForCausalLM"
DEFAULTS: Mapping[str, Any] = {
    **_state_space.DEFAULTS,
    "mixer_rms_eps": 1e-6,
    "max_position_embeddings": size(8192),
}
TINY = _state_space.TINY
WEIGHTS = _state_space.WEIGHTS


def spec(config: Mapping[str, Any]) -> Decoder.Spec:
    """Return the architecture that a ``config.json`` describes."""
    c = Config("falcon_mamba", config, DEFAULTS, fixed=_state_space.FIXED, ignored=_state_space.IGNORED)
    norm = PlainRMSNorm.Spec(eps=c["mixer_rms_eps"])
    return _state_space.assemble(c, _state_space.mixer(c, norm=norm))
