"""Granite 4 (IBM 2025): Granite's multipliers around Mamba-2 and attention, with experts or without.

Peculiar to it: ``layer_types`` says which layers attend, mostly without positions (``position_embedding_type``), the
others have Mamba-2's mixer; behind either stand a mixture and a network that every token passes, or the latter alone;
Granite's four multipliers. In its files all experts of a layer are one tensor, gate before up.
"""

from collections.abc import Mapping
from typing import Any

from orrery.checkpoints.rules import Rule, fused, rename
from orrery.errors import ModelFileError
from orrery.families import _decoders, _granite, _mixture, _parts, _state_space
from orrery.families._config import Config
from orrery.families._keys import Key, count, items, plain, size
from orrery.models.decoder import Decoder
from orrery.nn.masks import Causal, RecurrentPast
from orrery.nn.norms import RMSNorm
from orrery.nn.residual import Scale
from orrery.nn.spec import ModuleSpec

ARCHITECTURE = "GraniteMoeHybridForCausalLM"
DEFAULTS: Mapping[str, Any] = {
    **_decoders.DEFAULTS,
    **_granite.DEFAULTS,
    "shared_intermediate_size": size(1024),
    "num_local_experts": count(8),
    "num_experts_per_tok": size(2),
    "position_embedding_type": Key(None, ("text",), null=True),
    "layer_types": items(),
    **_state_space.BESIDE_ATTENTION,
}
TINY = {
    **_decoders.NARROW,
    "intermediate_size": 8,
    "embedding_multiplier": 12.0,
    "residual_multiplier": 0.22,
    "attention_multiplier": 0.25,
    "logits_scaling": 8.0,
    "shared_intermediate_size": 12,
    "num_local_experts": 4,
    "layer_types": ["linear_attention", "full_attention"],
    "position_embedding_type": "rope",
    "mamba_n_heads": 4,
    "mamba_n_groups": 2,
    "mamba_d_state": 4,
    "tie_word_embeddings": True,
}
_FIXED = {"hidden_act": "silu"}
_IGNORED = ("mamba_chunk_size", "output_router_logits", "router_aux_loss_coef")
_ALIASES = {"layers_block_type": "layer_types"}
_ATTENDS = {"full_attention": True, "attention": True, "linear_attention": False, "mamba": False}


def spec(config: Mapping[str, Any]) -> Decoder.Spec:
    """Return the architecture that a ``config.json`` describes."""
    c = Config("granitemoehybrid", config, DEFAULTS, fixed=_FIXED, ignored=_IGNORED, aliases=_ALIASES)
    norm, softer = RMSNorm.Spec(eps=c["rms_norm_eps"]), Scale.Spec(factor=c["residual_multiplier"])
    feed_forward = _feed_forward(c)
    blocks = [
        _parts.sequential({**_mixer(c, attends), "feed_forward": feed_forward}, pre=norm, post=softer)
        for attends in _attends(c)
    ]
    masks = {"causal": Causal(), "past": RecurrentPast()}
    return _granite.around(c, blocks, norm, masks=masks)


def _mixer(c: Config, attends: bool) -> dict[str, ModuleSpec]:
    if not attends:
        return {"mixer": _state_space.mixer_beside_attention(c)}
    return {"attention": _granite.attention(c, position="rotary" if c["position_embedding_type"] == "rope" else "none")}


def _feed_forward(c: Config) -> ModuleSpec:
    """Return the mixture with the network that every token passes, or the latter alone where there are no experts."""
    shared = _decoders.feed_forward(c, hidden=c["shared_intermediate_size"])
    if not c["num_local_experts"]:
        return shared
    return _mixture.experts(c, c["num_local_experts"], "intermediate_size", normalised=True, shared=(shared,))


def _attends(c: Config) -> list[bool]:
    """Return which layers attend.

    Raises:
        ModelFileError: another kind of layer, or another number of layers.
    """
    layers = c["num_hidden_layers"]
    kinds = c["layer_types"] or ["linear_attention"] * layers
    if unknown := sorted({str(kind) for kind in kinds} - set(_ATTENDS)):
        raise ModelFileError(
            f"{c.family}: layer_types has the unknown {', '.join(unknown)}", f"known: {', '.join(_ATTENDS)}"
        )
    if len(kinds) != layers:
        raise ModelFileError(
            f"{c.family}: layer_types lists {len(kinds)} layers, num_hidden_layers is {layers}", "list every layer once"
        )
    return [_ATTENDS[kind] for kind in kinds]


_LAYER, _BLOCK = _decoders.LAYER, _decoders.BLOCK


def WEIGHTS(config: Mapping[str, Any]) -> tuple[Rule, ...]:  # noqa: N802 - the name of a family's rules
    """Return the rules of the files; without experts the network stands where the mixture does."""
    experts = {**plain(DEFAULTS), **config}["num_local_experts"]
    shared = f"{_mixture.OURS}.shared.0" if experts else _mixture.OURS
    norms = (("attention", "input"), ("mixer", "input"), ("feed_forward", "post_attention"))
    return (
        *_decoders.frame(),
        *(rename(f"{_LAYER}.{name}_layernorm.weight", f"{_BLOCK}.{role}.pre.weight") for role, name in norms),
        *_decoders.projections(),
        *_state_space.mamba2_rules(f"{_LAYER}.mamba", f"{_BLOCK}.mixer.branch"),
        *_granite.expert_rules(experts),
        fused(f"{_LAYER}.shared_mlp.input_linear.weight", (f"{shared}.gate.weight", f"{shared}.up.weight")),
        rename(f"{_LAYER}.shared_mlp.output_linear.weight", f"{shared}.down.weight"),
    )
