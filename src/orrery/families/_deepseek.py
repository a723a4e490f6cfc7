"""What DeepSeek-V2 and V3 share: latent attention, a few dense blocks before those of experts, and their files."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from orrery.checkpoints.layouts import GroupInterleaved
from orrery.checkpoints.rules import Rule, fused, rename, renames
from orrery.errors import ModelFileError
from orrery.families import _decoders, _mixture, _rotary
from orrery.families._config import Config
from orrery.families._keys import count, size
from orrery.models.decoder import Decoder
from orrery.nn.attention.latent import HeadWidths, LatentAttention
from orrery.nn.attention.multihead import ScoreSettings
from orrery.nn.elementwise import Projection
from orrery.nn.feedforward.moe import MoE
from orrery.nn.feedforward.routers import GroupLimited, Normalised, RawScores, RouterSpec, SigmoidRouter
from orrery.nn.norms import RMSNorm
from orrery.nn.positions.rotary import Rotary
from orrery.nn.residual import Chain, Identity
from orrery.nn.spec import ModuleSpec

DEFAULTS: Mapping[str, Any] = {
    "q_lora_rank": size(1536, null=True),
    "kv_lora_rank": size(512),
    "qk_nope_head_dim": 128,
    "qk_rope_head_dim": size(64),
    "v_head_dim": size(128),
    "hidden_act": "silu",
    "rms_norm_eps": 1e-6,
    "attention_bias": False,
    "attention_dropout": 0.0,
    "tie_word_embeddings": False,
    "head_dim": size(None),
    "qk_head_dim": count(None),
    **_rotary.DEFAULTS,
}
"""The keys that mean the same in both when they are absent; a family adds the others."""

TINY_LATENTS = {"q_lora_rank": 8, "kv_lora_rank": 6, "qk_nope_head_dim": 6, "qk_rope_head_dim": 4, "v_head_dim": 8}
TINY: Mapping[str, Any] = {**_decoders.NARROW, "num_attention_heads": 2, **TINY_LATENTS}
"""The small model of each, without what its experts are."""

_LATENT_NORM = RMSNorm.Spec(eps=1e-6)
"""The norms of the latents have an epsilon of their own, whatever ``rms_norm_eps`` says."""


SHARED: tuple[Rule, ...] = (
    *_mixture.EXPERTS,
    *renames(f"{_mixture.THEIRS}.shared_experts", f"{_mixture.OURS}.shared.0", _decoders.GATED),
)
"""The rules of the mixtures, without the correction."""

EXPERTS: tuple[Rule, ...] = (
    *SHARED,
    rename(f"{_mixture.THEIRS}.gate.e_score_correction_bias", f"{_mixture.OURS}.router.correction"),
)
"""The rules of the mixtures."""


def check(c: Config) -> Config:
    """Return a configuration whose widths of a head agree: two of its keys only repeat what others say.

    Raises:
        ModelFileError: they say something else.
    """
    rotated = c["qk_rope_head_dim"]
    for key, meant in (("head_dim", rotated), ("qk_head_dim", c["qk_nope_head_dim"] + rotated)):
        if c[key] not in (None, meant):
            raise ModelFileError(
                f"{c.family}: {key} = {c[key]!r}, but the widths of its parts make {meant}",
                "qk_rope_head_dim and qk_nope_head_dim say what a head is; remove the key",
            )
    return c


def groups(c: Config, **fields: Any) -> GroupLimited:
    """Return the choice among the best groups of experts; the keywords are fields of it.

    Raises:
        ModelFileError: the experts make no equal groups, or too few of them stay.
    """
    reachable = c.divide("n_routed_experts", "n_group") * c["topk_group"]
    chosen = c["num_experts_per_tok"]
    if chosen > reachable:
        raise ModelFileError(
            f"{c.family}: num_experts_per_tok = {chosen}, but topk_group = {c['topk_group']} of n_group = "
            f"{c['n_group']} leaves {reachable}",
            "keep more groups, or choose fewer experts",
        )
    return GroupLimited(chosen=chosen, groups=c["n_group"], kept=c["topk_group"], **fields)


def sigmoid_router(c: Config) -> SigmoidRouter.Spec:
    """Return V3's router: a group is judged by its two best, and the chosen may be weighed to sum to one."""
    scale = float(c["routed_scaling_factor"])
    return SigmoidRouter.Spec(
        experts=c["n_routed_experts"],
        choice=groups(c, best_per_group=2),
        weighing=Normalised(scale=scale, eps=1e-20) if c["norm_topk_prob"] else RawScores(scale=scale),
    )


