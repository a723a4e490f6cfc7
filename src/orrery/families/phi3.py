"""Phi-3 and Phi-3.5 mini (Abdin et al. 2024): Llama's block with fused matrices.

Peculiar to it: RMSNorm in front of each sublayer; rotary positions; SwiGLU; no biases; perhaps a sliding window; the
head is a table of its own. In its files q, k and v are one matrix, and so are gate and up. The long-context models
turn their heads by ``longrope``, which old files call ``su`` or ``yarn``: a factor a pair of channels, of two sets, one
for texts up to the trained length and one beyond. A cached text takes the set of its capacity, from its first token on.
"""

from collections.abc import Mapping
from typing import Any

from orrery.checkpoints.rules import fused, rename
from orrery.families import _decoders, _parts, _rotary, _windows
from orrery.families._config import Config
from orrery.families._keys import count, positive, size
from orrery.models.decoder import Decoder
from orrery.nn.norms import RMSNorm
from orrery.nn.positions.rotary import Rotary
from orrery.nn.stack import repeat

ARCHITECTURE = "Phi3ForCausalLM"
DEFAULTS: Mapping[str, Any] = {
    "vocab_size": size(32064),
    "hidden_size": size(3072),
    "intermediate_size": size(8192),
    "num_hidden_layers": size(32),
    "num_attention_heads": size(32),
    "num_key_value_heads": size(None),
    "resid_pdrop": 0.0,
    "attention_dropout": 0.0,
    "hidden_act": "silu",
    "max_position_embeddings": 4096,
    "rms_norm_eps": 1e-5,
    "sliding_window": count(None),
    "tie_word_embeddings": False,
    "partial_rotary_factor": positive(1.0),
    "original_max_position_embeddings": 4096,
    **_rotary.DEFAULTS,
}
TINY = {**_decoders.TINY, "sliding_window": 9}
_FIXED = {
    "attention_bias": False, "mlp_bias": False, "lm_head_bias": False, "full_attn_mod": 1, "interpolate_factor": 1,
}  # fmt: skip
_IGNORED = ("embd_pdrop",)


def spec(config: Mapping[str, Any]) -> Decoder.Spec:
    """Return the architecture that a ``config.json`` describes."""
    c = Config("phi3", config, DEFAULTS, fixed=_FIXED, ignored=_IGNORED)
    norm = RMSNorm.Spec(eps=c["rms_norm_eps"])
    branches = {"attention": _decoders.attention(c), "feed_forward": _decoders.feed_forward(c)}
    block = _parts.sequential(branches, pre=norm, dropout=c["resid_pdrop"])
    stack = _decoders.stack(
        c,
        repeat(block, c["num_hidden_layers"]),
        norm,
        positions={"rotary": _rotary_positions(c)},
        masks={"causal": _windows.causal(c, c["sliding_window"])},
    )
    return _decoders.decoder(c, stack)


def _rotary_positions(c: Config) -> Rotary.Spec:
    """Return the rotary positions: the trained length stands beside their settings, and counts before one inside."""
    given = dict(c["rope_scaling"] or c["rope_parameters"] or {})
    kind = given.pop("rope_type", given.pop("type", "default"))
    given["rope_type"] = "longrope" if kind in ("su", "yarn") else kind
    given["original_max_position_embeddings"] = c["original_max_position_embeddings"]
    return _rotary.from_settings(
        c.family,
        given,
        c["rope_theta"],
        _decoders.head_width(c),
        c["max_position_embeddings"],
        share=c["partial_rotary_factor"],
        kinds=("default", "longrope"),
    )


_THEIRS, _OURS = f"{_decoders.LAYER}.self_attn", f"{_decoders.BLOCK}.attention.branch"
WEIGHTS = (
    *_decoders.frame(*_decoders.PRE_NORMS),
    fused(f"{_THEIRS}.qkv_proj.weight", tuple(f"{_OURS}.{x}.weight" for x in "qkv")),
    rename(f"{_THEIRS}.o_proj.weight", f"{_OURS}.out.weight"),
    *_decoders.fused_gated_weights(),
)
