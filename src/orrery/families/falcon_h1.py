"""Falcon-H1 (TII 2025): Mamba-2 and attention side by side in every layer, with fixed multipliers everywhere.

Peculiar to it: both read the same norm and are added; the multipliers of muP (Yang et al. 2022) stay in the model:
before and behind either branch, on each of the mixer's projections, on the keys, on the gate of the network and behind
it, on the words and on the logits. The mixer has a norm only where ``mamba_rms_norm`` asks for one.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from orrery.checkpoints.rules import Rule, rename, renames
from orrery.errors import ModelFileError
from orrery.families import _decoders, _parts, _rotary, _state_space
from orrery.families._config import Config
from orrery.families._keys import items, positive, size
from orrery.models.decoder import Decoder
from orrery.nn.attention.multihead import ScoreSettings
from orrery.nn.block import Block
from orrery.nn.linear.gating import GateAlone, GateThenNorm, Gating, NormThenGate
from orrery.nn.linear.mamba2 import Projections
from orrery.nn.masks import Causal, RecurrentPast
from orrery.nn.norms import RMSNorm
from orrery.nn.residual import Normed, Residual, Scale, Sum
from orrery.nn.spec import ModuleSpec
from orrery.nn.stack import repeat

ARCHITECTURE = "FalconH1ForCausalLM"
_MULTIPLIERS = ("embedding", "lm_head", "attention_in", "attention_out", "ssm_in", "ssm_out")
DEFAULTS: Mapping[str, Any] = {
    "vocab_size": size(128000),
    "hidden_size": size(4096),
    "intermediate_size": size(14336),
    "num_hidden_layers": size(32),
    "num_attention_heads": size(32),
    "num_key_value_heads": size(8, null=True),
    "head_dim": size(None),
    "hidden_act": "silu",
    "rms_norm_eps": 1e-5,
    "max_position_embeddings": 8192,
    "attention_bias": False,
    "mlp_bias": False,
    "projectors_bias": False,
    "attention_dropout": 0.0,
    "tie_word_embeddings": False,
    "mamba_d_ssm": size(1024, null=True),
    "mamba_rms_norm": False,
    "mamba_norm_before_gate": True,
    **{f"{name}_multiplier": 1.0 for name in _MULTIPLIERS},
    "key_multiplier": positive(1.0),
    "mlp_multipliers": items(),
    "ssm_multipliers": items(),
    **_state_space.BESIDE_ATTENTION,
    **_rotary.DEFAULTS,
}
TINY = {
    **_decoders.NARROW,
    "intermediate_size": 12,
    "mamba_d_ssm": 24,
    "mamba_n_heads": 4,
    "mamba_n_groups": 2,
    "mamba_d_state": 4,
    "embedding_multiplier": 5.5,
    "lm_head_multiplier": 0.25,
    "key_multiplier": 0.4,
    "attention_in_multiplier": 1.25,
    "attention_out_multiplier": 0.75,
    "ssm_in_multiplier": 1.5,
    "ssm_out_multiplier": 0.25,
    "ssm_multipliers": [0.5, 0.25, 0.75, 1.25, 0.35],
    "mlp_multipliers": [0.875, 0.5],
}
_FIXED = {"hidden_act": "silu", "attn_layer_indices": None, "mamba_use_mlp": True}
_IGNORED = ("mamba_chunk_size", "num_logits_to_keep", "mlp_expansion_factor", "layers_block_type", "layer_types")


def spec(config: Mapping[str, Any]) -> Decoder.Spec:
    """Return the architecture that a ``config.json`` describes."""
    c = Config("falcon_h1", config, DEFAULTS, fixed=_FIXED, ignored=_IGNORED)
    norm, masks = RMSNorm.Spec(eps=c["rms_norm_eps"]), {"causal": Causal(), "past": RecurrentPast()}
    blocks = repeat(_block(c, norm), c["num_hidden_layers"])
    stack = _decoders.stack(c, blocks, norm, masks=masks, enter=_times(c, "embedding"))
    return _decoders.decoder(c, stack, cap=_times(c, "lm_head"))


def _block(c: Config, norm: ModuleSpec) -> Block.Spec:
    """Return a block of Mamba-2 and attention side by side, and of a gated network."""
    mixers = Sum.Spec(
        branches={
            "mixer": Normed.Spec(norm=_times(c, "ssm_in"), branch=_mixer(c), post=_times(c, "ssm_out")),
            "attention": Normed.Spec(
                norm=_times(c, "attention_in"), branch=_attention(c), post=_times(c, "attention_out")
            ),
        }
    )
    gate, down = (Scale.Spec(factor=factor) for factor in _factors(c, "mlp_multipliers", 2))
    network = _decoders.feed_forward(c, bias=c["mlp_bias"], before=gate)
    return Block.Spec(
        residuals={
            "parallel": Residual.Spec(branch=mixers, pre=norm),
            "feed_forward": Residual.Spec(branch=network, pre=norm, post=down),
        }
    )


def _attention(c: Config) -> ModuleSpec:
    """Return the attention; a multiplier of the keys is one of the scores."""
    scale = c["key_multiplier"] * _decoders.head_width(c) ** -0.5
    scoring = ScoreSettings(scale=scale, dropout=c["attention_dropout"])
    return _decoders.attention(c, biases=_parts.biases(c["attention_bias"]), scoring=scoring)


def _mixer(c: Config) -> ModuleSpec:
    factors = (Scale.Spec(factor=factor) for factor in _factors(c, "ssm_multipliers", 5))
    behind = dict(zip(("gate", "x", "write", "read", "step_size"), factors, strict=True))
    projections = Projections(bias=c["mamba_proj_bias"], out_bias=c["projectors_bias"], **behind)
    return _state_space.mixer_beside_attention(c, projections=projections, gating=_gating(c))


def _gating(c: Config) -> Gating:
    if not c["mamba_rms_norm"]:
        return GateAlone()
    eps = c["rms_norm_eps"]
    return NormThenGate(eps=eps) if c["mamba_norm_before_gate"] else GateThenNorm(eps=eps)


def _times(c: Config, name: str) -> Scale.Spec:
    return Scale.Spec(factor=c[f"{name}_multiplier"])


def _factors(c: Config, key: str, number: int) -> Sequence[float]:
    """Return the numbers of a list of multipliers, ones where there is none.

    Raises:
        ModelFileError: it is not a list of as many numbers.
    """
    given = c[key] or (1.0,) * number
    if len(given) != number or any(isinstance(one, bool) or not isinstance(one, int | float) for one in given):
        raise ModelFileError(f"{c.family}: {key} = {given!r} is not {number} numbers", "write one for each projection")
    return [float(one) for one in given]


_LAYER, _BLOCK = _decoders.LAYER, _decoders.BLOCK
_SIDE_BY_SIDE = f"{_BLOCK}.parallel.branch"
WEIGHTS: tuple[Rule, ...] = (
    rename("model.embed_tokens.weight", "embed.token.weight"),
    rename(f"{_LAYER}.input_layernorm.weight", f"{_BLOCK}.parallel.pre.weight"),
    rename(f"{_LAYER}.pre_ff_layernorm.weight", f"{_BLOCK}.feed_forward.pre.weight"),
    *_decoders.projections("parallel.branch.attention.branch"),
    *_state_space.mamba2_rules(f"{_LAYER}.mamba", f"{_SIDE_BY_SIDE}.mixer.branch"),
    *renames(f"{_LAYER}.feed_forward", f"{_BLOCK}.feed_forward.branch", _decoders.GATED),
    rename("model.final_layernorm.weight", "stack.final.weight"),
    rename("lm_head.weight", "head.vocabulary.weight"),
)
