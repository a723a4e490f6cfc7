"""What Llama's descendants, and decoders that only name their keys so, share: each part as most of them have it.

Every function returns the usual spec; the keywords are fields of that spec in which a family differs. So a family
file shows what is peculiar to it and nothing else.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from orrery.checkpoints.rules import Rule, fused, rename, renames
from orrery.families import _parts, _rotary
from orrery.families._config import Config
from orrery.families._keys import size
from orrery.models.decoder import Decoder
from orrery.nn.attention.multihead import MultiHeadAttention, ScoreSettings
from orrery.nn.block import Block
from orrery.nn.embeddings import TokenEmbedding
from orrery.nn.feedforward.gated import GatedMLP
from orrery.nn.feedforward.mlp import MLP
from orrery.nn.heads import LanguageModelHead
from orrery.nn.masks import Causal, Mask
from orrery.nn.positions.rotary import Rotary
from orrery.nn.positions.scheme import PositionSpec
from orrery.nn.spec import ModuleSpec
from orrery.nn.stack import Stack

DEFAULTS: Mapping[str, Any] = {
    "vocab_size": size(32000),
    "hidden_size": size(4096),
    "intermediate_size": size(11008),
    "num_hidden_layers": size(32),
    "num_attention_heads": size(32),
    "num_key_value_heads": size(None),
    "head_dim": size(None),
    "hidden_act": "silu",
    "max_position_embeddings": 2048,
    "attention_dropout": 0.0,
    "tie_word_embeddings": False,
    **_rotary.DEFAULTS,
}
"""The keys that nearly all of them have, with what an absent one means to Llama; a family adds what differs."""

TINY: Mapping[str, Any] = {
    "vocab_size": 61,
    "hidden_size": 24,
    "intermediate_size": 40,
    "num_hidden_layers": 2,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "max_position_embeddings": 48,
}
"""The small model of most of them; a family adds what shows what is peculiar to it."""

NARROW: Mapping[str, Any] = {**TINY, "hidden_size": 16, "intermediate_size": 24, "num_attention_heads": 4}
"""A narrower one, for families with experts or a second kind of layer."""


def head_width(c: Config) -> int:
    """Return the channels of a head, which some configurations name and others leave to a division."""
    return c.values.get("head_dim") or c.divide("hidden_size", "num_attention_heads")


def rotary(c: Config, **fields: Any) -> Rotary.Spec:
    """Return the rotary positions on all of a head; the keywords are those of ``_rotary.rotary``."""
    return _rotary.rotary(c, head_width(c), c["max_position_embeddings"], **fields)


def attention(c: Config, **fields: Any) -> MultiHeadAttention.Spec:
    """Return grouped-query attention with rotary positions and without biases."""
    heads = c["num_attention_heads"]
    usual = {
        "heads": heads,
        "kv_heads": c.values.get("num_key_value_heads") or heads,
        "head_width": head_width(c),
        "scoring": ScoreSettings(dropout=c["attention_dropout"]),
        "position": "rotary",
    }
    return MultiHeadAttention.Spec(**{**usual, **fields})


def feed_forward(c: Config, **fields: Any) -> GatedMLP.Spec:
    """Return the gated network without biases."""
    usual = {"hidden": c.values.get("intermediate_size"), "activation": c.activation("hidden_act")}
    return GatedMLP.Spec(**{**usual, **fields})


def plain_feed_forward(c: Config, **fields: Any) -> MLP.Spec:
    """Return the network without a gate and, unless told otherwise, without biases."""
    activation = fields.pop("activation", None) or c.activation("hidden_act")
    usual = {"hidden": c["intermediate_size"], "activation": activation, "bias": False}
    return MLP.Spec(**{**usual, **fields})


def pre_norm(norm: ModuleSpec, attention: ModuleSpec, feed_forward: ModuleSpec) -> Block.Spec:
    """Return a block with a norm in front of either branch."""
    return _parts.sequential({"attention": attention, "feed_forward": feed_forward}, pre=norm)


def post_norm(norm: ModuleSpec, attention: ModuleSpec, feed_forward: ModuleSpec) -> Block.Spec:
    """Return a block with a norm behind either branch and none in front, ``x + norm(branch(x))``."""
    return _parts.sequential({"attention": attention, "feed_forward": feed_forward}, post=norm)


def sandwich(norm: ModuleSpec, attention: ModuleSpec, feed_forward: ModuleSpec) -> Block.Spec:
    """Return a block with a norm in front of either branch and another behind it."""
    return _parts.sequential({"attention": attention, "feed_forward": feed_forward}, pre=norm, post=norm)


def stack(
    c: Config,
    blocks: Sequence[Block.Spec],
    norm: ModuleSpec,
    *,
    positions: Mapping[str, PositionSpec] | None = None,
    masks: Mapping[str, Mask] | None = None,
    **fields: Any,
) -> Stack.Spec:
    """Return a stack with a final norm and, unless told otherwise, one set of rotary positions and the causal mask."""
    return Stack.Spec(
        blocks=tuple(blocks),
        final=norm,
        positions={"rotary": rotary(c)} if positions is None else positions,
        masks=masks or {"causal": Causal()},
        **fields,
    )


def decoder(c: Config, stack: Stack.Spec, **head: Any) -> Decoder.Spec:
    """Return the model around a stack; the keywords are fields of its head."""
    vocabulary = c["vocab_size"]
    return Decoder.Spec(
        width=c["hidden_size"],
        context=c["max_position_embeddings"],
        embed=TokenEmbedding.Spec(vocabulary=vocabulary),
        stack=stack,
        head=LanguageModelHead.Spec(vocabulary=vocabulary, tied=c["tie_word_embeddings"], **head),
    )


LAYER, BLOCK = "model.layers.{i}", "stack.blocks.{i}"
"""What the names of a layer begin with, theirs and ours."""

PRE_NORMS = (("input_layernorm", "attention.pre"), ("post_attention_layernorm", "feed_forward.pre"))
"""The norms of a layer of the pre-norm kind."""

POST_NORMS = (
    ("post_attention_layernorm", "attention.post"),
    ("post_feedforward_layernorm", "feed_forward.post"),
)
"""The norms of a layer of the post-norm kind."""

HEAD_NORMS = tuple((f"self_attn.{x}_norm", f"attention.branch.{x}_norm.norm") for x in "qk")
"""The norms of each head of q and of k."""

QK_NORMS = tuple((f"self_attn.{x}_norm", f"attention.branch.{x}_norm") for x in "qk")
"""The norms of all heads of q together, and of k."""


def frame(*norms: tuple[str, str]) -> tuple[Rule, ...]:
    """Return the rules of everything but the branches; ``norms`` pairs their names in a layer with ours."""
    return (
        rename("model.embed_tokens.weight", "embed.token.weight"),
        *renames(LAYER, BLOCK, norms),
        *renames("model", "stack", (("norm", "final"),)),
        rename("lm_head.weight", "head.vocabulary.weight"),
    )


def projections(attention: str = "attention.branch") -> tuple[Rule, ...]:
    """Return the rules of the four projections; ``attention`` is where a block of ours keeps them."""
    parts = (("q_proj", "q"), ("k_proj", "k"), ("v_proj", "v"), ("o_proj", "out"))
    return renames(f"{LAYER}.self_attn", f"{BLOCK}.{attention}", parts)


def weights(*norms: tuple[str, str], attention: str = "attention.branch") -> tuple[Rule, ...]:
    """Return the rules of everything but the feed-forward networks: the frame and the projections."""
    return (*frame(*norms), *projections(attention))


GATED = tuple((f"{part}_proj", part) for part in ("gate", "up", "down"))
"""The matrices of a gated network, theirs and ours."""


def gated_weights(feed_forward: str = "feed_forward.branch") -> tuple[Rule, ...]:
    """Return the rules of the gated networks, which a block of ours keeps in ``feed_forward``."""
    return renames(f"{LAYER}.mlp", f"{BLOCK}.{feed_forward}", GATED)


def plain_weights(feed_forward: str = "feed_forward.branch") -> tuple[Rule, ...]:
    """Return the rules of networks without a gate."""
    return renames(f"{LAYER}.mlp", f"{BLOCK}.{feed_forward}", GATED[1:])


def fused_gated_weights() -> tuple[Rule, ...]:
    """Return the rules of gated networks without biases whose gate and up are one matrix, gate first."""
    ours = f"{BLOCK}.feed_forward.branch"
    return (
        fused(f"{LAYER}.mlp.gate_up_proj.weight", (f"{ours}.gate.weight", f"{ours}.up.weight")),
        rename(f"{LAYER}.mlp.down_proj.weight", f"{ours}.down.weight"),
    )
