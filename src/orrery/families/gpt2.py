"""GPT-2 (Radford et al. 2019): the pre-LN decoder with learned positions.

Peculiar to it: LayerNorm with bias in front of each sublayer and once at the end; biases everywhere; gelu in its tanh
form; the head is the embedding table. In its files q, k and v are one matrix, and every matrix of a block is stored
transposed (the layout of a width-one convolution).
"""

from collections.abc import Mapping
from typing import Any

from orrery.checkpoints.rules import Rule, rename, renames
from orrery.families import _gpt, _legacy_names, _parts
from orrery.families._config import Config
from orrery.families._keys import size
from orrery.models.decoder import Decoder
from orrery.nn.attention.multihead import ScoreSettings
from orrery.nn.feedforward.mlp import MLP
from orrery.nn.norms import LayerNorm

ARCHITECTURE = "GPT2LMHeadModel"
DEFAULTS: Mapping[str, Any] = {
    "vocab_size": size(50257),
    "n_positions": 1024,
    "n_embd": size(768),
    "n_layer": size(12),
    "n_head": 12,
    "n_inner": size(None),
    "activation_function": "gelu_new",
    "resid_pdrop": 0.1,
    "embd_pdrop": 0.1,
    "attn_pdrop": 0.1,
    "layer_norm_epsilon": 1e-5,
    "scale_attn_weights": True,
    "tie_word_embeddings": True,
}
TINY = {"vocab_size": 61, "n_positions": 48, "n_embd": 24, "n_layer": 2, "n_head": 3}
_FIXED = {"scale_attn_by_inverse_layer_idx": False, "add_cross_attention": False}
_IGNORED = ("reorder_and_upcast_attn", "n_ctx", "n_special", "predict_special_tokens", "summary_*")


def spec(config: Mapping[str, Any]) -> Decoder.Spec:
    """Return the architecture that a ``config.json`` describes."""
    c = Config("gpt2", config, DEFAULTS, fixed=_FIXED, ignored=_IGNORED)
    norm = LayerNorm.Spec(eps=c["layer_norm_epsilon"])
    scoring = ScoreSettings(scale=None if c["scale_attn_weights"] else 1.0, dropout=c["attn_pdrop"])
    branches = {
        "attention": _gpt.attention(c, biases=_parts.biases(), scoring=scoring),
        "feed_forward": MLP.Spec(
            hidden=c["n_inner"] or 4 * c["n_embd"], activation=c.activation("activation_function")
        ),
    }
    block = _parts.sequential(branches, pre=norm, dropout=c["resid_pdrop"])
    return _gpt.decoder(c, block, final=norm)


LEGACY_NAMES = {**_legacy_names.headless("transformer.", "wte", "wpe", "h", "ln_f"), **_legacy_names.CAUSAL}
WEIGHTS: tuple[Rule, ...] = (
    rename("transformer.wte.weight", "embed.token.weight"),
    rename("transformer.wpe.weight", "stack.positions.learned.table.weight"),
    *renames(_gpt.LAYER, _gpt.BLOCK, (("ln_1", "attention.pre"), ("ln_2", "feed_forward.pre"))),
    *_gpt.BRANCHES,
    *renames("transformer", "stack", (("ln_f", "final"),)),
    rename("lm_head.weight", "head.vocabulary.weight"),
)
