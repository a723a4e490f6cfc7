"""GPT-J (Wang and Komatsuzaki 2021): the first large open decoder with parallel branches.

Peculiar to it: attention and feed-forward read the same normed stream and are added to it together; rotary positions
on the first ``rotary_dim`` channels of each head, with neighbours paired as in the paper; the attention has no biases,
the feed-forward and the head have; gelu in its tanh form; the head is a table of its own.
"""

from collections.abc import Mapping
from typing import Any

from orrery.checkpoints.rules import Rule, rename, renames
from orrery.families import _gpt, _legacy_names, _parts, _rotary
from orrery.families._config import Config
from orrery.families._keys import size
from orrery.models.decoder import Decoder
from orrery.nn.feedforward.mlp import MLP
from orrery.nn.heads import LanguageModelHead
from orrery.nn.norms import LayerNorm
from orrery.nn.positions.rotary import Rotary

ARCHITECTURE = "GPTJForCausalLM"
DEFAULTS: Mapping[str, Any] = {
    "vocab_size": size(50400),
    "n_positions": 2048,
    "n_embd": size(4096),
    "n_layer": size(28),
    "n_head": 16,
    "rotary_dim": size(64),
    "n_inner": size(None),
    "activation_function": "gelu_new",
    "resid_pdrop": 0.0,
    "embd_pdrop": 0.0,
    "attn_pdrop": 0.0,
    "layer_norm_epsilon": 1e-5,
    "tie_word_embeddings": False,
}
TINY = {"vocab_size": 61, "n_positions": 48, "n_embd": 24, "n_layer": 2, "n_head": 3, "rotary_dim": 4}
FIXED = {"rotary": True, "scale_attn_weights": True}
_IGNORED = ("summary_*",)


def spec(config: Mapping[str, Any]) -> Decoder.Spec:
    """Return the architecture that a ``config.json`` describes."""
    return decoder(Config("gptj", config, DEFAULTS, fixed=FIXED, ignored=_IGNORED))


def decoder(c: Config) -> Decoder.Spec:
    """Return the decoder that settings of GPT-J describe, for its kin too."""
    norm = LayerNorm.Spec(eps=c["layer_norm_epsilon"])
    turning = _rotary.check_turning(c.family, c["rotary_dim"], c.divide("n_embd", "n_head"))
    branches = {
        "attention": _gpt.attention(c, position="rotary"),
        "feed_forward": MLP.Spec(
            hidden=c["n_inner"] or 4 * c["n_embd"], activation=c.activation("activation_function")
        ),
    }
    return _gpt.decoder(
        c,
        _parts.parallel(branches, pre=norm, dropout=c["resid_pdrop"]),
        final=norm,
        positions={"rotary": Rotary.Spec(width=turning, interleaved=True)},
        head=LanguageModelHead.Spec(vocabulary=c["vocab_size"], tied=c["tie_word_embeddings"], bias=True),
    )


LEGACY_NAMES = _legacy_names.CAUSAL
WEIGHTS: tuple[Rule, ...] = (
    rename("transformer.wte.weight", "embed.token.weight"),
    *renames(
        "transformer.h.{i}",
        "stack.blocks.{i}.parallel",
        (
            ("ln_1", "pre"),
            *((f"attn.{x}_proj", f"branch.attention.{x}") for x in ("q", "k", "v", "out")),
            ("mlp.fc_in", "branch.feed_forward.up"),
            ("mlp.fc_out", "branch.feed_forward.down"),
        ),
    ),
    *renames("transformer", "stack", (("ln_f", "final"),)),
    *(rename(f"lm_head.{p}", f"head.vocabulary.{p}") for p in ("weight", "bias")),
)
