"""What SigLIP's two sides have in common with each other, alone and together: keys, blocks, and names of tensors."""

from collections.abc import Mapping
from typing import Any

from orrery.checkpoints.layouts import Reshaped
from orrery.checkpoints.rules import Rule, fused, rename, renames
from orrery.families import _clip
from orrery.families._config import Config
from orrery.families._keys import items, number, positive, size, token
from orrery.models.encoder import Encoder
from orrery.nn.attention_pooler import AttentionPooler
from orrery.nn.elementwise import Activation, Projection
from orrery.nn.embeddings import TokenEmbedding
from orrery.nn.heads import Last, Pooler
from orrery.nn.patches import PlainPatches
from orrery.nn.positions.grid import GridPositions
from orrery.nn.positions.learned import LearnedPositions
from orrery.nn.residual import Chain
from orrery.nn.spec import ModuleSpec

_BODY: Mapping[str, Any] = {
    "hidden_size": size(768),
    "intermediate_size": size(3072),
    "num_hidden_layers": size(12),
    "num_attention_heads": size(12),
    "hidden_act": "gelu_pytorch_tanh",
    "layer_norm_eps": positive(1e-6),
    "attention_dropout": number(0.0),
    "architectures": items(),
}
TEXT: Mapping[str, Any] = {
    **_BODY,
    "vocab_size": size(32000),
    "max_position_embeddings": size(64),
    "projection_size": size(None, null=True),
    "pad_token_id": token(1),
}
PICTURES: Mapping[str, Any] = {
    **_BODY,
    "num_channels": size(3),
    "image_size": size(224),
    "patch_size": size(16),
    "vision_use_head": True,
}
TINY_TEXT: Mapping[str, Any] = {
    "vocab_size": 61, "hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 40,
    "max_position_embeddings": 48, "projection_size": 16,
}  # fmt: skip
TINY_PICTURES: Mapping[str, Any] = {
    "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 20, "image_size": 12,
    "patch_size": 4,
}  # fmt: skip


def texts(c: Config, heads: Mapping[str, ModuleSpec]) -> Encoder.Spec:
    """Return the side that reads texts, every token the whole row."""
    length = c["max_position_embeddings"]
    positions = {"learned": LearnedPositions.Spec(length=length)}
    return Encoder.Spec(
        width=c["hidden_size"],
        context=length,
        embed=TokenEmbedding.Spec(vocabulary=c["vocab_size"]),
        stack=_clip.stack(c, "full", positions=positions, final=_clip.norm(c)),
        heads=heads,
    )


def pictures(c: Config, heads: Mapping[str, ModuleSpec]) -> Encoder.Spec:
    """Return the side that reads pictures, without a class token."""
    image, patch = c["image_size"], c["patch_size"]
    embed = PlainPatches.Spec(image=(image, image), patch=(patch, patch), channels=c["num_channels"])
    positions = {"learned": GridPositions.Spec(grid=embed.grid)}
    return Encoder.Spec(
        width=c["hidden_size"],
        context=embed.tokens,
        embed=embed,
        stack=_clip.stack(c, "full", positions=positions, final=_clip.norm(c)),
        heads=heads,
    )


def width_of(c: Config) -> int:
    """Return how wide the vector of a text is."""
    return int(c["projection_size"] or c["hidden_size"])


def last_vector(c: Config) -> Pooler.Spec:
    """Return the head of a text's vector, that of its last token."""
    return Pooler.Spec(pool=Last(), transform=Projection.Spec(width=width_of(c)))


def read_vector(c: Config) -> AttentionPooler.Spec:
    """Return the head of a picture's vector, which a learned query reads."""
    layers = (
        Projection.Spec(width=c["intermediate_size"]),
        Activation.Spec(activation=c.activation("hidden_act")),
        Projection.Spec(width=c["hidden_size"]),
    )
    return AttentionPooler.Spec(
        heads=c["num_attention_heads"], norm=_clip.norm(c), feed_forward=Chain.Spec(parts=layers)
    )


_ENDS = ("weight", "bias")
_POOLER = (
    ("attention.out_proj", "out"),
    ("layernorm", "norm"),
    ("mlp.fc1", "feed_forward.0.linear"),
    ("mlp.fc2", "feed_forward.2.linear"),
)


def text_rules(theirs: str, ours: str, vector: str) -> tuple[Rule, ...]:
    """Return the rules of the side that reads texts; ``vector`` is the head of its last token."""
    return (
        *_clip.text_rules(theirs, ours),
        *(rename(f"{theirs}head.{end}", f"{ours}heads.{vector}.transform.linear.{end}") for end in _ENDS),
    )


def picture_rules(theirs: str, ours: str, vector: str) -> tuple[Rule, ...]:
    """Return the rules of the side that reads pictures; ``vector`` is the head of the learned query."""
    head, file = f"{ours}heads.{vector}", f"{theirs}head"
    return (
        rename(f"{theirs}embeddings.position_embedding.weight", f"{ours}stack.positions.learned.table.weight"),
        *renames(f"{theirs}embeddings", f"{ours}embed", (("patch_embedding", "project"),)),
        *_clip.layers(theirs, ours),
        *_clip.around(theirs, (("post_layernorm", f"{ours}stack.final"),)),
        Rule(f"{file}.probe", (f"{head}.query.weight",), Reshaped(1)),
        *(fused(f"{file}.attention.in_proj_{end}", tuple(f"{head}.{x}.{end}" for x in "qkv")) for end in _ENDS),
        *renames(file, head, _POOLER),
    )
