"""Mamba-2 (Dao and Gu 2024): Mamba with one decay a head, so that a piece of a row is products of matrices.

Peculiar to it: x, B and C pass one short convolution; B and C are shared by the heads of a group; the gate acts before
an RMSNorm of each group of channels. The default configuration is that of Codestral Mamba 7B.
"""

from collections.abc import Mapping
from typing import Any

from orrery.errors import ModelFileError
from orrery.families import _state_space
from orrery.families._config import Config
from orrery.families._keys import items, size
from orrery.models.decoder import Decoder
from orrery.nn.linear.gating import GateThenNorm
from orrery.nn.linear.mamba2 import Mamba2, Projections

ARCHITECTURE = "Mamba2ForCausalLM"
DEFAULTS: Mapping[str, Any] = {
    **_state_space.FRAME,
    "vocab_size": size(32768),
    "hidden_size": size(4096),
    "state_size": size(128),
    "num_hidden_layers": size(64),
    "num_heads": size(128),
    "head_dim": size(64),
    "n_groups": size(8),
    "time_step_limit": items((0.0, None)),
    "tie_word_embeddings": False,
}
TINY = {
    "vocab_size": 61,
    "hidden_size": 16,
    "state_size": 4,
    "num_hidden_layers": 2,
    "num_heads": 4,
    "head_dim": 8,
    "n_groups": 2,
    "max_position_embeddings": 48,
}
LEGACY_NAMES = _state_space.LEGACY_NAMES
FIXED = {"hidden_act": "silu"}
IGNORED = (*_state_space.IGNORED, "chunk_size", "norm_before_gate", "rms_norm", "time_step_rank")
"""The tokens of a piece, whose size moves no number, and what the reference reads past."""


def spec(config: Mapping[str, Any]) -> Decoder.Spec:
    """Return the architecture that a ``config.json`` describes.

    Raises:
        ModelFileError: the heads do not make the width, or cannot be grouped, or step sizes have no bounds.
    """
    c = Config("mamba2", config, DEFAULTS, fixed=FIXED, ignored=IGNORED)
    wide, made = c["expand"] * c["hidden_size"], c["num_heads"] * c["head_dim"]
    if wide != made:
        message = f"mamba2: expand * hidden_size = {wide}, and num_heads * head_dim = {made}"
        raise ModelFileError(message, "they are the same channels: let them be equal")
    c.divide("num_heads", "n_groups")
    mixer = Mamba2.Spec(
        heads=c["num_heads"],
        head_width=c["head_dim"],
        state=c["state_size"],
        groups=c["n_groups"],
        length=c["conv_kernel"],
        projections=Projections(bias=c["use_bias"], out_bias=c["use_bias"]),
        convolution_bias=c["use_conv_bias"],
        gating=GateThenNorm(eps=c["layer_norm_epsilon"]),
        steps=_state_space.bounded_steps(c, drawn=_state_space.time_steps(c)),
    )
    return _state_space.assemble(c, mixer)


WEIGHTS = (
    *_state_space.frame(("dt_bias", "step_bias"), ("norm.weight", "norm")),
    *_state_space.joined("in_proj", ("gate", "x", "write", "read", "step_size")),
)
