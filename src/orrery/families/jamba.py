"""Jamba (Lieber et al. 2024): a list of blocks of Mamba with an attention every few, and mixtures of experts.

Peculiar to it: one block in eight attends, and no position is told to it, for the states of the others know the order;
every second feed-forward network is a mixture whose chosen experts are weighed by their probabilities as they are;
a norm stands behind the step sizes, B and C of each Mamba.
"""

from collections.abc import Mapping
from typing import Any

from orrery.checkpoints.rules import Rule, fused, rename, renames
from orrery.errors import ModelFileError
from orrery.families import _decoders, _mixture, _parts, _state_space
from orrery.families._config import Config
from orrery.families._keys import Key, count, size
from orrery.models.decoder import Decoder
from orrery.nn.block import Block
from orrery.nn.embeddings import TokenEmbedding
from orrery.nn.heads import LanguageModelHead
from orrery.nn.linear.mamba import Mamba
from orrery.nn.masks import Causal, RecurrentPast
from orrery.nn.norms import RMSNorm
from orrery.nn.spec import ModuleSpec
from orrery.nn.stack import Stack

ARCHITECTURE = "JambaForCausalLM"
DEFAULTS: Mapping[str, Any] = {
    "vocab_size": size(65536),
    "hidden_size": size(4096),
    "intermediate_size": size(14336),
    "num_hidden_layers": size(32),
    "num_attention_heads": size(32),
    "num_key_value_heads": size(8, null=True),
    "head_dim": size(None),
    "hidden_act": "silu",
    "rms_norm_eps": 1e-6,
    "max_position_embeddings": 262144,
    "attention_dropout": 0.0,
    "num_experts": size(16),
    "num_experts_per_tok": size(2),
    "expert_layer_period": size(2),
    "expert_layer_offset": count(1),
    "attn_layer_period": size(8),
    "attn_layer_offset": count(4),
    "mamba_d_state": size(16),
    "mamba_d_conv": size(4),
    "mamba_expand": size(2),
    "mamba_dt_rank": Key("auto", ("number", "text"), zero=False),
    "mamba_conv_bias": True,
    "mamba_proj_bias": False,
    "tie_word_embeddings": False,
}
TINY = {
    **_decoders.NARROW,
    "intermediate_size": 12,
    "num_hidden_layers": 3,
    "num_experts": 3,
    "attn_layer_period": 2,
    "attn_layer_offset": 1,
    "expert_layer_offset": 0,
    "mamba_d_state": 4,
    "mamba_dt_rank": 2,
}
_IGNORED = (
    "output_router_logits", "router_aux_loss_coef", "use_mamba_kernels", "use_mambapy", "use_associative_scan",
    "num_logits_to_keep", "calc_logits_for_entire_prompt",
)  # fmt: skip
_FIXED = {"sliding_window": None}
_ALIASES = {"num_local_experts": "num_experts"}


def spec(config: Mapping[str, Any]) -> Decoder.Spec:
    """Return the architecture that a ``config.json`` describes.

    Raises:
        ModelFileError: an offset is not below its period.
    """
    c = Config("jamba", config, DEFAULTS, fixed=_FIXED, ignored=_IGNORED, aliases=_ALIASES)
    attends, mixes = _every(c, "attn_layer"), _every(c, "expert_layer")
    vocabulary = c["vocab_size"]
    return Decoder.Spec(
        width=c["hidden_size"],
        context=c["max_position_embeddings"],
        embed=TokenEmbedding.Spec(vocabulary=vocabulary),
        stack=Stack.Spec(
            blocks=tuple(_block(c, *kinds) for kinds in zip(attends, mixes, strict=True)),
            positions={},
            masks={"causal": Causal(), "past": RecurrentPast()},
            final=RMSNorm.Spec(eps=c["rms_norm_eps"]),
        ),
        head=LanguageModelHead.Spec(vocabulary=vocabulary, tied=c["tie_word_embeddings"]),
    )


