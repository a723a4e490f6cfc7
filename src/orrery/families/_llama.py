"""What the descendants of Llama share: each part as most of them have it, read from the keys that they all have.

Every function returns the usual spec; the keywords are fields of that spec in which a family differs. So a family
file shows what is peculiar to it and nothing else.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from orrery.checkpoints.rules import Rule, rename, renames
from orrery.families import _rotary
from orrery.families._config import Config
from orrery.models.decoder import Decoder
from orrery.nn.attention.multihead import Biases, MultiHeadAttention, Scoring
from orrery.nn.block import Block
from orrery.nn.embeddings import TokenEmbedding
from orrery.nn.feedforward.gated import GatedMLP
from orrery.nn.heads import LanguageModelHead
from orrery.nn.masks import Causal, Mask
from orrery.nn.positions.rotary import Rotary
from orrery.nn.positions.scheme import PositionSpec
from orrery.nn.residual import Residual
from orrery.nn.spec import ModuleSpec
from orrery.nn.stack import Stack


def head_width(c: Config) -> int:
    """Return the channels of a head, which some configurations name and others leave to a division."""
    return c["head_dim"] or c.divide("hidden_size", "num_attention_heads")


def rotary(c: Config, *, share: float = 1.0) -> Rotary.Spec:
    """Return the rotary positions; ``share`` of a head turns."""
    return _rotary.rotary(c, head_width(c), c["max_position_embeddings"], share=share)


def biases(on: bool) -> Biases:
    """Return a bias on all four projections of an attention, or on none."""
    return Biases(q=on, k=on, v=on, out=on)


def attention(c: Config, **fields: Any) -> MultiHeadAttention.Spec:
    """Return grouped-query attention with rotary positions and without biases."""
    heads = c["num_attention_heads"]
    usual = {
        "heads": heads,
        "kv_heads": c["num_key_value_heads"] or heads,
        "head_width": head_width(c),
        "scoring": Scoring(dropout=c["attention_dropout"]),
        "position": "rotary",
    }
    return MultiHeadAttention.Spec(**{**usual, **fields})


def feed_forward(c: Config, **fields: Any) -> GatedMLP.Spec:
    """Return the gated network without biases."""
    usual = {"hidden": c["intermediate_size"], "activation": c.activation("hidden_act")}
    return GatedMLP.Spec(**{**usual, **fields})


def pre_norm(norm: ModuleSpec, attention: ModuleSpec, feed_forward: ModuleSpec) -> Block.Spec:
    """Return a block with a norm in front of either branch."""
    branches = {"attention": attention, "feed_forward": feed_forward}
    return Block.Spec(residuals={name: Residual.Spec(branch=branch, pre=norm) for name, branch in branches.items()})


def sandwich(norm: ModuleSpec, attention: ModuleSpec, feed_forward: ModuleSpec) -> Block.Spec:
    """Return a block with a norm in front of either branch and another behind it."""
    branches = {"attention": attention, "feed_forward": feed_forward}
    return Block.Spec(
        residuals={name: Residual.Spec(branch=branch, pre=norm, post=norm) for name, branch in branches.items()}
    )


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
        positions=positions or {"rotary": rotary(c)},
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


def weights(*norms: tuple[str, str], attention: str = "attention.branch") -> tuple[Rule, ...]:
    """Return the rules of everything but the feed-forward networks; ``norms`` pairs their names in a layer with ours.

    ``attention`` is where a block of ours keeps it.
    """
    return (
        rename("model.embed_tokens.weight", "embed.token.weight"),
        *renames(
            f"{LAYER}.self_attn",
            f"{BLOCK}.{attention}",
            (("q_proj", "q"), ("k_proj", "k"), ("v_proj", "v"), ("o_proj", "out")),
        ),
        *renames(LAYER, BLOCK, norms, ends=("weight",)),
        rename("model.norm.weight", "stack.final.weight"),
        rename("lm_head.weight", "head.vocabulary.weight"),
    )


def gated_weights(feed_forward: str = "feed_forward.branch") -> tuple[Rule, ...]:
    """Return the rules of the gated networks, which a block of ours keeps in ``feed_forward``."""
    parts = ((f"{part}_proj", part) for part in ("gate", "up", "down"))
    return renames(f"{LAYER}.mlp", f"{BLOCK}.{feed_forward}", parts)


PRE_NORMS = (("input_layernorm", "attention.pre"), ("post_attention_layernorm", "feed_forward.pre"))
"""The norms of a layer of the pre-norm kind."""
