"""BLIP (Li et al. 2022): a ViT sees, and a causal BERT that looks at it in every block writes the caption.

Peculiar to it: queries, keys and values of the seeing side are one matrix, and its final norm stands behind the last
block; the writing side has BERT's blocks without token types, with a cross-attention to vectors as wide as the seeing
side; a caption begins with a token of its own (``[DEC]``) and ends at the separator, whatever token
generation_config.json names, as the reference writes.

Built is the captioner. The classes that answer questions and that compare texts with pictures are refused by name.
"""

from collections.abc import Mapping
from typing import Any

from orrery.checkpoints.layouts import Reshaped
from orrery.checkpoints.rules import Rule, fused, rename, renames
from orrery.families import _captioners, _clip, _heads, _seq2seq, _vit
from orrery.families._config import Config
from orrery.families._keys import items, plain, size, table, token
from orrery.models.encoder import Encoder
from orrery.models.encoder_decoder import EncoderDecoder
from orrery.nn.embeddings import TokenEmbedding
from orrery.nn.patches import PatchEmbedding
from orrery.nn.positions.grid import GridPositions
from orrery.nn.residual import Identity

ARCHITECTURE = "BlipForConditionalGeneration"
PICTURES: Mapping[str, Any] = {
    "hidden_size": size(768),
    "intermediate_size": size(3072),
    "num_hidden_layers": size(12),
    "num_attention_heads": size(12),
    "image_size": size(384),
    "patch_size": size(16),
    "hidden_act": "gelu",
    "layer_norm_eps": 1e-5,
    "attention_dropout": 0.0,
}
TEXT: Mapping[str, Any] = {
    "vocab_size": size(30524),
    "hidden_size": size(768),
    "intermediate_size": size(3072),
    "num_hidden_layers": size(12),
    "num_attention_heads": size(8),
    "max_position_embeddings": size(512),
    "hidden_act": "gelu",
    "layer_norm_eps": 1e-12,
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
    "tie_word_embeddings": True,
    "bos_token_id": token(30522),
    "sep_token_id": token(102),
}
DEFAULTS: Mapping[str, Any] = {
    "text_config": table({}),
    "vision_config": table({}),
    "tie_word_embeddings": True,
    "architectures": items(),
}
TINY: Mapping[str, Any] = {
    "text_config": {
        "vocab_size": 61, "hidden_size": 24, "intermediate_size": 40, "num_hidden_layers": 2, "num_attention_heads": 3,
        "max_position_embeddings": 48, "bos_token_id": 1, "sep_token_id": 2,
    },
    "vision_config": {
        "hidden_size": 16, "intermediate_size": 20, "num_hidden_layers": 2, "num_attention_heads": 2, "image_size": 12,
        "patch_size": 4,
    },
}  # fmt: skip
_UNREAD = ("projection_dim", "label_smoothing", "initializer_factor", "encoder_hidden_size", "dropout")
"""Keys of the classes that compare, of losses and of fresh weights.

What the writer looks at is as wide as the seeing side, whatever ``encoder_hidden_size`` says, as in the reference.
"""
_WHOLE = ("logit_scale_init_value", "image_text_hidden_size")
_OLD = {"text_config_dict": None, "vision_config_dict": None}
"""Copies of the parts in the first files; where they say anything, it is refused."""


def spec(config: Mapping[str, Any]) -> EncoderDecoder.Spec:
    """Return the architecture that a ``config.json`` describes."""
    c = Config("blip", config, DEFAULTS, fixed=_OLD, ignored=(*_UNREAD, *_WHOLE))
    _vit.chosen(c, ARCHITECTURE, {ARCHITECTURE: {}})
    seeing = _seeing(
        Config("blip: vision_config", c["vision_config"], PICTURES, fixed={"num_channels": 3}, ignored=_UNREAD)
    )
    text = {**c["text_config"], "tie_word_embeddings": _tied(config)}
    texts = Config("blip: text_config", text, TEXT, fixed={"is_decoder": True}, ignored=_UNREAD)
    embed = TokenEmbedding.Spec(vocabulary=texts["vocab_size"])
    looks = None if seeing.width == texts["hidden_size"] else seeing.width
    writer = _captioners.causal_bert(texts, embed, looks)
    return EncoderDecoder.Spec(
        width=writer.width,
        context=writer.context,
        reader=seeing,
        projection=Identity.Spec(),
        target=writer.embed,
        decoder=writer.stack,
        head=writer.head,
        start=_seq2seq.start_token(texts, "bos_token_id"),
    )


def _tied(config: Mapping[str, Any]) -> bool:
    """Say whether the writer's head is its table: as in the reference, where the whole file or its part says so."""
    parts = (config, config.get("text_config") or {})
    return any(part.get("tie_word_embeddings", True) for part in parts)


def _seeing(c: Config) -> Encoder.Spec:
    """Return the side that reads a picture."""
    image, patch = c["image_size"], c["patch_size"]
    embed = PatchEmbedding.Spec(image=(image, image), patch=(patch, patch), channels=3)
    positions = {"learned": GridPositions.Spec(grid=embed.grid)}
    stack = _clip.stack(c, "full", positions=positions, final=_clip.norm(c))
    return Encoder.Spec(width=c["hidden_size"], context=embed.tokens, embed=embed, stack=stack, heads={})


def ENDS(config: Mapping[str, Any]) -> tuple[int, ...]:  # noqa: N802 - the name of a family's end tokens
    """Return the separator, at which a caption ends."""
    end = {**plain(TEXT), **config.get("text_config", {})}["sep_token_id"]
    return () if end is None else (int(end),)


_LAYER = (
    ("layer_norm1", "attention.pre"),
    ("self_attn.projection", "attention.branch.out"),
    ("layer_norm2", "feed_forward.pre"),
    ("mlp.fc1", "feed_forward.branch.up"),
    ("mlp.fc2", "feed_forward.branch.down"),
)
_ATTENTION = "reader.stack.blocks.{i}.attention.branch"


def WEIGHTS(config: Mapping[str, Any]) -> tuple[Rule, ...]:  # noqa: N802 - the name of a family's rules
    """Return the rules of the files."""
    seen, ends = "vision_model", ("weight", "bias")
    return (
        Rule(f"{seen}.embeddings.class_embedding", ("reader.embed.class_token",), Reshaped(2)),
        Rule(f"{seen}.embeddings.position_embedding", ("reader.stack.positions.learned.table.weight",), Reshaped(1)),
        *(rename(f"{seen}.embeddings.patch_embedding.{end}", f"reader.embed.project.{end}") for end in ends),
        *(
            fused(f"{seen}.encoder.layers.{{i}}.self_attn.qkv.{end}", tuple(f"{_ATTENTION}.{of}.{end}" for of in "qkv"))
            for end in ends
        ),
        *renames(f"{seen}.encoder.layers.{{i}}", "reader.stack.blocks.{i}", _LAYER),
        *(rename(f"{seen}.post_layernorm.{end}", f"reader.stack.final.{end}") for end in ends),
        *_captioners.bert_rules("text_decoder.", tied=_tied(config)),
    )


def LEGACY_NAMES(config: Mapping[str, Any]) -> Mapping[str, str | None]:  # noqa: N802 - the name of a family's names
    """Return the names of old files, which keep numbered places, and a tied head's bias twice."""
    twice = _heads.old_bias("text_decoder.cls.predictions", tied=_tied(config))
    return {r"embeddings\.position_ids$": None, **twice}
