"""DeBERTa v2 and v3 (He et al. 2021 and 2023; v3 checkpoints are of this type): buckets, and one set of projections.

Peculiar to it, beside what ``deberta`` lists: far distances share logarithmic buckets (``position_buckets``); the table
of distances has a norm (``norm_rel_ebd``); positions go through the projections of the contents (``share_att_key``);
all four projections have biases and matrices of their own in the files; in the xlarge models a convolution of
the embeddings joins what the first block puts out (``conv_kernel_size``).
The published files name the masked head as ``legacy`` false does, though their configurations leave the key out. Both
heads compute the same, so it is read for either; transformers begins with a random one there.
"""

from collections.abc import Mapping
from typing import Any

from orrery.checkpoints.rules import Rule, renames
from orrery.errors import ModelFileError
from orrery.families import _deberta, _parts
from orrery.families._config import Config
from orrery.families._deberta import BLOCKS, THEIRS
from orrery.families._keys import size
from orrery.models.encoder import Encoder
from orrery.nn.attention.disentangled import Own, Shared
from orrery.nn.block import Block
from orrery.nn.convolution import Convolution
from orrery.nn.norms import LayerNorm
from orrery.nn.positions.relative_embeddings import Clipped, LogBuckets, RelativeEmbeddings, Rows
from orrery.nn.residual import Dropout, Identity, NoSkip, Residual, Sum
from orrery.nn.stack import repeat

MODEL_TYPE = "deberta-v2"
ARCHITECTURE = "DebertaV2ForMaskedLM"
DEFAULTS: Mapping[str, Any] = {
    "vocab_size": size(128100),
    "hidden_size": size(1536),
    "num_hidden_layers": size(24),
    "num_attention_heads": size(24),
    "intermediate_size": size(6144),
    "attention_head_size": size(None),
    "position_buckets": -1,
    "norm_rel_ebd": "none",
    "share_att_key": False,
    "conv_kernel_size": 0,
    "conv_groups": size(1),
    "conv_act": "tanh",
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
    "conv_kernel_size": 3,
}


def spec(config: Mapping[str, Any]) -> Encoder.Spec:
    """Return the architecture that a ``config.json`` describes."""
    c = Config("deberta-v2", config, DEFAULTS, ignored=_deberta.IGNORED)
    if c["attention_head_size"] not in (None, c.divide("hidden_size", "num_attention_heads")):
        raise ModelFileError(
            f"deberta-v2: attention_head_size = {c['attention_head_size']} is not hidden_size / num_attention_heads",
            "the reference cannot run such a model either",
        )
    projection = Shared.Spec() if c["share_att_key"] else Own.Spec(width=c["hidden_size"])
    attention = _deberta.attention(c, _parts.biases(), {"c2p": projection, "p2c": projection})
    normed = "layer_norm" in [x.strip() for x in c["norm_rel_ebd"].lower().split("|")]
    norm = LayerNorm.Spec(eps=c["layer_norm_eps"]) if normed else Identity.Spec()
    block = _deberta.block(c, attention)
    first = _convolved(c, block) if c["conv_kernel_size"] else block
    blocks = (first, *repeat(block, c["num_hidden_layers"] - 1))
    return _deberta.encoder(c, ARCHITECTURE, blocks, RelativeEmbeddings.Spec(rows=_rows(c), norm=norm))


def _convolved(c: Config, block: Block.Spec) -> Block.Spec:
    """Return ``norm(block(x) + convolution(x))``: nothing is added to, so there is no skip."""
    convolution = Convolution.Spec(
        length=c["conv_kernel_size"],
        groups=c["conv_groups"],
        activation=c.activation("conv_act"),
        dropout=Dropout.Spec(rate=c["hidden_dropout_prob"]),
    )
    both = Sum.Spec(branches={"block": block, "convolution": convolution})
    norm = LayerNorm.Spec(eps=c["layer_norm_eps"])
    return Block.Spec(residuals={"convolved": Residual.Spec(branch=both, skip=NoSkip.Spec(), out=norm)})


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
            f"deberta-v2: {buckets} position_buckets for {furthest} relative positions (max_relative_positions)",
            "choose at least two buckets, and fewer than twice the positions",
        )
    return LogBuckets(reach=buckets, furthest=furthest)


_CONV, _FIRST = "encoder.conv", "stack.blocks.0.convolved"
_ATTENTION = (
    *((f"{theirs}_proj", ours) for theirs, ours in (("query", "q"), ("key", "k"), ("value", "v"))),
    ("pos_key_proj", "terms.content_to_position.projection.linear"),
    ("pos_query_proj", "terms.position_to_content.projection.linear"),
)


def WEIGHTS(config: Mapping[str, Any]) -> tuple[Rule, ...]:  # noqa: N802 - the name of a family's rules
    """Return the rules."""
    blocks = (
        rule
        for block in BLOCKS
        for rule in renames(f"{THEIRS}.attention.self", f"{block}.attention.branch", _ATTENTION)
    )
    own = (
        *blocks,
        *renames("encoder", "stack.positions.relative", (("LayerNorm", "norm"),)),
        *renames(_CONV, _FIRST, (("conv", "branch.convolution.conv"), ("LayerNorm", "out"))),
    )
    return _deberta.rules(config, ARCHITECTURE, own)


def LEGACY_NAMES(config: Mapping[str, Any]) -> dict[str, str | None]:  # noqa: N802 - the name of a family's old names
    """Return the names of old files."""
    names = _deberta.old(config, spec(config).heads, WEIGHTS(config))
    # The reference makes the norm of the relative embeddings even where there are none.
    relative = config.get("relative_attention", DEFAULTS["relative_attention"])
    return names if relative else {**names, r"\bencoder\.LayerNorm\.(weight|bias)$": None}