def experts(c: Config, router: RouterSpec, *, bias: bool = False) -> MoE.Spec:
    """Return the mixture; the shared experts are one network, whose matrices may have a bias."""
    small = c["moe_intermediate_size"]
    shared = _decoders.feed_forward(c, hidden=small * (c["n_shared_experts"] or 0), bias=bias)
    return MoE.Spec(
        expert=_decoders.feed_forward(c, hidden=small), router=router, shared=(shared,) if shared.hidden else ()
    )


def feed_forwards(c: Config, router: RouterSpec, *, bias: bool = False) -> list[ModuleSpec]:
    """Return each layer's feed-forward network: the first ones are dense."""
    layers, dense = c["num_hidden_layers"], min(c["first_k_dense_replace"], c["num_hidden_layers"])
    mixture = experts(c, router, bias=bias)
    return [_decoders.feed_forward(c, bias=bias) if i < dense else mixture for i in range(layers)]


def decoder(c: Config, router: RouterSpec, *, interleaved: bool, bias: bool) -> Decoder.Spec:
    """Return the architecture; ``bias`` is that of the dense feed-forward networks, ``interleaved`` the rotation's."""
    norm = RMSNorm.Spec(eps=c["rms_norm_eps"])
    blocks = [_decoders.pre_norm(norm, attention(c), network) for network in feed_forwards(c, router, bias=bias)]
    turned = positions(c, interleaved=interleaved)
    return _decoders.decoder(c, _decoders.stack(c, blocks, norm, positions=turned))


def positions(c: Config, *, interleaved: bool) -> Mapping[str, Rotary.Spec]:
    """Return the rotary positions of the channels that turn; ``interleaved`` pairs neighbours."""
    rotary = _rotary.rotary(c, c["qk_rope_head_dim"], c["max_position_embeddings"])
    return {"rotary": replace(rotary, interleaved=interleaved)}


def attention(c: Config) -> LatentAttention.Spec:
    """Return the latent attention; without a rank the queries have no latent."""
    widths = HeadWidths(plain=c["qk_nope_head_dim"], rotated=c["qk_rope_head_dim"], value=c["v_head_dim"])
    down = Projection.Spec(width=c["q_lora_rank"] or 0, bias=c["attention_bias"])
    return LatentAttention.Spec(
        heads=c["num_attention_heads"],
        widths=widths,
        latent=c["kv_lora_rank"],
        norm=_LATENT_NORM,
        query=Chain.Spec(parts=(down, _LATENT_NORM)) if down.width else Identity.Spec(),
        bias=c["attention_bias"],
        scoring=ScoreSettings(scale=_scale(c, widths), dropout=c["attention_dropout"]),
    )


def _scale(c: Config, widths: HeadWidths) -> float:
    """Return the factor on the scores: YaRN's temperature for all channels acts on q and k, so it is squared here."""
    scaling = c["rope_scaling"] or c["rope_parameters"] or {}
    scaled = scaling.get("rope_type", scaling.get("type", "default")) != "default"
    weight = scaling.get("mscale_all_dim") if scaled else None
    temperature = _rotary.yarn_temperature(float(scaling["factor"]), float(weight)) if weight else 1.0
    return float((widths.plain + widths.rotated) ** -0.5 * temperature**2)


def weights(config: Mapping[str, Any]) -> tuple[Rule, ...]:
    """Return the rules for a configuration with every default filled in."""
    theirs, ours = f"{_decoders.LAYER}.self_attn", f"{_decoders.BLOCK}.attention.branch"
    queries = (("q_b_proj", "q"), ("q_a_proj", "query.0.linear"), ("q_a_layernorm", "query.1"))
    down = [tuple(f"{ours}.{part}.{end}" for part in ("latent", "rotated")) for end in ("weight", "bias")]
    return (
        *_decoders.frame(*_decoders.PRE_NORMS),
        *renames(theirs, ours, queries if config["q_lora_rank"] else [("q_proj", "q")]),
        *(fused(f"{theirs}.kv_a_proj_with_mqa.{parts[0].rpartition('.')[2]}", parts) for parts in down),
        Rule(
            f"{theirs}.kv_b_proj.weight",
            (f"{ours}.k.weight", f"{ours}.v.weight"),
            GroupInterleaved(config["num_attention_heads"]),
        ),
        *renames(theirs, ours, [("kv_a_layernorm", "norm"), ("o_proj", "out")]),
        *_decoders.gated_weights(),
        *EXPERTS,
    )
