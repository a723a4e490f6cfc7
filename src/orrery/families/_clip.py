"""What CLIP's two sides have in common with each other, alone and together: keys, blocks, and names of tensors."""

from collections.abc import Mapping
from typing import Any

from orrery.checkpoints.rules import Rule, rename, renames
from orrery.errors import ModelFileError
from orrery.families import _parts
from orrery.families._config import Config
from orrery.families._keys import items, number, positive, size, token
from orrery.models.encoder import Encoder
from orrery.nn.attention.multihead import MultiHeadAttention, ScoreSettings
from orrery.nn.block import Block
from orrery.nn.elementwise import Projection
from orrery.nn.embeddings import TokenEmbedding
from orrery.nn.feedforward.mlp import MLP
from orrery.nn.heads import Last, Pooler
from orrery.nn.masks import Causal, Full
from orrery.nn.norms import LayerNorm
from orrery.nn.patches import PatchEmbedding
from orrery.nn.positions.grid import GridPositions
from orrery.nn.positions.learned import LearnedPositions
from orrery.nn.residual import Chain, Identity
from orrery.nn.row_ends import FirstOf, HighestId, RowEnd
from orrery.nn.spec import ModuleSpec
from orrery.nn.stack import Stack, repeat

_BODY: Mapping[str, Any] = {
    "num_hidden_layers": size(12),
    "layer_norm_eps": positive(1e-5),
    "attention_dropout": number(0.0),
    "hidden_act": "quick_gelu",
    "projection_dim": size(512, null=True),
    "architectures": items(),
}
TEXT: Mapping[str, Any] = {
    **_BODY,
    "vocab_size": size(49408),
    "hidden_size": size(512),
    "intermediate_size": size(2048),
    "num_attention_heads": size(8),
    "max_position_embeddings": size(77),
    "eos_token_id": token(49407),
}
PICTURES: Mapping[str, Any] = {
    **_BODY,
    "hidden_size": size(768),
    "intermediate_size": size(3072),
    "num_attention_heads": size(12),
    "num_channels": size(3),
    "image_size": size(224),
    "patch_size": size(32),
}
IGNORED = ("initializer_factor", "dropout")
TINY_TEXT: Mapping[str, Any] = {
    "vocab_size": 61, "hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 40,
    "max_position_embeddings": 48, "eos_token_id": 60, "projection_dim": 10,
}  # fmt: skip
TINY_PICTURES: Mapping[str, Any] = {
    "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 20, "image_size": 12,
    "patch_size": 4, "projection_dim": 10,
}  # fmt: skip
_FIRST_END = 2
"""The ``eos_token_id`` of CLIP's first files, which is another token's: the end is the highest id there."""


def norm(c: Config) -> LayerNorm.Spec:
    """Return the LayerNorm that all parts share."""
    return LayerNorm.Spec(eps=c["layer_norm_eps"])


def stack(c: Config, mask: str, **fields: Any) -> Stack.Spec:
    """Return pre-LN blocks over what a mask shows; the keywords are fields of the stack."""
    attention = MultiHeadAttention.Spec(
        heads=c["num_attention_heads"],
        kv_heads=c["num_attention_heads"],
        head_width=c.divide("hidden_size", "num_attention_heads"),
        biases=_parts.biases(),
        scoring=ScoreSettings(dropout=c["attention_dropout"]),
        mask=mask,
    )
    feed_forward = MLP.Spec(hidden=c["intermediate_size"], activation=c.activation("hidden_act"))
    block: Block.Spec = _parts.sequential({"attention": attention, "feed_forward": feed_forward}, pre=norm(c))
    masks = {"causal": Causal(), "full": Full()}
    return Stack.Spec(blocks=repeat(block, c["num_hidden_layers"]), masks={mask: masks[mask]}, **fields)


def texts(c: Config, heads: Mapping[str, ModuleSpec]) -> Encoder.Spec:
    """Return the side that reads texts, whose vector is the final one of the end token."""
    length = c["max_position_embeddings"]
    end: RowEnd = HighestId() if c["eos_token_id"] == _FIRST_END else FirstOf(token=_end(c))
    return Encoder.Spec(
        width=c["hidden_size"],
        context=length,
        embed=TokenEmbedding.Spec(vocabulary=c["vocab_size"]),
        stack=stack(c, "causal", positions={"learned": LearnedPositions.Spec(length=length)}, final=norm(c)),
        heads=heads,
        end=end,
    )


