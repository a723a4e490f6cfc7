"""Zamba2 (Glorioso et al. 2024): Mamba-2, in front of some of which a Transformer block stands that depths share.

Peculiar to it: one shared block, or a few in turns, stands at several depths, each time with adapters of low rank and a
projection of that depth; it reads the stream beside the embeddings, has no residual connections inside, and what it
says is added to what the Mamba-2 of its depth reads, not to the stream. Step sizes have a least.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from orrery.checkpoints.rules import Rule, fused, rename, renames
from orrery.errors import ModelFileError
from orrery.families import _decoders, _parts, _rotary, _state_space
from orrery.families._config import Config
from orrery.families._keys import items, positive, size
from orrery.models.decoder import Decoder
from orrery.nn.attention.multihead import ScoreSettings
from orrery.nn.attention.narrowed import Narrowed
from orrery.nn.block import Block
from orrery.nn.elementwise import Projection
from orrery.nn.linear.gating import GateThenNorm
from orrery.nn.linear.mamba2 import BoundedSteps, Mamba2, Projections
from orrery.nn.low_rank import LowRankSum
from orrery.nn.masks import Causal, RecurrentPast
from orrery.nn.norms import RMSNorm
from orrery.nn.positions.rotary import Rotary
from orrery.nn.positions.scheme import PositionSpec
from orrery.nn.residual import Normed
from orrery.nn.several_depths import BesideEntry, BranchChain, BranchInput, ByTurn
from orrery.nn.spec import ModuleSpec

ARCHITECTURE = "Zamba2ForCausalLM"
DEFAULTS: Mapping[str, Any] = {
    "vocab_size": size(32000),
    "hidden_size": size(2560),
    "intermediate_size": size(None, null=True),
    "num_hidden_layers": size(54),
    "layers_block_type": items(),
    "hybrid_layer_ids": items(),
    "num_attention_heads": size(32),
    "num_key_value_heads": size(None, null=True),
    "hidden_act": "gelu",
    "max_position_embeddings": 4096,
    "attention_dropout": 0.0,
    "rms_norm_eps": 1e-5,
    "add_bias_linear": False,
    "num_mem_blocks": size(1),
    "use_shared_attention_adapter": False,
    "adapter_rank": size(128),
    "use_mem_rope": False,
    "use_long_context": False,
    "mamba_d_state": size(64),
    "mamba_d_conv": size(4),
    "mamba_expand": size(2),
    "mamba_ngroups": size(1),
    "n_mamba_heads": size(8),
    "time_step_min": positive(0.001),
    "time_step_max": positive(0.1),
    "time_step_floor": positive(1e-4),
    "tie_word_embeddings": True,
    **_rotary.DEFAULTS,
}
TINY = {
    "vocab_size": 61,
    "hidden_size": 16,
    "intermediate_size": 12,
    "num_hidden_layers": 4,
    "layers_block_type": ["hybrid", "linear_attention", "hybrid", "hybrid"],
    "num_attention_heads": 4,
    "num_mem_blocks": 2,
    "use_shared_attention_adapter": True,
    "adapter_rank": 4,
    "use_mem_rope": True,
    "n_mamba_heads": 4,
    "mamba_ngroups": 2,
    "mamba_d_state": 4,
    "max_position_embeddings": 48,
}
_IGNORED = (
    "use_mamba_kernels", "use_mem_eff_path", "use_conv_bias", "chunk_size", "num_logits_to_keep", "mamba_headdim",
    "attention_hidden_size", "attention_head_dim", "head_dim", "kv_channels", "num_query_groups",
)  # fmt: skip
"""Which program computes the same numbers, and what the reference makes of other keys whatever a file says; its
convolution always has a bias."""
# Without a tied head the reference shares no blocks either.
_FIXED = {"tie_word_embeddings": True, "time_step_limit": None}
_ALIASES = {"layer_types": "layers_block_type"}
_KINDS = {"hybrid": True, "linear_attention": False, "mamba": False}


def _read(config: Mapping[str, Any]) -> Config:
    return Config("zamba2", config, DEFAULTS, fixed=_FIXED, ignored=_IGNORED, aliases=_ALIASES)


def spec(config: Mapping[str, Any]) -> Decoder.Spec:
    """Return the architecture that a ``config.json`` describes."""
    c = _read(config)
    order, standing = _order(c)
    blocks = [_shared_block(c, len(depths)) if hybrid else _block(c) for hybrid, depths in standing]
    norm, masks = RMSNorm.Spec(eps=c["rms_norm_eps"]), {"causal": Causal(), "past": RecurrentPast()}
    positions: dict[str, PositionSpec] = {"rotary": _positions(c)} if c["use_mem_rope"] else {}
    model = _decoders.decoder(c, _decoders.stack(c, blocks, norm, positions=positions, masks=masks, order=order))
    return replace(model, context=_context(c))


def _order(c: Config) -> tuple[tuple[int, ...], list[tuple[bool, list[int]]]]:
    """Return which block stands at each depth, and of each block whether it is a shared one and where it stands.

    Raises:
        ModelFileError: another kind of layer, or another number of layers.
    """
    kinds, layers = c["layers_block_type"] or _USUAL, c["num_hidden_layers"]
    if unknown := sorted({str(kind) for kind in kinds} - set(_KINDS)):
        message = f"zamba2: layers_block_type has the unknown {', '.join(unknown)}"
        raise ModelFileError(message, f"known: {', '.join(_KINDS)}")
    if len(kinds) != layers:
        message = f"zamba2: layers_block_type lists {len(kinds)} layers, num_hidden_layers is {layers}"
        raise ModelFileError(message, "list every layer once")
    places = [depth for depth, kind in enumerate(kinds) if _KINDS[kind]]
    if c["hybrid_layer_ids"] not in (None, places):
        message = f"zamba2: hybrid_layer_ids = {c['hybrid_layer_ids']}, and layers_block_type says {places}"
        raise ModelFileError(message, "they are the same layers: let them be equal")
    order: list[int] = []
    standing: list[tuple[bool, list[int]]] = []
    shared: list[int] = []
    for depth, kind in enumerate(kinds):
        hybrids = sum(_KINDS[other] for other in kinds[:depth])
        if not _KINDS[kind] or hybrids < c["num_mem_blocks"]:
            number = len(standing)
            standing.append((_KINDS[kind], []))
            shared += [number] if _KINDS[kind] else []
        else:
            number = shared[hybrids % c["num_mem_blocks"]]
        standing[number][1].append(depth)
        order.append(number)
    return tuple(order), standing


def _positions(c: Config) -> Rotary.Spec:
    return _rotary.rotary(c, _head_width(c), _context(c))


def _head_width(c: Config) -> int:
    """Return the channels of a head, of which all together are twice the width."""
    return 2 * c["hidden_size"] // c["num_attention_heads"]


def _context(c: Config) -> int:
    return 16384 if c["use_long_context"] else c["max_position_embeddings"]


def _mixer(c: Config) -> Normed.Spec:
    """Return Mamba-2 behind its norm."""
    c.divide("n_mamba_heads", "mamba_ngroups")
    heads, wide = c["n_mamba_heads"], c["mamba_expand"] * c["hidden_size"]
    if wide % heads:
        message = f"zamba2: mamba_expand * hidden_size = {wide}, and n_mamba_heads = {heads}"
        raise ModelFileError(message, "let the heads divide the channels")
    bias = c["add_bias_linear"]
    mamba = Mamba2.Spec(
        heads=heads,
        head_width=wide // heads,
        state=c["mamba_d_state"],
        groups=c["mamba_ngroups"],
        length=c["mamba_d_conv"],
        projections=Projections(bias=bias, out_bias=bias),
        gating=GateThenNorm(eps=1e-5),
        steps=BoundedSteps(drawn=_state_space.time_steps(c), least=float(c["time_step_min"])),
    )
    return Normed.Spec(norm=RMSNorm.Spec(eps=c["rms_norm_eps"]), branch=mamba)


def _block(c: Config) -> Block.Spec:
    mixer = _mixer(c)
    return _parts.sequential({"mixer": mixer.branch}, pre=mixer.norm)


def _shared_block(c: Config, turns: int) -> Block.Spec:
    """Return a block that stands at several depths: of each its adapters, its projection and its Mamba-2."""
    width, norm = c["hidden_size"], RMSNorm.Spec(eps=c["rms_norm_eps"])
    network = _decoders.feed_forward(c, hidden=c["intermediate_size"] or 4 * width, bias=c["add_bias_linear"])
    adapted = LowRankSum.Spec(of=network, groups=(("gate", "up"),), rank=c["adapter_rank"])
    behind = Projection.Spec(width=width, bias=False)
    transformer = {
        "attention": Normed.Spec(norm=norm, branch=_attention(c)),
        "network": Normed.Spec(norm=norm, branch=adapted, post=behind),  # no layer that writes to the stream
    }
    shared = BesideEntry.Spec(branch=BranchChain.Spec(branches=transformer))
    whole = BranchChain.Spec(branches={"shared": BranchInput.Spec(branch=shared), "mixer": _mixer(c)})
    one = tuple(f"{_TRANSFORMER}.{path}" for path in _shared_parts(c))
    return _parts.sequential({"mixer": ByTurn.Spec(branch=whole, turns=turns, shared=one)})


def _attention(c: Config) -> ModuleSpec:
    """Return the attention, of twice the width; its scores are divided by the root of half a head.

    Raises:
        ModelFileError: heads that share keys beside adapters, which the reference makes for as many keys as queries.
    """
    heads = c["num_attention_heads"]
    kv_heads = c["num_key_value_heads"] or heads
    attention = _decoders.attention(
        c,
        kv_heads=kv_heads,
        head_width=_head_width(c),
        scoring=ScoreSettings(scale=(_head_width(c) / 2) ** -0.5, dropout=c["attention_dropout"]),
        position="rotary" if c["use_mem_rope"] else "none",
    )
    narrowed = Narrowed(attention=attention, written=c["hidden_size"])
    if not c["use_shared_attention_adapter"]:
        return narrowed
    if kv_heads != heads or 2 * c["hidden_size"] % heads:
        raise ModelFileError(
            f"zamba2: num_key_value_heads = {kv_heads} beside num_attention_heads = {heads} with "
            "use_shared_attention_adapter",
            "the adapters of keys are as wide as those of queries: let the two be equal, and divide twice the width",
        )
    return LowRankSum.Spec(of=narrowed, groups=(("q",), ("k",), ("v",)), rank=c["adapter_rank"])


_TRANSFORMER = "shared.branch.branch"
"""Where a turn keeps the Transformer block."""


def _shared_parts(c: Config) -> tuple[str, ...]:
    """Return what of it is one and the same at all depths."""
    inside = ".linear" if c["use_shared_attention_adapter"] else ""
    return (
        "attention.norm",
        *(f"attention.branch.{part}{inside}" for part in "qkv"),
        "attention.branch.out",
        "network.norm",
        *(f"network.branch.{part}" for part in ("gate.linear", "up.linear", "down")),
    )


_USUAL = (
    ["linear_attention"]
    + (["linear_attention"] * 5 + ["hybrid"]) * 7
    + (["linear_attention"] * 4 + ["hybrid"])
    + (["linear_attention"] * 3 + ["hybrid"])
    + ["linear_attention"] * 2
)
"""The layers of a file that lists none."""
_ENDS = ("weight", "bias")


def WEIGHTS(config: Mapping[str, Any]) -> tuple[Rule, ...]:  # noqa: N802 - the name of a family's rules
    """Return the rules; at the first depth of a block the files have what depths share, and the adapters of all."""
    c = _read(config)
    order, standing = _order(c)
    hybrid = [depth for depth, number in enumerate(order) if standing[number][0]]
    rules: list[Rule] = []
    for number, (shared, depths) in enumerate(standing):
        for turn, depth in enumerate(depths):
            layer, block = f"model.layers.{depth}", f"stack.blocks.{number}.mixer"
            if shared:
                first = f"model.layers.{depths[0]}.shared_transformer"
                rules += _turn_rules(c, layer, first, f"{block}.branch.turns.{turn}", hybrid.index(depth))
                rules += _transformer_rules(c, first, f"{block}.branch.turns.0.{_TRANSFORMER}") if not turn else ()
            else:
                rules += _mamba_rules(layer, f"{block}.pre", f"{block}.branch")
    return (
        rename("model.embed_tokens.weight", "embed.token.weight"),
        *rules,
        rename("model.final_layernorm.weight", "stack.final.weight"),
        rename("lm_head.weight", "head.vocabulary.weight"),
    )


def _mamba_rules(theirs: str, norm: str, mixer: str) -> tuple[Rule, ...]:
    own = _state_space.mamba2_rules(f"{theirs}.mamba", mixer)
    return (rename(f"{theirs}.input_layernorm.weight", f"{norm}.weight"), *own)


def _transformer_rules(c: Config, theirs: str, ours: str) -> tuple[Rule, ...]:
    """Return the rules of what depths share."""
    inside = ".linear" if c["use_shared_attention_adapter"] else ""
    attention, network = f"{ours}.attention.branch", f"{ours}.network.branch"
    return (
        rename(f"{theirs}.input_layernorm.weight", f"{ours}.attention.norm.weight"),
        rename(f"{theirs}.pre_ff_layernorm.weight", f"{ours}.network.norm.weight"),
        *(rename(f"{theirs}.self_attn.{x}_proj.weight", f"{attention}.{x}{inside}.weight") for x in "qkv"),
        rename(f"{theirs}.self_attn.o_proj.weight", f"{attention}.out.weight"),
        *(
            fused(f"{theirs}.feed_forward.gate_up_proj.{end}", tuple(f"{network}.{x}.linear.{end}" for x in _GATED))
            for end in _ENDS
        ),
        *renames(f"{theirs}.feed_forward", network, [("down_proj", "down")]),
    )


_GATED = ("gate", "up")


def _turn_rules(c: Config, layer: str, first: str, ours: str, number: int) -> tuple[Rule, ...]:
    """Return the rules of what is a depth's own; ``number`` counts the depths at which a shared block stands."""
    attention = f"{ours}.{_TRANSFORMER}.attention.branch"
    network = f"{ours}.{_TRANSFORMER}.network"
    narrow = f"{first}.feed_forward.gate_up_proj_adapter_list.{number}"
    adapters = [
        rename(f"{first}.self_attn.linear_{x}_adapter_list.{number}.{i}.weight", f"{attention}.{x}.{part}.weight")
        for x in "qkv"
        for i, part in enumerate(("down", "up"))
    ]
    return (
        *_mamba_rules(f"{layer}.mamba_decoder", f"{ours}.mixer.norm", f"{ours}.mixer.branch"),
        rename(f"{layer}.linear.weight", f"{network}.post.linear.weight"),
        rename(f"{narrow}.0.weight", f"{network}.branch.gate.down.weight"),
        fused(f"{narrow}.1.weight", tuple(f"{network}.branch.{x}.up.weight" for x in _GATED)),
        *(adapters if c["use_shared_attention_adapter"] else ()),
    )
