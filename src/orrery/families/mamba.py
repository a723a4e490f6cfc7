"""Mamba (Gu and Dao 2023): a language model whose layers remember in a state of constant size what they select.

Peculiar to it: a block has one branch, a selective state space beside a gate, and no feed-forward network; no position
is told to anything. Published models read rows of 2,048 tokens when they were trained; a session may be longer, and
needs no more memory, where ``max_position_embeddings``, a key of ours, says so.
"""

from collections.abc import Mapping
from typing import Any

from orrery.families import _state_space
from orrery.families._config import Config
from orrery.models.decoder import Decoder

ARCHITECTURE = "MambaForCausalLM"
DEFAULTS = _state_space.DEFAULTS
TINY = _state_space.TINY
WEIGHTS = _state_space.WEIGHTS
LEGACY_NAMES = _state_space.LEGACY_NAMES


def spec(config: Mapping[str, Any]) -> Decoder.Spec:
    """Return the architecture that a ``config.json`` describes."""
    fixed, ignored = _state_space.FIXED, (*_state_space.IGNORED, *_OF_THE_PAPERS_CODE)
    c = Config("mamba", config, DEFAULTS, fixed=fixed, ignored=ignored)
    return _state_space.assemble(c, _state_space.mixer(c))


_OF_THE_PAPERS_CODE = ("d_inner", "d_model", "n_layer", "ssm_cfg", "fused_add_norm", "pad_vocab_size_multiple")
"""What converted files repeat under the names of the paper's code."""
