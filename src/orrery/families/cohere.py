"""Command R (Cohere 2024): attention and feed-forward side by side.

Peculiar to it: one LayerNorm without bias in front of both branches, ``x + attention(norm(x)) + ffn(norm(x))``;
rotary positions that pair neighbouring channels; logits multiplied by ``logit_scale``; in Command R+ a LayerNorm on
each head of q and of k, each with a gain of its own, which its files hold as one matrix.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from orrery.checkpoints.layouts import Stacked
from orrery.checkpoints.rules import Rule
from orrery.families import _decoders, _parts
from orrery.families._config import Config
from orrery.families._keys import positive, size
from orrery.models.decoder import Decoder
from orrery.nn.norms import LayerNorm, PerHeadNorm
from orrery.nn.residual import Identity, Scale
from orrery.nn.stack import repeat

ARCHITECTURE = "CohereForCausalLM"
DEFAULTS: Mapping[str, Any] = {
    **_decoders.DEFAULTS,
    "vocab_size": size(256000),
    "hidden_size": size(8192),
    "intermediate_size": size(22528),
    "num_hidden_layers": size(40),
    "num_attention_heads": size(64),
    "max_position_embeddings": 8192,
    "logit_scale": 0.0625,
    "use_qk_norm": False,
    "layer_norm_eps": 1e-5,
    "attention_bias": False,
    "tie_word_embeddings": True,
    "rope_theta": positive(500_000.0),
}
TINY = {**_decoders.TINY, "use_qk_norm": True}
_IGNORED = ("model_max_length",)


def _read(config: Mapping[str, Any]) -> Config:
    return Config("cohere", config, DEFAULTS, ignored=_IGNORED)


def spec(config: Mapping[str, Any]) -> Decoder.Spec:
    """Return the architecture that a ``config.json`` describes."""
    c = _read(config)
    eps = c["layer_norm_eps"]
    head_norm = PerHeadNorm.Spec(head_width=_decoders.head_width(c), eps=eps) if c["use_qk_norm"] else Identity.Spec()
    attention = _decoders.attention(c, biases=_parts.biases(c["attention_bias"]), qk_norm=head_norm)
    norm = LayerNorm.Spec(eps=eps, bias=False)
    block = _parts.parallel({"attention": attention, "feed_forward": _decoders.feed_forward(c)}, pre=norm)
    neighbours = replace(_decoders.rotary(c), interleaved=True)
    stack = _decoders.stack(c, repeat(block, c["num_hidden_layers"]), norm, positions={"rotary": neighbours})
    return _decoders.decoder(c, stack, cap=Scale.Spec(factor=c["logit_scale"]))


def WEIGHTS(config: Mapping[str, Any]) -> tuple[Rule, ...]:  # noqa: N802 - the name of a family's rules
    """Return the rules; the matrix of gains holds as many rows as there are heads."""
    c = _read(config)
    heads = {"q": c["num_attention_heads"], "k": c["num_key_value_heads"] or c["num_attention_heads"]}
    ours = f"{_decoders.BLOCK}.parallel.branch.attention"
    return (
        *_decoders.weights(("input_layernorm", "parallel.pre"), attention="parallel.branch.attention"),
        *_decoders.gated_weights("parallel.branch.feed_forward"),
        *(
            Rule(
                f"{_decoders.LAYER}.self_attn.{x}_norm.weight",
                tuple(f"{ours}.{x}_norm.gains.{head}" for head in range(heads[x])),
                Stacked(),
            )
            for x in "qk"
        ),
    )
