"""Ministral 3, the text models (Mistral AI 2025): Mistral whose queries grow beyond the trained length.

Peculiar to it: YaRN without a temperature of its own, and in its place a factor on every query that grows with the
logarithm of its position in trained lengths (``llama_4_scaling_beta``), as in Llama 4.
"""

from collections.abc import Mapping
from typing import Any

from orrery.errors import ModelFileError
from orrery.families import _decoders, _rotary, _windows
from orrery.families._config import Config
from orrery.families._keys import count, positive, size
from orrery.models.decoder import Decoder
from orrery.nn.norms import RMSNorm
from orrery.nn.positions.tempered import TemperedRotary
from orrery.nn.stack import repeat

ARCHITECTURE = "Ministral3ForCausalLM"
DEFAULTS: Mapping[str, Any] = {
    **_decoders.DEFAULTS,
    "vocab_size": size(131072),
    "intermediate_size": size(14336),
    "num_hidden_layers": size(34),
    "num_key_value_heads": size(8),
    "head_dim": size(128),
    "max_position_embeddings": 262144,
    "sliding_window": count(None),
    "rms_norm_eps": 1e-5,
    "rope_theta": positive(10_000.0),
}
TINY = {
    **_decoders.TINY,
    "head_dim": 4,
    "rope_parameters": {
        "rope_type": "yarn",
        "rope_theta": 500.0,
        "factor": 4.0,
        "original_max_position_embeddings": 3,
        "beta_fast": 4.0,
        "beta_slow": 1.0,
        "mscale": 1.0,
        "mscale_all_dim": 1.0,
        "llama_4_scaling_beta": 0.3,
    },
}
_GROWTH = "llama_4_scaling_beta"
_USUAL = {
    "rope_type": "yarn", "rope_theta": 1_000_000.0, "factor": 16.0, "original_max_position_embeddings": 16384,
    "beta_fast": 32.0, "beta_slow": 1.0, "mscale_all_dim": 1.0, "mscale": 1.0, _GROWTH: 0.1,
}  # fmt: skip
"""The rotary settings of a file without any."""


def spec(config: Mapping[str, Any]) -> Decoder.Spec:
    """Return the architecture that a ``config.json`` describes."""
    c = Config("ministral3", config, DEFAULTS)
    norm = RMSNorm.Spec(eps=c["rms_norm_eps"])
    block = _decoders.pre_norm(norm, _decoders.attention(c), _decoders.feed_forward(c))
    masks = {"causal": _windows.causal(c, c["sliding_window"])}
    blocks = repeat(block, c["num_hidden_layers"])
    return _decoders.decoder(c, _decoders.stack(c, blocks, norm, positions={"rotary": _positions(c)}, masks=masks))


def _positions(c: Config) -> TemperedRotary.Spec:
    """Return the rotation and how queries grow.

    Raises:
        ModelFileError: one of the two numbers that say how they grow is missing.
    """
    given = dict(c["rope_scaling"] or (_USUAL if c["rope_parameters"] is None else c["rope_parameters"]))
    given.pop("max_position_embeddings", None)  # repeats what stands beside the settings
    beta, trained = given.pop(_GROWTH, None), given.get("original_max_position_embeddings")
    if type(beta) not in (int, float) or type(trained) not in (int, float) or not trained or trained < 1:
        raise ModelFileError(
            f"ministral3: rope_parameters (or rope_scaling): {_GROWTH} = {beta!r}, "
            f"original_max_position_embeddings = {trained!r}",
            "queries grow by the first with every length that the second counts: give both as numbers",
        )
    rotary = _rotary.from_settings(
        c.family, given, c["rope_theta"], _decoders.head_width(c), c["max_position_embeddings"]
    )
    return TemperedRotary.Spec(rotary=rotary, beta=float(beta or 0), trained=int(trained))


WEIGHTS = (*_decoders.weights(*_decoders.PRE_NORMS), *_decoders.gated_weights())
