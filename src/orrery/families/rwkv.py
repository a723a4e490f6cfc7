"""RWKV-4 (Peng et al. 2023): a recurrent network that is trained like a Transformer.

Peculiar to it: time mixing in the place of attention and channel mixing in that of the feed-forward network, both of
which also read the token before; a norm behind the embeddings; no positions. The context has no bound but the one in
its configuration, since all it remembers is a state of constant size.

Differs from transformers: that halves the stream every ``rescale_every`` layers when it does not train, to keep float16
from overflowing. Here nothing is halved: the norms' epsilons say the same, in training too.
"""

from collections.abc import Mapping
from typing import Any

from orrery.checkpoints.layouts import Reshaped
from orrery.checkpoints.rules import Rule, rename, renames
from orrery.families._config import Config
from orrery.families._keys import size
from orrery.models.decoder import Decoder
from orrery.nn.block import Block
from orrery.nn.embeddings import TokenEmbedding
from orrery.nn.heads import LanguageModelHead
from orrery.nn.linear.rwkv_channel_mix import RWKVChannelMix
from orrery.nn.linear.rwkv_time_mix import RWKVTimeMix
from orrery.nn.masks import RecurrentPast
from orrery.nn.norms import LayerNorm
from orrery.nn.residual import Residual
from orrery.nn.stack import Stack

ARCHITECTURE = "RwkvForCausalLM"
DEFAULTS: Mapping[str, Any] = {
    "vocab_size": size(50277),
    "context_length": size(1024),
    "hidden_size": size(4096),
    "num_hidden_layers": size(32),
    "attention_hidden_size": size(None),
    "intermediate_size": size(None),
    "layer_norm_epsilon": 1e-5,
    "rescale_every": 6,
    "tie_word_embeddings": False,
}
TINY = {"vocab_size": 61, "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2, "context_length": 48}
_ALIASES = {"max_position_embeddings": "context_length"}


def spec(config: Mapping[str, Any]) -> Decoder.Spec:
    """Return the architecture that a ``config.json`` describes."""
    c = Config("rwkv", config, DEFAULTS, aliases=_ALIASES)
    layers = c["num_hidden_layers"]
    return Decoder.Spec(
        width=c["hidden_size"],
        context=c["context_length"],
        embed=TokenEmbedding.Spec(vocabulary=c["vocab_size"]),
        stack=Stack.Spec(
            blocks=tuple(_block(c, layer) for layer in range(layers)),
            positions={},
            masks={"past": RecurrentPast()},
            start=_norm(c, c["layer_norm_epsilon"], 0),
            final=_norm(c, 1e-5, layers),
        ),
        head=LanguageModelHead.Spec(vocabulary=c["vocab_size"], tied=c["tie_word_embeddings"]),
    )


def _norm(c: Config, eps: float, layer: int) -> LayerNorm.Spec:
    """Return a norm behind so many blocks: that of ``x / 2^n`` with an epsilon e is that of x with ``4^n e``."""
    every = c["rescale_every"]
    return LayerNorm.Spec(eps=eps * 4 ** (layer // every if every > 0 else 0))


def _block(c: Config, layer: int) -> Block.Spec:
    """Return a block of both mixings."""
    width, norm = c["hidden_size"], _norm(c, c["layer_norm_epsilon"], layer)
    time = RWKVTimeMix.Spec(channels=c["attention_hidden_size"] or width)
    channel = RWKVChannelMix.Spec(hidden=c["intermediate_size"] or 4 * width)
    return Block.Spec(
        residuals={
            "time_mix": Residual.Spec(branch=time, pre=norm),
            "channel_mix": Residual.Spec(branch=channel, pre=norm),
        }
    )


_LAYER, _BLOCK = "rwkv.blocks.{i}", "stack.blocks.{i}"
_TIME, _CHANNEL = f"{_BLOCK}.time_mix.branch", f"{_BLOCK}.channel_mix.branch"


WEIGHTS: tuple[Rule, ...] = (
    rename("rwkv.embeddings.weight", "embed.token.weight"),
    *renames("rwkv.blocks.0", "stack", (("pre_ln", "start"),)),
    *renames(_LAYER, _BLOCK, (("ln1", "time_mix.pre"), ("ln2", "channel_mix.pre"))),
    *renames(f"{_LAYER}.attention", _TIME, (("key", "k"), ("value", "v"), ("receptance", "r"), ("output", "out"))),
    *renames(f"{_LAYER}.feed_forward", _CHANNEL, (("key", "k"), ("receptance", "r"), ("value", "down"))),
    rename(f"{_LAYER}.attention.time_decay", f"{_TIME}.log_decay"),
    rename(f"{_LAYER}.attention.time_first", f"{_TIME}.bonus"),
    *(
        Rule(f"{_LAYER}.{theirs}.time_mix_{name}", (f"{ours}.shift_{name[0]}.mix",), Reshaped(2))
        for theirs, ours in (("attention", _TIME), ("feed_forward", _CHANNEL))
        for name in ("key", "value", "receptance")
    ),
    *renames("rwkv", "stack", (("ln_out", "final"),)),
    rename("head.weight", "head.vocabulary.weight"),
)
