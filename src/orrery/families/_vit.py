"""What ViT and its kin (DeiT, YOLOS, MAE, DINOv2) have in common: keys, blocks, and names of the tensors."""

from collections.abc import Mapping
from typing import Any

from orrery.checkpoints.layouts import Reshaped
from orrery.checkpoints.rules import Rule, rename, renames
from orrery.errors import ModelFileError
from orrery.families import _heads
from orrery.families._config import Config
from orrery.families._keys import count, size
from orrery.nn.attention.multihead import Biases, MultiHeadAttention, ScoreSettings
from orrery.nn.block import Block
from orrery.nn.feedforward.mlp import MLP
from orrery.nn.heads import Pooler
from orrery.nn.masks import Full
from orrery.nn.norms import LayerNorm
from orrery.nn.patches import PatchEmbedding
from orrery.nn.positions.grid import GridPositions
from orrery.nn.residual import Dropout, Residual
from orrery.nn.spec import ModuleSpec
from orrery.nn.stack import Stack, repeat

BODY: Mapping[str, Any] = {
    "hidden_size": size(768),
    "num_hidden_layers": size(12),
    "num_attention_heads": size(12),
    "intermediate_size": size(3072),
    "hidden_act": "gelu",
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
    "layer_norm_eps": 1e-12,
    "image_size": 224,
    "patch_size": 16,
    "num_channels": 3,
    "qkv_bias": True,
}
DEFAULTS: Mapping[str, Any] = {
    **BODY, "pooler_output_size": count(None), "pooler_act": "tanh", **_heads.DEFAULTS,
}  # fmt: skip
TINY: Mapping[str, Any] = {
    "hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 40, "image_size": 12,
    "patch_size": 4,
}  # fmt: skip


def norm(c: Config) -> LayerNorm.Spec:
    """Return the LayerNorm that all parts share."""
    return LayerNorm.Spec(eps=c["layer_norm_eps"])


def residuals(c: Config, prefix: str = "") -> dict[str, Residual.Spec]:
    """Return what a block consists of: attention over the whole row and two layers, a norm before each.

    ``prefix`` stands before the keys of the sizes: ``decoder_``.
    """
    dropout = c["hidden_dropout_prob"]
    feed_forward = MLP.Spec(hidden=c[f"{prefix}intermediate_size"], activation=c.activation("hidden_act"))
    return {
        "attention": Residual.Spec(branch=attention(c, prefix), pre=norm(c), dropout=dropout),
        "feed_forward": Residual.Spec(branch=feed_forward, pre=norm(c), dropout=dropout),
    }


def attention(c: Config, prefix: str = "") -> MultiHeadAttention.Spec:
    """Return attention over the whole row."""
    heads, biased = f"{prefix}num_attention_heads", c["qkv_bias"]
    return MultiHeadAttention.Spec(
        heads=c[heads],
        kv_heads=c[heads],
        head_width=c.divide(f"{prefix}hidden_size", heads),
        biases=Biases(q=biased, k=biased, v=biased, out=True),
        scoring=ScoreSettings(dropout=c["attention_probs_dropout_prob"]),
        mask="all",
    )


def embed(c: Config) -> PatchEmbedding.Spec:
    """Return the embedding of square pictures."""
    image, patch = c["image_size"], c["patch_size"]
    return PatchEmbedding.Spec(image=(image, image), patch=(patch, patch), channels=c["num_channels"])


def stack(c: Config, embedding: PatchEmbedding.Spec, parts: Mapping[str, Residual.Spec] | None = None) -> Stack.Spec:
    """Return the stack over an embedding, with learned positions; ``parts`` are those of a block, by default ViT's."""
    return Stack.Spec(
        blocks=repeat(Block.Spec(residuals=parts or residuals(c)), c["num_hidden_layers"]),
        final=norm(c),
        positions={"learned": GridPositions.Spec(grid=embedding.grid)},
        masks={"all": Full()},
        start=Dropout.Spec(rate=c["hidden_dropout_prob"]),
    )


def pooled(c: Config) -> Pooler.Spec:
    """Return the pooler of a bare model."""
    return Pooler.Spec(
        transform=_heads.transform(c["pooler_output_size"] or c["hidden_size"], c.activation("pooler_act"))
    )


def chosen(c: Config, main: str, known: Mapping[str, Mapping[str, ModuleSpec]]) -> Mapping[str, ModuleSpec]:
    """Return the heads of the class that a configuration names, by default those of ``main``.

    Raises:
        ModelFileError: the family has no such class.
    """
    named = (c["architectures"] or [main])[0]
    if named not in known:
        raise ModelFileError(f"{c.family}: the architecture {named!r} is not known", f"known: {', '.join(known)}")
    return known[named]


def base(config: Mapping[str, Any], bare: str, prefix: str) -> str:
    """Return what the names of the stack begin with: ``vit.``, and nothing in the files of a bare model."""
    return "" if bare in (config.get("architectures") or ()) else prefix


ENDS = ("weight", "bias")
LAYER = (
    ("layernorm_before", "attention.pre"),
    ("attention.attention.query", "attention.branch.q"),
    ("attention.attention.key", "attention.branch.k"),
    ("attention.attention.value", "attention.branch.v"),
    ("attention.output.dense", "attention.branch.out"),
    ("layernorm_after", "feed_forward.pre"),
    ("intermediate.dense", "feed_forward.branch.up"),
    ("output.dense", "feed_forward.branch.down"),
)
"""The parts of a layer, theirs and ours."""
_AROUND = (
    ("embeddings.patch_embeddings.projection", "embed.project"),
    ("layernorm", "stack.final"),
    ("pooler.dense", "heads.pooled.transform.0.linear"),
)


def layers(theirs: str, ours: str, parts: tuple[tuple[str, str], ...] = LAYER) -> tuple[Rule, ...]:
    """Return the rules of the layers: ``encoder.layer.{i}.output.dense`` is ``stack.blocks.{i}.feed_forward...``."""
    return renames(f"{theirs}.{{i}}", f"{ours}.{{i}}", parts)


def rules(
    theirs: str, ours: str, table: str = "learned.table.weight", parts: tuple[tuple[str, str], ...] = LAYER
) -> tuple[Rule, ...]:
    """Return the rules of a bare model whose names begin with these.

    ``table`` is that of the positions, ``parts`` those of a layer.
    """
    return (
        Rule(f"{theirs}embeddings.cls_token", (f"{ours}embed.class_token",), Reshaped(2)),
        Rule(f"{theirs}embeddings.position_embeddings", (f"{ours}stack.positions.{table}",), Reshaped(1)),
        *(rename(f"{theirs}{a}.{end}", f"{ours}{b}.{end}") for a, b in _AROUND for end in ENDS),
        *layers(f"{theirs}encoder.layer", f"{ours}stack.blocks", parts),
    )