def _end(c: Config) -> int:
    """Return the end token.

    Raises:
        ModelFileError: there is none.
    """
    found = c["eos_token_id"]
    if found is None or found < 0:
        raise ModelFileError(f"{c.family}: eos_token_id = {found!r}, and its vector is a text's", "name the end token")
    return int(found)


def pictures(c: Config, heads: Mapping[str, ModuleSpec]) -> Encoder.Spec:
    """Return the side that reads pictures, whose vector is that of the class token behind a norm."""
    image, patch = c["image_size"], c["patch_size"]
    embed = PatchEmbedding.Spec(image=(image, image), patch=(patch, patch), channels=c["num_channels"], bias=False)
    positions = {"learned": GridPositions.Spec(grid=embed.grid)}
    return Encoder.Spec(
        width=c["hidden_size"],
        context=embed.tokens,
        embed=embed,
        stack=stack(c, "full", positions=positions, start=norm(c)),
        heads=heads,
    )


def end_vector(width: int | None = None) -> Pooler.Spec:
    """Return the head of a text's vector, projected to a width or as it is."""
    projected = Identity.Spec() if width is None else Projection.Spec(width=width, bias=False)
    return Pooler.Spec(pool=Last(), transform=projected)


def class_vector(c: Config, width: int | None = None) -> Pooler.Spec:
    """Return the head of a picture's vector, projected to a width or as it is."""
    parts = () if width is None else (Projection.Spec(width=width, bias=False),)
    return Pooler.Spec(transform=Chain.Spec(parts=(norm(c), *parts)))


_LAYER = (
    ("layer_norm1", "attention.pre"),
    ("self_attn.q_proj", "attention.branch.q"),
    ("self_attn.k_proj", "attention.branch.k"),
    ("self_attn.v_proj", "attention.branch.v"),
    ("self_attn.out_proj", "attention.branch.out"),
    ("layer_norm2", "feed_forward.pre"),
    ("mlp.fc1", "feed_forward.branch.up"),
    ("mlp.fc2", "feed_forward.branch.down"),
)


def layers(theirs: str, ours: str) -> tuple[Rule, ...]:
    """Return the rules of the layers of a side."""
    return renames(f"{theirs}encoder.layers.{{i}}", f"{ours}stack.blocks.{{i}}", _LAYER)


def around(theirs: str, pairs: tuple[tuple[str, str], ...]) -> tuple[Rule, ...]:
    """Return the rules of the norms around the layers."""
    return tuple(rename(f"{theirs}{a}.{end}", f"{b}.{end}") for a, b in pairs for end in ("weight", "bias"))


def text_rules(theirs: str, ours: str) -> tuple[Rule, ...]:
    """Return the rules of the side that reads texts."""
    return (
        rename(f"{theirs}embeddings.token_embedding.weight", f"{ours}embed.token.weight"),
        rename(f"{theirs}embeddings.position_embedding.weight", f"{ours}stack.positions.learned.table.weight"),
        *layers(theirs, ours),
        *around(theirs, (("final_layer_norm", f"{ours}stack.final"),)),
    )


def picture_rules(theirs: str, ours: str, vector: str = "") -> tuple[Rule, ...]:
    """Return the rules of the side that reads pictures; ``vector`` is the head with the norm behind the class token."""
    return (
        rename(f"{theirs}embeddings.class_embedding", f"{ours}embed.class_token"),
        rename(f"{theirs}embeddings.patch_embedding.weight", f"{ours}embed.project.weight"),
        rename(f"{theirs}embeddings.position_embedding.weight", f"{ours}stack.positions.learned.table.weight"),
        *layers(theirs, ours),
        *around(
            theirs,
            (("pre_layrnorm", f"{ours}stack.start"), ("post_layernorm", f"{ours}heads.{vector}.transform.0")),
        ),
    )


OLD: Mapping[str, str | None] = {r"embeddings\.position_ids$": None}
