"""CodeGen (Nijkamp et al. 2022): GPT-J trained on code, its matrices as four processors held them.

Peculiar to it: queries, values and keys are one matrix of four parts, each with those of a quarter of the heads, in
this order. Everything else is GPT-J's: attention and feed-forward side by side behind one norm, rotary positions on
``rotary_dim`` channels that pair neighbours, biases in the feed-forward network and the head alone.
"""

from collections.abc import Mapping
from typing import Any

from orrery.checkpoints.layouts import GroupInterleaved
from orrery.checkpoints.rules import Rule, rename, renames
from orrery.errors import ModelFileError
from orrery.families import _gpt, _legacy_names, gptj
from orrery.families._config import Config
from orrery.models.decoder import Decoder

ARCHITECTURE = "CodeGenForCausalLM"
DEFAULTS: Mapping[str, Any] = gptj.DEFAULTS
TINY = {"vocab_size": 61, "n_positions": 48, "n_embd": 24, "n_layer": 2, "n_head": 4, "rotary_dim": 4}
_IGNORED = ("summary_*", "n_ctx")
_ALIASES = {
    "hidden_size": "n_embd",
    "max_position_embeddings": "n_positions",
    "num_attention_heads": "n_head",
    "num_hidden_layers": "n_layer",
}
_PARTS = 4
"""The processors that a matrix was divided among."""


def spec(config: Mapping[str, Any]) -> Decoder.Spec:
    """Return the architecture that a ``config.json`` describes.

    Raises:
        ModelFileError: the heads cannot be divided by four.
    """
    c = Config("codegen", config, DEFAULTS, fixed=gptj.FIXED, ignored=_IGNORED, aliases=_ALIASES)
    if c["n_head"] % _PARTS:
        raise ModelFileError(
            f"codegen: n_head = {c['n_head']} is not divisible by {_PARTS}",
            f"its files hold queries, values and keys in {_PARTS} parts; choose a multiple of {_PARTS}",
        )
    return gptj.decoder(c)


LEGACY_NAMES = _legacy_names.CAUSAL
_LAYER, _BLOCK = _gpt.LAYER, f"{_gpt.BLOCK}.parallel"
WEIGHTS: tuple[Rule, ...] = (
    rename("transformer.wte.weight", "embed.token.weight"),
    Rule(
        f"{_LAYER}.attn.qkv_proj.weight",
        tuple(f"{_BLOCK}.branch.attention.{x}.weight" for x in "qvk"),
        GroupInterleaved(_PARTS),
    ),
    *renames(
        _LAYER,
        _BLOCK,
        (
            ("ln_1", "pre"),
            ("attn.out_proj", "branch.attention.out"),
            ("mlp.fc_in", "branch.feed_forward.up"),
            ("mlp.fc_out", "branch.feed_forward.down"),
        ),
    ),
    *renames("transformer", "stack", (("ln_f", "final"),)),
    *(rename(f"lm_head.{end}", f"head.vocabulary.{end}") for end in ("weight", "bias")),
)
