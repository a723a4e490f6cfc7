"""GPT-Neo (Black et al. 2021): GPT-2's architecture, every other layer of which looks back a window only.

Peculiar to it: layers take turns between global attention and a local window of 256 tokens (``attention_types`` says
in which order); the scores are not divided by the root of the head's width; q, k and v have no biases, everything
else has; learned positions; gelu in its tanh form; the head is the embedding table.
"""

from collections.abc import Mapping
from typing import Any

from orrery.checkpoints.rules import Rule, rename, renames
from orrery.errors import ModelFileError
from orrery.families import _decoders, _legacy_names, _parts
from orrery.families._config import Config
from orrery.families._keys import items, size
from orrery.models.decoder import Decoder
from orrery.nn.attention.multihead import Biases, MultiHeadAttention, ScoreSettings
from orrery.nn.block import Block
from orrery.nn.feedforward.mlp import MLP
from orrery.nn.masks import Causal, Window
from orrery.nn.norms import LayerNorm
from orrery.nn.positions.learned import LearnedPositions
from orrery.nn.residual import Dropout

ARCHITECTURE = "GPTNeoForCausalLM"
DEFAULTS: Mapping[str, Any] = {
    "vocab_size": size(50257),
    "max_position_embeddings": 2048,
    "hidden_size": size(2048),
    "num_layers": size(24),
    "num_heads": 16,
    "attention_types": [[["global", "local"], 12]],
    "attention_layers": items(),
    "intermediate_size": size(None),
    "window_size": size(256),
    "activation_function": "gelu_new",
    "resid_dropout": 0.0,
    "embed_dropout": 0.0,
    "attention_dropout": 0.0,
    "layer_norm_epsilon": 1e-5,
    "tie_word_embeddings": True,
}
TINY = {
    "vocab_size": 61,
    "max_position_embeddings": 48,
    "hidden_size": 24,
    "num_layers": 2,
    "num_heads": 3,
    "attention_types": [[["global", "local"], 1]],
    "window_size": 5,
}
_ALIASES = {"num_hidden_layers": "num_layers", "num_attention_heads": "num_heads"}
_IGNORED = ("summary_*", "classifier_dropout")


def spec(config: Mapping[str, Any]) -> Decoder.Spec:
    """Return the architecture that a ``config.json`` describes.

    Raises:
        ModelFileError: the kinds of attention are not one a layer, or not known.
    """
    c = Config("gpt_neo", config, DEFAULTS, ignored=_IGNORED, aliases=_ALIASES)
    masks = {"global": Causal(), "local": Causal() & Window(length=c["window_size"])}
    stack = _decoders.stack(
        c,
        [_block(c, kind) for kind in _kinds(c, masks)],
        LayerNorm.Spec(eps=c["layer_norm_epsilon"]),
        positions={"learned": LearnedPositions.Spec(length=c["max_position_embeddings"])},
        masks=masks,
        start=Dropout.Spec(rate=c["embed_dropout"]),
    )
    return _decoders.decoder(c, stack)


def _kinds(c: Config, known: Mapping[str, Any]) -> list[str]:
    """Return the kind of attention of every layer."""
    kinds = c["attention_layers"] or [kind for group, times in c["attention_types"] for kind in list(group) * times]
    if len(kinds) != c["num_layers"] or not set(kinds) <= set(known):
        raise ModelFileError(
            f"gpt_neo: {c['num_layers']} layers, but the kinds of attention are {', '.join(kinds)}",
            f"attention_types must name one of {', '.join(known)} for every layer",
        )
    return list(kinds)


def _block(c: Config, kind: str) -> Block.Spec:
    norm = LayerNorm.Spec(eps=c["layer_norm_epsilon"])
    attention = MultiHeadAttention.Spec(
        heads=c["num_heads"],
        kv_heads=c["num_heads"],
        head_width=c.divide("hidden_size", "num_heads"),
        biases=Biases(out=True),
        scoring=ScoreSettings(scale=1.0, dropout=c["attention_dropout"]),
        mask=kind,
    )
    hidden = c["intermediate_size"] or 4 * c["hidden_size"]
    feed_forward = MLP.Spec(hidden=hidden, activation=c.activation("activation_function"))
    branches = {"attention": attention, "feed_forward": feed_forward}
    return _parts.sequential(branches, pre=norm, dropout=c["resid_dropout"])


LEGACY_NAMES = _legacy_names.CAUSAL
WEIGHTS: tuple[Rule, ...] = (
    rename("transformer.wte.weight", "embed.token.weight"),
    rename("transformer.wpe.weight", "stack.positions.learned.table.weight"),
    *renames(
        "transformer.h.{i}",
        "stack.blocks.{i}",
        (
            ("ln_1", "attention.pre"),
            *((f"attn.attention.{x}_proj", f"attention.branch.{x}") for x in ("q", "k", "v", "out")),
            ("ln_2", "feed_forward.pre"),
            ("mlp.c_fc", "feed_forward.branch.up"),
            ("mlp.c_proj", "feed_forward.branch.down"),
        ),
    ),
    *renames("transformer", "stack", (("ln_f", "final"),)),
    rename("lm_head.weight", "head.vocabulary.weight"),
)