def _every(c: Config, kind: str) -> list[bool]:
    """Return at which layers something of this kind stands."""
    period, offset = c[f"{kind}_period"], c[f"{kind}_offset"]
    if offset >= period:
        raise ModelFileError(
            f"jamba: {kind}_offset = {offset} is not below {kind}_period = {period}",
            f"choose it from 0 to {period - 1}",
        )
    return [layer % period == offset for layer in range(c["num_hidden_layers"])]


def _block(c: Config, attends: bool, mixes: bool) -> Block.Spec:
    """Return a block of an attention or a Mamba, and of a mixture or one network."""
    norm = RMSNorm.Spec(eps=c["rms_norm_eps"])
    mixer: dict[str, ModuleSpec] = (
        {"attention": _decoders.attention(c, position="none")} if attends else {"mixer": _mamba(c)}
    )
    mixture = _mixture.experts(c, c["num_experts"], "intermediate_size", normalised=False)
    feed_forward = mixture if mixes and c["num_experts"] > 1 else _decoders.feed_forward(c)
    return _parts.sequential({**mixer, "feed_forward": feed_forward}, pre=norm)


def _mamba(c: Config) -> Mamba.Spec:
    """Return Mamba's mixer with norms on what selects."""
    return Mamba.Spec(
        hidden=c["mamba_expand"] * c["hidden_size"],
        rank=_state_space.rank_of_steps(c, "mamba_dt_rank"),
        state=c["mamba_d_state"],
        length=c["mamba_d_conv"],
        activation=c.activation("hidden_act"),
        bias=c["mamba_proj_bias"],
        convolution_bias=c["mamba_conv_bias"],
        norm=RMSNorm.Spec(eps=c["rms_norm_eps"]),
    )


_LAYER, _BLOCK = _decoders.LAYER, _decoders.BLOCK
_MAMBA, _MIXER = f"{_LAYER}.mamba", f"{_BLOCK}.mixer.branch"
_FEED_FORWARD, _NETWORK = f"{_LAYER}.feed_forward", f"{_BLOCK}.feed_forward.branch"
_NORMS = (("dt_layernorm", "step_norm"), ("b_layernorm", "write_norm"), ("c_layernorm", "read_norm"))
WEIGHTS: tuple[Rule, ...] = (
    rename("model.embed_tokens.weight", "embed.token.weight"),
    *(Rule(f"{_LAYER}.input_layernorm.weight", (f"{_BLOCK}.{role}.pre.weight",)) for role in ("attention", "mixer")),
    *renames(_LAYER, _BLOCK, (("pre_ff_layernorm", "feed_forward.pre"),)),
    *_decoders.projections(),
    *renames(_MAMBA, _MIXER, (("conv1d", "convolution"), ("dt_proj", "step_up"), ("out_proj", "out"), *_NORMS)),
    *(fused(f"{_MAMBA}.in_proj.{end}", (f"{_MIXER}.x.{end}", f"{_MIXER}.gate.{end}")) for end in ("weight", "bias")),
    fused(f"{_MAMBA}.x_proj.weight", tuple(f"{_MIXER}.{part}.weight" for part in ("step_down", "write", "read"))),
    rename(f"{_MAMBA}.A_log", f"{_MIXER}.a_log"),
    rename(f"{_MAMBA}.D", f"{_MIXER}.skip"),
    *renames(_FEED_FORWARD, _NETWORK, _decoders.GATED),
    *renames(f"{_FEED_FORWARD}.experts.{{x}}", f"{_NETWORK}.experts.{{x}}", _decoders.GATED),
    rename(f"{_FEED_FORWARD}.router.weight", f"{_NETWORK}.router.linear.weight"),
    rename("model.final_layernorm.weight", "stack.final.weight"),
    rename("lm_head.weight", "head.vocabulary.weight"),
)
