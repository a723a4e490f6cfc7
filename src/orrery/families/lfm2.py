"""LFM2 (Liquid AI 2025): gated short convolutions in most layers, grouped attention in a few.

Peculiar to it: ``W_out (C * conv(B * x))`` with B, C and x linear in the input and a convolution of three places, which
is all that most layers remember; attention with RMSNorm on each head of q and of k and rotary positions; behind either
a gated network whose width is adjusted (``block_auto_adjust_ff_dim``); the final norm is called that of the embeddings.
"""

from collections.abc import Mapping
from typing import Any

from orrery.checkpoints.rules import Rule, fused, rename, renames
from orrery.errors import ModelFileError
from orrery.families import _decoders, _parts, _rotary
from orrery.families._config import Config
from orrery.families._keys import items, positive, size
from orrery.models.decoder import Decoder
from orrery.nn.feedforward.gated import GatedMLP
from orrery.nn.linear.gated_convolution import GatedConvolution
from orrery.nn.masks import Causal, RecurrentPast
from orrery.nn.norms import HeadNorm, RMSNorm
from orrery.nn.spec import ModuleSpec

ARCHITECTURE = "Lfm2ForCausalLM"
DEFAULTS: Mapping[str, Any] = {
    "vocab_size": size(65536),
    "hidden_size": size(2560),
    "intermediate_size": size(12288),
    "num_hidden_layers": size(32),
    "num_attention_heads": size(32),
    "num_key_value_heads": size(8),
    "head_dim": size(None),
    "norm_eps": 1e-5,
    "conv_bias": False,
    "conv_L_cache": size(3),
    "block_multiple_of": size(256),
    "block_ffn_dim_multiplier": positive(1.0, null=True),
    "block_auto_adjust_ff_dim": True,
    "full_attn_idxs": items(),
    "layer_types": items(),
    "max_position_embeddings": 128_000,
    "attention_dropout": 0.0,
    "tie_word_embeddings": True,
    **_rotary.DEFAULTS,
    "rope_theta": positive(1_000_000.0),
}
TINY = {**_decoders.NARROW, "block_multiple_of": 4, "layer_types": ["conv", "full_attention"]}
_IGNORED = (
    "block_dim", "block_mlp_init_scale", "block_norm_eps", "block_out_init_scale", "block_use_swiglu",
    "block_use_xavier_init", "conv_dim", "conv_dim_out", "conv_use_xavier_init", "num_heads", "use_pos_enc",
)  # fmt: skip
_ALIASES = {"tie_embedding": "tie_word_embeddings", "block_ff_dim": "intermediate_size"}
_KINDS = ("conv", "full_attention")


def spec(config: Mapping[str, Any]) -> Decoder.Spec:
    """Return the architecture that a ``config.json`` describes."""
    c = Config("lfm2", _settled(config), DEFAULTS, ignored=_IGNORED)
    norm = RMSNorm.Spec(eps=c["norm_eps"])
    feed_forward = GatedMLP.Spec(hidden=_hidden(c), activation="silu")
    blocks = [_parts.sequential({**_mixer(c, kind), "feed_forward": feed_forward}, pre=norm) for kind in _kinds(c)]
    masks = {"causal": Causal(), "past": RecurrentPast()}
    return _decoders.decoder(c, _decoders.stack(c, blocks, norm, masks=masks))


def _settled(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a configuration whose old names, which count before the new ones, are the new ones."""
    renamed = {_ALIASES[key]: value for key, value in config.items() if key in _ALIASES}
    return {**{key: value for key, value in config.items() if key not in _ALIASES}, **renamed}


def _mixer(c: Config, kind: str) -> dict[str, ModuleSpec]:
    if kind == "conv":
        return {"mixer": GatedConvolution.Spec(length=c["conv_L_cache"], bias=c["conv_bias"])}
    norm = RMSNorm.Spec(eps=c["norm_eps"])
    return {"attention": _decoders.attention(c, qk_norm=HeadNorm.Spec(norm=norm, head_width=_decoders.head_width(c)))}


def _kinds(c: Config) -> list[str]:
    """Return the kind of every layer; where nothing is listed all attend.

    Raises:
        ModelFileError: another kind of layer, or another number of layers.
    """
    layers, listed = c["num_hidden_layers"], c["full_attn_idxs"]
    attends = range(layers) if listed is None else set(listed)
    kinds = c["layer_types"] or [_KINDS[i in attends] for i in range(layers)]
    if unknown := sorted({str(kind) for kind in kinds} - set(_KINDS)):
        raise ModelFileError(f"lfm2: layer_types has the unknown {', '.join(unknown)}", f"known: {', '.join(_KINDS)}")
    if len(kinds) != layers:
        raise ModelFileError(
            f"lfm2: layer_types lists {len(kinds)} layers, num_hidden_layers is {layers}", "list every layer once"
        )
    return list(kinds)


def _hidden(c: Config) -> int:
    """Return the channels of the gated network: two thirds, times a factor, up to the next multiple."""
    hidden = int(c["intermediate_size"])
    if not c["block_auto_adjust_ff_dim"]:
        return hidden
    hidden = int(2 * hidden / 3)
    if c["block_ffn_dim_multiplier"] is None:
        return hidden
    multiple = int(c["block_multiple_of"])
    return -(-int(c["block_ffn_dim_multiplier"] * hidden) // multiple) * multiple


_LAYER, _BLOCK = _decoders.LAYER, _decoders.BLOCK
_CONV, _MIXER = f"{_LAYER}.conv", f"{_BLOCK}.mixer.branch"
_ATTENTION = (("q_proj", "q"), ("k_proj", "k"), ("v_proj", "v"), ("out_proj", "out"))
WEIGHTS: tuple[Rule, ...] = (
    rename("model.embed_tokens.weight", "embed.token.weight"),
    *(rename(f"{_LAYER}.operator_norm.weight", f"{_BLOCK}.{role}.pre.weight") for role in ("attention", "mixer")),
    rename(f"{_LAYER}.ffn_norm.weight", f"{_BLOCK}.feed_forward.pre.weight"),
    *renames(f"{_LAYER}.self_attn", f"{_BLOCK}.attention.branch", _ATTENTION),
    *(
        rename(f"{_LAYER}.self_attn.{x}_layernorm.weight", f"{_BLOCK}.attention.branch.{x}_norm.norm.weight")
        for x in "qk"
    ),
    *(
        fused(f"{_CONV}.in_proj.{end}", tuple(f"{_MIXER}.{part}.{end}" for part in ("write", "read", "x")))
        for end in ("weight", "bias")
    ),
    *renames(_CONV, _MIXER, (("conv", "convolution"), ("out_proj", "out"))),
    *renames(f"{_LAYER}.feed_forward", f"{_BLOCK}.feed_forward.branch", (("w1", "gate"), ("w3", "up"), ("w2", "down"))),
    rename("model.embedding_norm.weight", "stack.final.weight"),
    rename("lm_head.weight", "head.vocabulary.weight"),
)
