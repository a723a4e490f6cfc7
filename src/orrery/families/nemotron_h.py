"""Nemotron-H and Nemotron 3 Nano (NVIDIA 2025): blocks of one branch each, Mamba-2, attention, network or mixture.

Peculiar to it: every layer has a norm and one branch; ``layers_block_type``, in older files a pattern of letters, says
which; attention has no positions; networks and experts have no gate and the squared relu; experts are chosen and
weighed as in DeepSeek-V3. Modules that predict further tokens are no part of the logits.
"""

from collections.abc import Mapping
from typing import Any

from orrery.checkpoints.rules import Rule, rename, renames
from orrery.errors import ModelFileError
from orrery.families import _decoders, _deepseek, _parts, _state_space
from orrery.families._config import Config
from orrery.families._keys import items, positive, size, text
from orrery.models.decoder import Decoder
from orrery.nn.block import Block
from orrery.nn.feedforward.mlp import MLP
from orrery.nn.feedforward.moe import MoE
from orrery.nn.linear.gating import GateThenNorm
from orrery.nn.linear.mamba2 import BoundedSteps, Mamba2, Projections
from orrery.nn.masks import Causal, RecurrentPast
from orrery.nn.norms import RMSNorm
from orrery.nn.spec import ModuleSpec

ARCHITECTURE = "NemotronHForCausalLM"
DEFAULTS: Mapping[str, Any] = {
    "vocab_size": size(131072),
    "hidden_size": size(4096),
    "intermediate_size": size(21504),
    "layers_block_type": items(),
    "hybrid_override_pattern": text("", null=True),
    "num_attention_heads": size(32),
    "num_key_value_heads": size(8, null=True),
    "head_dim": size(128),
    "mlp_hidden_act": "relu2",
    "mlp_bias": False,
    "ssm_state_size": size(128),
    "mamba_num_heads": size(128),
    "mamba_head_dim": size(64),
    "n_groups": size(8),
    "conv_kernel": size(4),
    "use_bias": False,
    "use_conv_bias": True,
    "time_step_min": positive(0.001),
    "time_step_max": positive(0.1),
    "time_step_floor": positive(1e-4),
    "n_routed_experts": size(8),
    "num_experts_per_tok": size(2),
    "moe_intermediate_size": size(7688),
    "moe_shared_expert_intermediate_size": size(7688),
    "n_group": size(1),
    "topk_group": size(1),
    "norm_topk_prob": True,
    "routed_scaling_factor": 1.0,
    "layer_norm_epsilon": 1e-5,
    "max_position_embeddings": 4096,
    "attention_dropout": 0.0,
    "tie_word_embeddings": False,
}
TINY = {
    "vocab_size": 61,
    "hidden_size": 16,
    "intermediate_size": 24,
    "layers_block_type": ["linear_attention", "moe", "full_attention", "mlp"],
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 6,
    "ssm_state_size": 4,
    "mamba_num_heads": 4,
    "mamba_head_dim": 6,
    "n_groups": 2,
    "n_routed_experts": 3,
    "moe_intermediate_size": 8,
    "moe_shared_expert_intermediate_size": 12,
    "max_position_embeddings": 48,
}
_FIXED = {"mamba_hidden_act": "silu", "moe_latent_size": None, "attention_bias": False, "sliding_window": None}
_IGNORED = (
    "num_hidden_layers", "num_logits_to_keep", "use_mamba_kernels", "expand", "chunk_size", "mamba_proj_bias",
    "mamba_ssm_cache_dtype", "output_router_logits", "n_shared_experts", "moe_shared_expert_overlap",
    "num_nextn_predict_layers", "mtp_layers_block_type", "mtp_hybrid_override_pattern", "residual_in_fp32",
    "hidden_dropout",
    "time_step_limit", "rescale_prenorm_residual",
)  # fmt: skip
_ALIASES = {
    "layer_types": "layers_block_type", "num_local_experts": "n_routed_experts", "mamba_n_groups": "n_groups",
    "mamba_d_conv": "conv_kernel", "mamba_expand": "expand", "mamba_dt_min": "time_step_min",
    "mamba_dt_max": "time_step_max", "mamba_dt_limit": "time_step_limit", "mamba_dt_init_floor": "time_step_floor",
    "mamba_conv_bias": "use_conv_bias", "mamba_chunk_size": "chunk_size",
}  # fmt: skip
_LETTERS = {"M": "linear_attention", "E": "moe", "*": "full_attention", "-": "mlp"}
_NAMES = {
    "linear_attention": "mixer",
    "mamba": "mixer",
    "full_attention": "attention",
    "attention": "attention",
    "moe": "feed_forward",
    "mlp": "feed_forward",
}


