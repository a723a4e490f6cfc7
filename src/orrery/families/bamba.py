"""Bamba (IBM, CMU, Princeton and UIUC 2024): Mamba-2 in most layers, attention in a few.

Peculiar to it: the layers in ``attn_layer_indices`` attend, with rotary positions on half of each head; the others have
Mamba-2's mixer; behind either stands a gated network.
"""

from collections.abc import Mapping
from typing import Any

from orrery.checkpoints.rules import Rule, rename, renames
from orrery.families import _decoders, _parts, _rotary, _state_space
from orrery.families._config import Config
from orrery.families._keys import items, size
from orrery.models.decoder import Decoder
from orrery.nn.block import Block
from orrery.nn.masks import Causal, RecurrentPast
from orrery.nn.norms import RMSNorm
from orrery.nn.spec import ModuleSpec

ARCHITECTURE = "BambaForCausalLM"
DEFAULTS: Mapping[str, Any] = {
    "vocab_size": size(128000),
    "hidden_size": size(4096),
    "intermediate_size": size(14336),
    "num_hidden_layers": size(32),
    "num_attention_heads": size(32),
    "num_key_value_heads": size(8, null=True),
    "head_dim": size(None),
    "attn_layer_indices": items(),
    "hidden_act": "silu",
    "rms_norm_eps": 1e-5,
    "max_position_embeddings": 262144,
    "attention_bias": False,
    "mlp_bias": False,
    "attention_dropout": 0.0,
    "tie_word_embeddings": False,
    **_state_space.BESIDE_ATTENTION,
    **_rotary.DEFAULTS,
}
TINY = {
    **_decoders.NARROW,
    "intermediate_size": 12,
    "attn_layer_indices": [1],
    "mamba_n_heads": 4,
    "mamba_n_groups": 2,
    "mamba_d_state": 4,
}
_FIXED = {"hidden_act": "silu", "partial_rotary_factor": 0.5}
_IGNORED = ("mamba_chunk_size", "num_logits_to_keep", "z_loss_coefficient", "layers_block_type", "layer_types")


def spec(config: Mapping[str, Any]) -> Decoder.Spec:
    """Return the architecture that a ``config.json`` describes."""
    c = Config("bamba", config, DEFAULTS, fixed=_FIXED, ignored=_IGNORED)
    attends = set(c["attn_layer_indices"] or ())
    blocks = [_block(c, i in attends) for i in range(c["num_hidden_layers"])]
    norm, masks = RMSNorm.Spec(eps=c["rms_norm_eps"]), {"causal": Causal(), "past": RecurrentPast()}
    positions = {"rotary": _decoders.rotary(c, share=0.5)}
    return _decoders.decoder(c, _decoders.stack(c, blocks, norm, positions=positions, masks=masks))


def _block(c: Config, attends: bool) -> Block.Spec:
    """Return a block of an attention or a Mamba-2, and of a gated network."""
    mixer: dict[str, ModuleSpec] = (
        {"attention": _decoders.attention(c, biases=_parts.biases(c["attention_bias"]))}
        if attends
        else {"mixer": _state_space.mixer_beside_attention(c)}
    )
    feed_forward = _decoders.feed_forward(c, bias=c["mlp_bias"])
    return _parts.sequential({**mixer, "feed_forward": feed_forward}, pre=RMSNorm.Spec(eps=c["rms_norm_eps"]))


_LAYER, _BLOCK = _decoders.LAYER, _decoders.BLOCK
WEIGHTS: tuple[Rule, ...] = (
    rename("model.embed_tokens.weight", "embed.token.weight"),
    *(rename(f"{_LAYER}.input_layernorm.weight", f"{_BLOCK}.{role}.pre.weight") for role in ("attention", "mixer")),
    rename(f"{_LAYER}.pre_ff_layernorm.weight", f"{_BLOCK}.feed_forward.pre.weight"),
    *_decoders.projections(),
    *_state_space.mamba2_rules(f"{_LAYER}.mamba", f"{_BLOCK}.mixer.branch"),
    *renames(f"{_LAYER}.feed_forward", f"{_BLOCK}.feed_forward.branch", _decoders.GATED),
    rename("model.final_layernorm.weight", "stack.final.weight"),
    rename("lm_head.weight", "head.vocabulary.weight"),
)
