"""ViT (Dosovitskiy et al. 2021): an image is worth sixteen by sixteen words.

Peculiar to it: patches in place of tokens, behind a learned class token; learned positions, as many as an image has
patches and one more; pre-LN as in GPT-2, with exact gelu, and a norm at the end; the class comes from the final vector
of the class token, which a bare model pools by a tanh layer as BERT does.

Differs from the reference: a picture of another size is read with positions interpolated to it, where the reference
asks for a flag (``interpolate_pos_encoding``).
"""

from collections.abc import Mapping
from typing import Any

from orrery.checkpoints.layouts import Reshaped
from orrery.checkpoints.rules import Rule, rename
from orrery.errors import ModelFileError
from orrery.families import _heads
from orrery.families._config import Config
from orrery.families._keys import count, size
from orrery.models.encoder import Encoder
from orrery.nn.attention.multihead import Biases, MultiHeadAttention, ScoreSettings
from orrery.nn.block import Block
from orrery.nn.feedforward.mlp import MLP
from orrery.nn.heads import Pooler, SequenceHead
from orrery.nn.masks import Full
from orrery.nn.norms import LayerNorm
from orrery.nn.patches import PatchEmbedding
from orrery.nn.positions.grid import GridPositions
from orrery.nn.residual import Dropout, Residual
from orrery.nn.spec import ModuleSpec
from orrery.nn.stack import Stack, repeat

ARCHITECTURE = "ViTForImageClassification"
DEFAULTS: Mapping[str, Any] = {
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
    "pooler_output_size": count(None),
    "pooler_act": "tanh",
    **_heads.DEFAULTS,
}
TINY = {
    "hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 40, "image_size": 12,
    "patch_size": 4,
}  # fmt: skip
_IGNORED = ("encoder_stride",)


def spec(config: Mapping[str, Any]) -> Encoder.Spec:
    """Return the architecture that a ``config.json`` describes."""
    c = Config("vit", config, DEFAULTS, ignored=_IGNORED)
    norm, biased = LayerNorm.Spec(eps=c["layer_norm_eps"]), c["qkv_bias"]
    attention = MultiHeadAttention.Spec(
        heads=c["num_attention_heads"],
        kv_heads=c["num_attention_heads"],
        head_width=c.divide("hidden_size", "num_attention_heads"),
        biases=Biases(q=biased, k=biased, v=biased, out=True),
        scoring=ScoreSettings(dropout=c["attention_probs_dropout_prob"]),
        mask="all",
    )
    feed_forward = MLP.Spec(hidden=c["intermediate_size"], activation=c.activation("hidden_act"))
    dropout = c["hidden_dropout_prob"]
    residuals = {
        "attention": Residual.Spec(branch=attention, pre=norm, dropout=dropout),
        "feed_forward": Residual.Spec(branch=feed_forward, pre=norm, dropout=dropout),
    }
    image, patch = c["image_size"], c["patch_size"]
    embed = PatchEmbedding.Spec(image=(image, image), patch=(patch, patch), channels=c["num_channels"])
    return Encoder.Spec(
        width=c["hidden_size"],
        context=embed.tokens,
        embed=embed,
        stack=Stack.Spec(
            blocks=repeat(Block.Spec(residuals=residuals), c["num_hidden_layers"]),
            final=norm,
            positions={"learned": GridPositions.Spec(grid=embed.grid)},
            masks={"all": Full()},
            start=Dropout.Spec(rate=dropout),
        ),
        heads=_answers(c),
    )


def _answers(c: Config) -> Mapping[str, ModuleSpec]:
    pooler = _heads.transform(c["pooler_output_size"] or c["hidden_size"], c.activation("pooler_act"))
    known: Mapping[str, Mapping[str, ModuleSpec]] = {
        ARCHITECTURE: {"sequence": SequenceHead.Spec(**_heads.of_row(c))},
        "ViTModel": {"pooled": Pooler.Spec(transform=pooler)},
    }
    named = (c["architectures"] or [ARCHITECTURE])[0]
    if named not in known:
        raise ModelFileError(f"vit: the architecture {named!r} is not known", f"known: {', '.join(known)}")
    return known[named]


_PARTS = (
    ("embeddings.patch_embeddings.projection", "embed.project"),
    ("encoder.layer.{i}.layernorm_before", "stack.blocks.{i}.attention.pre"),
    ("encoder.layer.{i}.attention.attention.query", "stack.blocks.{i}.attention.branch.q"),
    ("encoder.layer.{i}.attention.attention.key", "stack.blocks.{i}.attention.branch.k"),
    ("encoder.layer.{i}.attention.attention.value", "stack.blocks.{i}.attention.branch.v"),
    ("encoder.layer.{i}.attention.output.dense", "stack.blocks.{i}.attention.branch.out"),
    ("encoder.layer.{i}.layernorm_after", "stack.blocks.{i}.feed_forward.pre"),
    ("encoder.layer.{i}.intermediate.dense", "stack.blocks.{i}.feed_forward.branch.up"),
    ("encoder.layer.{i}.output.dense", "stack.blocks.{i}.feed_forward.branch.down"),
    ("layernorm", "stack.final"),
    ("pooler.dense", "heads.pooled.transform.0.linear"),
)


def WEIGHTS(config: Mapping[str, Any]) -> tuple[Rule, ...]:  # noqa: N802 - the name of a family's rules
    """Return the rules of the files; a bare model's names begin without ``vit``."""
    bare = "ViTModel" in (config.get("architectures") or ())
    head = (rename(f"classifier.{end}", f"heads.sequence.labels.{end}") for end in ("weight", "bias"))
    return (*rules("" if bare else "vit.", ""), *head)


def rules(theirs: str, ours: str) -> tuple[Rule, ...]:
    """Return the rules of a bare model whose names begin with these."""
    return (
        Rule(f"{theirs}embeddings.cls_token", (f"{ours}embed.class_token",), Reshaped(2)),
        Rule(f"{theirs}embeddings.position_embeddings", (f"{ours}stack.positions.learned.table.weight",), Reshaped(1)),
        *(rename(f"{theirs}{a}.{end}", f"{ours}{b}.{end}") for a, b in _PARTS for end in ("weight", "bias")),
    )
