"""StarCoder and SantaCoder (BigCode; Ben Allal et al. 2023, Li et al. 2023): GPT-2 with one key-value head.

Peculiar to it: all heads share one key and one value (``multi_query``), which in its files follow the queries in one
matrix that is not transposed; without ``multi_query`` the rows of a head's query, key and value stand together.
"""

from collections.abc import Mapping
from typing import Any

from orrery.checkpoints.layouts import ROWS, GroupInterleaved
from orrery.checkpoints.rules import Rule, rename, renames
from orrery.families import _gpt, _legacy_names, _parts, gpt2
from orrery.families._config import Config
from orrery.families._keys import plain
from orrery.models.decoder import Decoder
from orrery.nn.attention.multihead import ScoreSettings
from orrery.nn.feedforward.mlp import MLP
from orrery.nn.norms import LayerNorm

ARCHITECTURE = "GPTBigCodeForCausalLM"
DEFAULTS: Mapping[str, Any] = {
    **gpt2.DEFAULTS,
    "multi_query": True,
    "activation_function": "gelu_pytorch_tanh",
}
TINY = gpt2.TINY
_FIXED = {"add_cross_attention": False}
_IGNORED = (
    "attention_softmax_in_fp32", "scale_attention_softmax_in_fp32", "num_key_value_heads", "inference_runner",
    "validate_runner_input", "pre_allocate_kv_cache", "max_sequence_length", "max_batch_size", "summary_*", "n_ctx",
)  # fmt: skip


def _read(config: Mapping[str, Any]) -> Config:
    aliases = {
        "hidden_size": "n_embd",
        "max_position_embeddings": "n_positions",
        "num_attention_heads": "n_head",
        "num_hidden_layers": "n_layer",
    }
    return Config("gpt_bigcode", config, DEFAULTS, fixed=_FIXED, ignored=_IGNORED, aliases=aliases)


def spec(config: Mapping[str, Any]) -> Decoder.Spec:
    """Return the architecture that a ``config.json`` describes."""
    c = _read(config)
    norm = LayerNorm.Spec(eps=c["layer_norm_epsilon"])
    scoring = ScoreSettings(scale=None if c["scale_attn_weights"] else 1.0, dropout=c["attn_pdrop"])
    shared = {"kv_heads": 1} if c["multi_query"] else {}
    branches = {
        "attention": _gpt.attention(c, biases=_parts.biases(), scoring=scoring, **shared),
        "feed_forward": MLP.Spec(
            hidden=c["n_inner"] or 4 * c["n_embd"], activation=c.activation("activation_function")
        ),
    }
    block = _parts.sequential(branches, pre=norm, dropout=c["resid_pdrop"])
    return _gpt.decoder(c, block, final=norm)


LEGACY_NAMES = {**_legacy_names.headless("transformer.", "wte", "wpe", "h", "ln_f"), **_legacy_names.CAUSAL}
_PARTS = (
    ("ln_1", "attention.pre"),
    ("attn.c_proj", "attention.branch.out"),
    ("ln_2", "feed_forward.pre"),
    ("mlp.c_fc", "feed_forward.branch.up"),
    ("mlp.c_proj", "feed_forward.branch.down"),
)


def WEIGHTS(config: Mapping[str, Any]) -> tuple[Rule, ...]:  # noqa: N802 - the name of a family's rules
    """Return the rules of the files; how q, k and v lie in one matrix depends on whether keys are shared."""
    c = _read({**plain(DEFAULTS), **config})
    layout = ROWS if c["multi_query"] else GroupInterleaved(c["n_head"])
    ours = f"{_gpt.BLOCK}.attention.branch"
    return (
        rename("transformer.wte.weight", "embed.token.weight"),
        rename("transformer.wpe.weight", "stack.positions.learned.table.weight"),
        *(
            Rule(f"{_gpt.LAYER}.attn.c_attn.{end}", tuple(f"{ours}.{x}.{end}" for x in "qkv"), layout)
            for end in ("weight", "bias")
        ),
        *renames(_gpt.LAYER, _gpt.BLOCK, _PARTS),
        *renames("transformer", "stack", (("ln_f", "final"),)),
        rename("lm_head.weight", "head.vocabulary.weight"),
    )
