"""DeBERTa v2 and v3 (He et al. 2021 and 2023; v3 checkpoints are of this type): buckets, and one set of projections.

Peculiar to it, beside what ``deberta`` lists: far distances share logarithmic buckets (``position_buckets``); the table
of distances has a norm (``norm_rel_ebd``); positions go through the projections of the contents (``share_att_key``);
all four projections have biases and matrices of their own in the files.
The published files name the masked head as ``legacy`` false does, though their configurations leave the key out.
"""

from collections.abc import Mapping
from typing import Any

from orrery.checkpoints.rules import Rule, renames
from orrery.errors import ModelFileError
from orrery.families import _deberta
from orrery.families._config import Config
from orrery.families._deberta import BLOCK, THEIRS
from orrery.models.encoder import Encoder
from orrery.nn.attention.disentangled import Own, Shared
from orrery.nn.attention.multihead import Biases
from orrery.nn.norms import LayerNorm
from orrery.nn.positions.relative_embeddings import Clipped, LogBuckets, RelativeEmbeddings, Rows
from orrery.nn.residual import Identity
from orrery.nn.stack import repeat

ARCHITECTURE = "DebertaV2ForMaskedLM"
DEFAULTS: Mapping[str, Any] = {
    "vocab_size": 128100,
    "hidden_size": 1536,
    "num_hidden_layers": 24,
    "num_attention_heads": 24,
    "intermediate_size": 6144,
    "attention_head_size": None,
    "position_buckets": -1,
    "norm_rel_ebd": "none",
    "share_att_key": False,
    **_deberta.DEFAULTS,
}
TINY = {
    "vocab_size": 61,
    "hidden_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 3,
    "intermediate_size": 40,
    "max_position_embeddings": 48,
    "relative_attention": True,
    "position_buckets": 8,
    "norm_rel_ebd": "layer_norm",
    "share_att_key": True,
    "pos_att_type": "p2c|c2p",
    "position_biased_input": False,
}
_FIXED = {**_deberta.FIXED, "conv_kernel_size": 0}


def spec(config: Mapping[str, Any]) -> Encoder.Spec:
    """Return the architecture that a ``config.json`` describes."""
    c = Config("deberta-v2", config, DEFAULTS, fixed=_FIXED, ignored=_deberta.IGNORED)
    if c["attention_head_size"] not in (None, c.divide("hidden_size", "num_attention_heads")):
        raise ModelFileError(
            f"deberta-v2: attention_head_size = {c['attention_head_size']} is not hidden_size / num_attention_heads",
            "the reference cannot run such a model either",
        )
    projection = Shared.Spec() if c["share_att_key"] else Own.Spec(width=c["hidden_size"])
    attention = _deberta.attention(c, Biases(q=True, k=True, v=True, out=True), {"c2p": projection, "p2c": projection})
    normed = "layer_norm" in [x.strip() for x in c["norm_rel_ebd"].lower().split("|")]
    norm = LayerNorm.Spec(eps=c["layer_norm_eps"]) if normed else Identity.Spec()
    blocks = repeat(_deberta.block(c, attention), c["num_hidden_layers"])
    return _deberta.encoder(c, blocks, RelativeEmbeddings.Spec(rows=_rows(c), norm=norm))


def _rows(config: Config) -> Rows:
    """Return the rule of the table's rows.

    Raises:
        ModelFileError: the buckets reach beyond the distances that they are made for.
    """
    buckets, furthest = config["position_buckets"], _deberta.reach(config)
    if buckets <= 0:
        return Clipped(reach=furthest)
    if furthest - 1 <= buckets // 2 or buckets < 2:
        raise ModelFileError(
            f"deberta-v2: {buckets} position_buckets for {furthest} relative positions",
            "choose at least two buckets, and fewer than twice the positions",
        )
    return LogBuckets(reach=buckets, furthest=furthest)


def WEIGHTS(config: Mapping[str, Any]) -> tuple[Rule, ...]:  # noqa: N802 - the name of a family's rules
    """Return the rules."""
    theirs, ours = f"{THEIRS}.attention.self", f"{BLOCK}.attention.branch"
    terms = (("pos_key_proj", "content_to_position"), ("pos_query_proj", "position_to_content"))
    return (
        *_deberta.rules(config),
        *renames("deberta.encoder", "stack.positions.relative", (("LayerNorm", "norm"),)),
        *renames(theirs, ours, (("query_proj", "q"), ("key_proj", "k"), ("value_proj", "v"))),
        *renames(theirs, f"{ours}.terms", ((a, f"{b}.projection.linear") for a, b in terms)),
    )