def spec(config: Mapping[str, Any]) -> Decoder.Spec:
    """Return the architecture that a ``config.json`` describes."""
    c = Config("nemotron_h", config, DEFAULTS, fixed=_FIXED, ignored=_IGNORED, aliases=_ALIASES)
    blocks = [_block(c, kind) for kind in _kinds(c)]
    norm, masks = RMSNorm.Spec(eps=c["layer_norm_epsilon"]), {"causal": Causal(), "past": RecurrentPast()}
    return _decoders.decoder(c, _decoders.stack(c, blocks, norm, positions={}, masks=masks))


def _kinds(c: Config) -> list[str]:
    """Return the kind of every layer; letters count where nothing is listed.

    Raises:
        ModelFileError: another kind of layer.
    """
    listed, letters = c["layers_block_type"], c["hybrid_override_pattern"]
    if listed is None and letters:
        listed = [_LETTERS.get(letter, letter) for letter in letters]
    kinds = list(_LETTERS.values()) if listed is None else listed
    if unknown := sorted({str(kind) for kind in kinds} - set(_NAMES)) or not kinds:
        raise ModelFileError(
            f"nemotron_h: layers_block_type (or hybrid_override_pattern) has the unknown {unknown}",
            f"known: {', '.join(_NAMES)}",
        )
    return list(kinds)


def _block(c: Config, kind: str) -> Block.Spec:
    """Return a block of one branch behind a norm."""
    branches: Mapping[str, Any] = {"mlp": _mlp, "moe": _mixture, "mamba": _mamba, "linear_attention": _mamba}
    branch: ModuleSpec = branches.get(kind, _attention)(c)
    return _parts.sequential({_NAMES[kind]: branch}, pre=RMSNorm.Spec(eps=c["layer_norm_epsilon"]))


def _attention(c: Config) -> ModuleSpec:
    return _decoders.attention(c, position="none")


def _mlp(c: Config, hidden: str = "intermediate_size") -> MLP.Spec:
    return MLP.Spec(hidden=c[hidden], activation=c.activation("mlp_hidden_act"), bias=c["mlp_bias"])


def _mixture(c: Config) -> ModuleSpec:
    expert = MLP.Spec(hidden=c["moe_intermediate_size"], activation=c.activation("mlp_hidden_act"), bias=False)
    shared = _mlp(c, "moe_shared_expert_intermediate_size")
    return MoE.Spec(expert=expert, router=_deepseek.sigmoid_router(c), shared=(shared,))


def _mamba(c: Config) -> ModuleSpec:
    c.divide("mamba_num_heads", "n_groups")
    return Mamba2.Spec(
        heads=c["mamba_num_heads"],
        head_width=c["mamba_head_dim"],
        state=c["ssm_state_size"],
        groups=c["n_groups"],
        length=c["conv_kernel"],
        projections=Projections(bias=c["use_bias"], out_bias=c["use_bias"]),
        convolution_bias=c["use_conv_bias"],
        gating=GateThenNorm(eps=c["layer_norm_epsilon"]),
        # The reference lets no step be below the least that a new one has, whatever time_step_limit says.
        steps=BoundedSteps(drawn=_state_space.time_steps(c), least=c["time_step_min"]),
    )


_THEIRS, _OURS = "backbone.layers.{i}.mixer", _decoders.BLOCK
_NETWORK = f"{_OURS}.feed_forward.branch"
_MLP = (("up_proj", "up"), ("down_proj", "down"))
_PROJECTIONS = (("q_proj", "q"), ("k_proj", "k"), ("v_proj", "v"), ("o_proj", "out"))
WEIGHTS: tuple[Rule, ...] = (
    rename("backbone.embeddings.weight", "embed.token.weight"),
    *(
        rename("backbone.layers.{i}.norm.weight", f"{_OURS}.{role}.pre.weight")
        for role in ("attention", "mixer", "feed_forward")
    ),
    *renames(_THEIRS, f"{_OURS}.attention.branch", _PROJECTIONS),
    *_state_space.mamba2_rules(_THEIRS, f"{_OURS}.mixer.branch"),
    *renames(_THEIRS, _NETWORK, _MLP),
    *renames(f"{_THEIRS}.experts.{{x}}", f"{_NETWORK}.experts.{{x}}", _MLP),
    *renames(f"{_THEIRS}.shared_experts", f"{_NETWORK}.shared.0", _MLP),
    rename(f"{_THEIRS}.gate.weight", f"{_NETWORK}.router.linear.weight"),
    rename(f"{_THEIRS}.gate.e_score_correction_bias", f"{_NETWORK}.router.correction"),
    rename("backbone.norm_f.weight", "stack.final.weight"),
    rename("lm_head.weight", "head.vocabulary.weight"),
)
