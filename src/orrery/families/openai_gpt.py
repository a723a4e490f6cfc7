"""GPT, the first (Radford et al. 2018): the decoder half of the original Transformer.

Peculiar to it: post-LN, so a LayerNorm behind each residual sum and none at the end; learned positions; biases
everywhere; gelu in its tanh form, which its configuration calls "gelu"; the head is the embedding table. In its files
q, k and v are one matrix, and every matrix of a block is stored transposed, as in GPT-2's.
"""

from collections.abc import Mapping
from typing import Any

from orrery.checkpoints.rules import Rule, rename, renames
from orrery.families import _gpt, _legacy_names, _parts
from orrery.families._config import Config
from orrery.families._keys import size
from orrery.models.decoder import Decoder
from orrery.nn.feedforward.mlp import MLP
from orrery.nn.norms import LayerNorm

MODEL_TYPE = "openai-gpt"
ARCHITECTURE = "OpenAIGPTLMHeadModel"
DEFAULTS: Mapping[str, Any] = {
    "vocab_size": size(40478),
    "n_positions": 512,
    "n_embd": size(768),
    "n_layer": size(12),
    "n_head": 12,
    "afn": "gelu",
    "resid_pdrop": 0.1,
    "embd_pdrop": 0.1,
    "attn_pdrop": 0.1,
    "layer_norm_epsilon": 1e-5,
    "tie_word_embeddings": True,
}
TINY = {"vocab_size": 61, "n_positions": 48, "n_embd": 24, "n_layer": 2, "n_head": 3}
_IGNORED = ("summary_*", "n_ctx", "n_special", "predict_special_tokens")
_ACTIVATIONS = {"gelu": "gelu_tanh", "relu": "relu", "silu": "silu", "swish": "silu"}


def spec(config: Mapping[str, Any]) -> Decoder.Spec:
    """Return the architecture that a ``config.json`` describes."""
    c = Config("openai-gpt", config, DEFAULTS, ignored=_IGNORED)
    norm = LayerNorm.Spec(eps=c["layer_norm_epsilon"])
    branches = {
        "attention": _gpt.attention(c, biases=_parts.biases()),
        "feed_forward": MLP.Spec(hidden=4 * c["n_embd"], activation=c.choose("afn", _ACTIVATIONS)),
    }
    return _gpt.decoder(c, _parts.sequential(branches, out=norm, dropout=c["resid_pdrop"]))


LEGACY_NAMES = {
    **_legacy_names.headless("transformer.", "tokens_embed", "positions_embed", "h"),
    **_legacy_names.CAUSAL,
}
WEIGHTS: tuple[Rule, ...] = (
    rename("transformer.tokens_embed.weight", "embed.token.weight"),
    rename("transformer.positions_embed.weight", "stack.positions.learned.table.weight"),
    *_gpt.BRANCHES,
    *renames(_gpt.LAYER, _gpt.BLOCK, (("ln_1", "attention.out"), ("ln_2", "feed_forward.out"))),
    rename("lm_head.weight", "head.vocabulary.weight"),
)
