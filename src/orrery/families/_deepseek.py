"""What DeepSeek-V2 and V3 share: latent attention, a few dense blocks before those of experts, and their files."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from orrery.checkpoints.layouts import ByGroup
from orrery.checkpoints.rules import Rule, fused, rename, renames
from orrery.families import _rotary
from orrery.families._config import Config
from orrery.models.decoder import Decoder
from orrery.nn.attention.latent import HeadWidths, LatentAttention
from orrery.nn.attention.multihead import Scoring
from orrery.nn.block import Block
from orrery.nn.embeddings import TokenEmbedding
from orrery.nn.feedforward.gated import GatedMLP
from orrery.nn.feedforward.moe import MoE
from orrery.nn.feedforward.routers import RouterSpec
from orrery.nn.heads import LanguageModelHead
from orrery.nn.masks import Causal
from orrery.nn.norms import RMSNorm
from orrery.nn.residual import Chain, Identity, Residual
from orrery.nn.slots import Projection
from orrery.nn.spec import ModuleSpec
from orrery.nn.stack import Stack, repeat

_LATENT_NORM = RMSNorm.Spec(eps=1e-6)
"""The norms of the latents have an epsilon of their own, whatever ``rms_norm_eps`` says."""


def decoder(c: Config, router: RouterSpec, *, interleaved: bool, bias: bool) -> Decoder.Spec:
    """Return the architecture; ``bias`` is that of the dense feed-forward networks, ``interleaved`` the rotation's."""
    norm = RMSNorm.Spec(eps=c["rms_norm_eps"])

    def block(feed_forward: ModuleSpec) -> Block.Spec:
        return Block.Spec(
            residuals={
                "attention": Residual.Spec(branch=_attention(c), pre=norm),
                "feed_forward": Residual.Spec(branch=feed_forward, pre=norm),
            }
        )

    activation, small = c.activation("hidden_act"), c["moe_intermediate_size"]
    shared = GatedMLP.Spec(hidden=small * (c["n_shared_experts"] or 0), activation=activation, bias=bias)
    experts = MoE.Spec(
        expert=GatedMLP.Spec(hidden=small, activation=activation),
        router=router,
        shared=(shared,) if shared.hidden else (),
    )
    dense, layers = min(c["first_k_dense_replace"], c["num_hidden_layers"]), c["num_hidden_layers"]
    first = block(GatedMLP.Spec(hidden=c["intermediate_size"], activation=activation, bias=bias))
    rotary = _rotary.rotary(c, c["qk_rope_head_dim"], c["max_position_embeddings"])
    return Decoder.Spec(
        width=c["hidden_size"],
        context=c["max_position_embeddings"],
        embed=TokenEmbedding.Spec(vocabulary=c["vocab_size"]),
        stack=Stack.Spec(
            blocks=repeat(first, dense) + repeat(block(experts), layers - dense),
            final=norm,
            positions={"rotary": replace(rotary, interleaved=interleaved)},
            masks={"causal": Causal()},
        ),
        head=LanguageModelHead.Spec(vocabulary=c["vocab_size"], tied=c["tie_word_embeddings"]),
    )


def _attention(c: Config) -> LatentAttention.Spec:
    widths = HeadWidths(plain=c["qk_nope_head_dim"], rotated=c["qk_rope_head_dim"], value=c["v_head_dim"])
    down = Projection.Spec(width=c["q_lora_rank"] or 0, bias=c["attention_bias"])
    return LatentAttention.Spec(
        heads=c["num_attention_heads"],
        widths=widths,
        latent=c["kv_lora_rank"],
        norm=_LATENT_NORM,
        query=Chain.Spec(parts=(down, _LATENT_NORM)) if down.width else Identity.Spec(),
        bias=c["attention_bias"],
        scoring=Scoring(scale=_scale(c, widths), dropout=c["attention_dropout"]),
    )


def _scale(c: Config, widths: HeadWidths) -> float:
    """Return the factor on the scores: YaRN's temperature for all channels acts on q and k, so it is squared here."""
    scaling = c["rope_scaling"] or c["rope_parameters"] or {}
    scaled = scaling.get("rope_type", scaling.get("type", "default")) != "default"
    weight = scaling.get("mscale_all_dim") if scaled else None
    temperature = _rotary.yarn_temperature(scaling["factor"], weight) if weight else 1.0
    return float((widths.plain + widths.rotated) ** -0.5 * temperature**2)


def weights(config: Mapping[str, Any]) -> tuple[Rule, ...]:
    """Return the rules for a configuration with every default filled in."""
    ours, theirs = "stack.blocks.{i}", "model.layers.{i}"
    attention, feed_forward = f"{ours}.attention.branch", f"{ours}.feed_forward.branch"
    queries = (("q_b_proj", "q"), ("q_a_proj", "query.0.linear"), ("q_a_layernorm", "query.1"))
    down = [tuple(f"{attention}.{part}.{end}" for part in ("latent", "rotated")) for end in ("weight", "bias")]
    gated = [(f"{part}_proj", part) for part in ("gate", "up", "down")]
    return (
        rename("model.embed_tokens.weight", "embed.token.weight"),
        rename(f"{theirs}.input_layernorm.weight", f"{ours}.attention.pre.weight"),
        *renames(f"{theirs}.self_attn", attention, queries if config["q_lora_rank"] else [("q_proj", "q")]),
        *(fused(f"{theirs}.self_attn.kv_a_proj_with_mqa.{parts[0].rpartition('.')[2]}", parts) for parts in down),
        Rule(
            f"{theirs}.self_attn.kv_b_proj.weight",
            (f"{attention}.k.weight", f"{attention}.v.weight"),
            ByGroup(config["num_attention_heads"]),
        ),
        *renames(f"{theirs}.self_attn", attention, [("kv_a_layernorm", "norm"), ("o_proj", "out")]),
        rename(f"{theirs}.post_attention_layernorm.weight", f"{ours}.feed_forward.pre.weight"),
        *renames(f"{theirs}.mlp", feed_forward, gated),
        *renames(f"{theirs}.mlp.experts.{{x}}", f"{feed_forward}.experts.{{x}}", gated),
        *renames(f"{theirs}.mlp.shared_experts", f"{feed_forward}.shared.0", gated),
        rename(f"{theirs}.mlp.gate.weight", f"{feed_forward}.router.linear.weight"),
        rename(f"{theirs}.mlp.gate.e_score_correction_bias", f"{feed_forward}.router.correction"),
        rename("model.norm.weight", "stack.final.weight"),
        rename("lm_head.weight", "head.vocabulary.weight"),
    )
