"""DINOv2 (Oquab et al. 2024): a ViT whose features serve without being tuned, learnt from pictures alone.

Peculiar to it: a learned factor for each channel of what a branch adds (layer scale, Touvron et al. 2021); in the giant
variant SwiGLU, two thirds as wide as two layers would be, rounded up to a multiple of eight; a class is read from the
class token beside the mean of the patches. A picture of another size is read with positions interpolated to it, as in
the reference.

The vector of hidden patches (``mask_token``) is kept and written again; no pass reads it. ``out_features``,
``out_indices``, ``apply_layernorm`` and ``reshape_hidden_states`` say what the reference's backbone hands to other
models, and change no number here.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from orrery.checkpoints.layouts import Reshaped
from orrery.checkpoints.rules import Rule, fused, rename
from orrery.families import _heads, _vit
from orrery.families._config import Config
from orrery.families._keys import number, positive, size
from orrery.models.encoder import Encoder
from orrery.nn.elementwise import LayerScale
from orrery.nn.feedforward.gated import GatedMLP
from orrery.nn.feedforward.mlp import MLP
from orrery.nn.heads import FirstAndMean, Pooler, SequenceHead
from orrery.nn.patches import StoredToken
from orrery.nn.residual import Chain, Identity, Residual
from orrery.nn.spec import ModuleSpec
from orrery.nn.stochastic_depth import StochasticDepth

ARCHITECTURE, BARE = "Dinov2ForImageClassification", "Dinov2Model"
DEFAULTS: Mapping[str, Any] = {
    "hidden_size": size(768),
    "num_hidden_layers": size(12),
    "num_attention_heads": size(12),
    "mlp_ratio": size(4),
    "hidden_act": "gelu",
    "hidden_dropout_prob": number(0.0),
    "attention_probs_dropout_prob": number(0.0),
    "layer_norm_eps": positive(1e-6),
    "image_size": size(224),
    "patch_size": size(14),
    "num_channels": size(3),
    "qkv_bias": True,
    "layerscale_value": number(1.0),
    "drop_path_rate": number(0.0),
    "use_swiglu_ffn": False,
    "use_mask_token": True,
    **_heads.DEFAULTS,
}
TINY: Mapping[str, Any] = {
    "hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 3, "mlp_ratio": 2, "image_size": 12,
    "patch_size": 4,
}  # fmt: skip
_OF_BACKBONES = ("out_features", "out_indices", "stage_names", "apply_layernorm", "reshape_hidden_states")


def spec(config: Mapping[str, Any]) -> Encoder.Spec:
    """Return the architecture that a ``config.json`` describes."""
    c = Config("dinov2", config, DEFAULTS, ignored=_OF_BACKBONES)
    embed = replace(_vit.embed(c), hidden=StoredToken.Spec() if c["use_mask_token"] else Identity.Spec())
    heads: Mapping[str, Mapping[str, ModuleSpec]] = {
        ARCHITECTURE: {"sequence": SequenceHead.Spec(pooler=Pooler.Spec(pool=FirstAndMean()), **_heads.of_row(c))},
        BARE: {"pooled": Pooler.Spec()},
    }
    return Encoder.Spec(
        width=c["hidden_size"],
        context=embed.tokens,
        embed=embed,
        stack=_vit.stack(c, embed, _residuals(c)),
        heads=_vit.chosen(c, ARCHITECTURE, heads),
    )


def _residuals(c: Config) -> dict[str, Residual.Spec]:
    """Return what a block consists of; the reference leaves branches of all depths out at one rate."""
    scale = LayerScale.Spec(initial=float(c["layerscale_value"]))
    rate = c["drop_path_rate"]
    post = Chain.Spec(parts=(scale, StochasticDepth.Spec(rate=rate))) if rate else Chain.Spec(parts=(scale,))
    branches = {"attention": _vit.attention(c), "feed_forward": _feed_forward(c)}
    return {name: Residual.Spec(branch=branch, pre=_vit.norm(c), post=post) for name, branch in branches.items()}


def _feed_forward(c: Config) -> ModuleSpec:
    """Return the two layers, or SwiGLU in their place, about as large."""
    hidden = c["hidden_size"] * c["mlp_ratio"]
    if not c["use_swiglu_ffn"]:
        return MLP.Spec(hidden=hidden, activation=c.activation("hidden_act"))
    return GatedMLP.Spec(hidden=(int(hidden * 2 / 3) + 7) // 8 * 8, bias=True)


_LAYER = (
    ("norm1", "attention.pre"),
    *(pair for pair in _vit.LAYER if pair[0].startswith("attention.")),
    ("norm2", "feed_forward.pre"),
    ("mlp.fc1", "feed_forward.branch.up"),
    ("mlp.fc2", "feed_forward.branch.down"),
    ("mlp.weights_out", "feed_forward.branch.down"),
)


def WEIGHTS(config: Mapping[str, Any]) -> tuple[Rule, ...]:  # noqa: N802 - the name of a family's rules
    """Return the rules of the files; a bare model's names begin without ``dinov2``."""
    base = _vit.base(config, BARE, "dinov2.")
    layer, ours = f"{base}encoder.layer.{{i}}", "stack.blocks.{i}"
    gated = "mlp.fc" if config.get("use_swiglu_ffn") else "mlp.weights_out"
    parts = tuple(pair for pair in _LAYER if not pair[0].startswith(gated))
    hidden = f"{ours}.feed_forward.branch"
    return (
        *_vit.rules(base, "", parts=parts),
        Rule(f"{base}embeddings.mask_token", ("embed.hidden.vector",), Reshaped(1)),
        *(
            rename(f"{layer}.layer_scale{n}.lambda1", f"{ours}.{name}.post.0.gain")
            for n, name in ((1, "attention"), (2, "feed_forward"))
        ),
        *(fused(f"{layer}.mlp.weights_in.{end}", (f"{hidden}.gate.{end}", f"{hidden}.up.{end}")) for end in _vit.ENDS),
        *(rename(f"classifier.{end}", f"heads.sequence.labels.{end}") for end in _vit.ENDS),
    )
