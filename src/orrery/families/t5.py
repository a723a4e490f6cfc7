"""T5 (Raffel et al. 2020): every task as text in, text out; v1.0, and v1.1 with its descendants (Flan, byT5, UL2).

Peculiar to it: RMSNorm in front of each sublayer and at the end of each stack; no biases; scores without
``1 / sqrt(C)``; positions as one learned bias a stack, by buckets of the distance, which the files keep in the first
block; the heads' channels need not add up to the width. v1.0 has relu, and its head is the embedding table, scaled by
``1 / sqrt(D)``. v1.1 has a gated gelu, and a head of its own without a scale (Shazeer 2020).

Differs from the reference in training only: no dropout between the two feed-forward matrices.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from orrery.checkpoints.rules import Rule, rename, renames
from orrery.errors import ModelFileError
from orrery.families import _parts
from orrery.families._config import ACTIVATIONS, Config
from orrery.families._keys import size, token
from orrery.families._seq2seq import STACKS, reader, start_token
from orrery.models.encoder_decoder import EncoderDecoder
from orrery.nn.attention.multihead import MultiHeadAttention, ScoreSettings
from orrery.nn.attention.sources import CrossSource
from orrery.nn.embeddings import TokenEmbedding
from orrery.nn.feedforward.gated import GatedMLP
from orrery.nn.feedforward.mlp import MLP
from orrery.nn.heads import LanguageModelHead
from orrery.nn.masks import Causal, Full, Mask
from orrery.nn.norms import RMSNorm
from orrery.nn.positions.relative import Backward, BothWays, Buckets, RelativeBias
from orrery.nn.residual import Chain, Dropout, Identity, Scale
from orrery.nn.spec import ModuleSpec
from orrery.nn.stack import Stack, repeat

ARCHITECTURE = "T5ForConditionalGeneration"
DEFAULTS: Mapping[str, Any] = {
    "vocab_size": size(32128),
    "d_model": size(512),
    "d_kv": size(64),
    "d_ff": size(2048),
    "num_layers": size(6),
    "num_decoder_layers": size(None),
    "num_heads": 8,
    "relative_attention_num_buckets": size(32),
    "relative_attention_max_distance": size(128),
    "dropout_rate": 0.1,
    "layer_norm_epsilon": 1e-6,
    "feed_forward_proj": "relu",
    "dense_act_fn": "relu",
    "is_gated_act": False,
    "tie_word_embeddings": True,
    "scale_decoder_outputs": True,
    "decoder_start_token_id": token(None),
    "pad_token_id": token(0),
    "n_positions": 512,
}
TINY = {
    "vocab_size": 61, "d_model": 24, "d_kv": 6, "d_ff": 40, "num_layers": 2, "num_decoder_layers": 3, "num_heads": 3,
    "relative_attention_num_buckets": 8, "relative_attention_max_distance": 12,
}  # fmt: skip
FACTOR = "initializer_factor"
"""Of all deviations of new matrices; no forward pass reads it."""
FIXED = {"is_decoder": False, "is_encoder_decoder": True}
IGNORED = ("classifier_dropout", FACTOR)
ALIASES = {
    "hidden_size": "d_model",
    "num_attention_heads": "num_heads",
    "num_hidden_layers": "num_layers",
    "head_dim": "d_kv",
}


def spec(config: Mapping[str, Any]) -> EncoderDecoder.Spec:
    """Return the architecture that a ``config.json`` describes."""
    return assemble(_config(config))


def _config(config: Mapping[str, Any]) -> Config:
    config = settled(config, DEFAULTS["feed_forward_proj"])
    # v1.1 unties the head and drops its scale; newer files tell the two apart.
    config = {"scale_decoder_outputs": config.get("tie_word_embeddings") is not False, **config}
    return Config("t5", config, DEFAULTS, fixed=FIXED, ignored=IGNORED, aliases=ALIASES)


def INITIAL_STD(config: Mapping[str, Any]) -> Mapping[str, float]:  # noqa: N802 - how a family draws new matrices
    """Return what new matrices are drawn with."""
    return drawn(_config(config), config.get(FACTOR, 1.0))


def drawn(c: Config, factor: float) -> Mapping[str, float]:
    """Return T5's deviations: ``1 / sqrt(inputs)``, for words 1, for queries less; all times ``initializer_factor``.

    Its attention does not divide by ``sqrt(d_kv)``, so its queries are drawn that much narrower; its tied head divides
    by ``sqrt(d_model)``, so its words are not. As in the code of Raffel et al. 2020. Differs from transformers: a head
    that scales nothing (v1.1, mT5) is drawn with ``1 / sqrt(d_model)``, as in t5x, where transformers has 1, and with
    it logits ``sqrt(d_model)`` times as wide.
    """
    width, inner = c["d_model"], c["num_heads"] * c["d_kv"]
    tied, scaled = c["tie_word_embeddings"], c["scale_decoder_outputs"]
    words = 1.0 if scaled or not tied else width**-0.5
    deviations = {
        r"\bembed\.token$": words,
        r"\bvocabulary$": words if tied else width**-0.5,
        r"\bq$": (width * c["d_kv"]) ** -0.5,
        r"\bbranch\.out$": inner**-0.5,
        r"\bdown$": c["d_ff"] ** -0.5,
        r"\b(k|v|up|gate|relative\.table)$": width**-0.5,
    }
    return {pattern: factor * deviation for pattern, deviation in deviations.items()}


def assemble(c: Config) -> EncoderDecoder.Spec:
    """Return T5's architecture; its kin differ in defaults."""
    buckets = _buckets(c)
    attention, cross, feed_forward = (
        _attention(c),
        _attention(c, source=CrossSource.Spec(), position="none"),
        _feed_forward(c),
    )
    reads = {"attention": replace(attention, mask="all"), "feed_forward": feed_forward}
    writes = {"attention": attention, "cross": cross, "feed_forward": feed_forward}
    return EncoderDecoder.Spec(
        width=c["d_model"],
        context=c["n_positions"],
        reader=reader(
            c["d_model"],
            c["n_positions"],
            TokenEmbedding.Spec(vocabulary=c["vocab_size"]),
            _stack(c, c["num_layers"], reads, {"all": Full()}, BothWays(**buckets)),
        ),
        decoder=_stack(c, _decoder_layers(c), writes, {"causal": Causal()}, Backward(**buckets)),
        head=LanguageModelHead.Spec(
            vocabulary=c["vocab_size"],
            tied=c["tie_word_embeddings"],
            transform=Scale.Spec(factor=c["d_model"] ** -0.5) if c["scale_decoder_outputs"] else Identity.Spec(),
        ),
        start=start_token(c, "decoder_start_token_id", "pad_token_id"),
    )


def _buckets(c: Config) -> dict[str, int]:
    """Return the numbers of the distances' buckets.

    Raises:
        ModelFileError: too few, or so many that the logarithmic ones would begin behind the furthest distance.
    """
    count, furthest = c["relative_attention_num_buckets"], c["relative_attention_max_distance"]
    if count < 4 or furthest <= count // 2:
        raise ModelFileError(
            f"{c.family}: relative_attention_max_distance = {furthest} with relative_attention_num_buckets = {count}",
            "half of the buckets are for one distance each: there must be four, and a distance beyond those",
        )
    return {"count": count, "furthest": furthest}


def _decoder_layers(c: Config) -> int:
    return c["num_layers"] if c["num_decoder_layers"] is None else c["num_decoder_layers"]


def _attention(c: Config, **slots: Any) -> MultiHeadAttention.Spec:
    return MultiHeadAttention.Spec(
        heads=c["num_heads"],
        kv_heads=c["num_heads"],
        head_width=c["d_kv"],
        scoring=ScoreSettings(scale=1.0, dropout=c["dropout_rate"]),
        **{"position": "relative", **slots},
    )


def _feed_forward(c: Config) -> ModuleSpec:
    hidden, activation = c["d_ff"], c.activation("dense_act_fn")
    if c["is_gated_act"]:
        return GatedMLP.Spec(hidden=hidden, activation=activation)
    return MLP.Spec(hidden=hidden, activation=activation, bias=False)


def settled(config: Mapping[str, Any], usual: str) -> Mapping[str, Any]:
    """Return a configuration that says in two keys what ``feed_forward_proj`` says in one word, unless it does already.

    ``usual`` is the word of an absent one; ``gated-gelu`` has always meant gelu in its tanh form. A head that is
    neither said to be tied nor said not to be is.

    Raises:
        ModelFileError: a word that is neither an activation nor ``gated-`` and one.
    """
    word = config.get("feed_forward_proj", usual)
    if not isinstance(word, str):
        return config
    gate, _, activation = word.rpartition("-")
    if gate not in ("", "gated") or not ("dense_act_fn" in config or activation in ACTIVATIONS):
        raise ModelFileError(
            f"feed_forward_proj = {word!r} is not known", f"known: {', '.join(ACTIVATIONS)}, and gated- one"
        )
    said = {"dense_act_fn": "gelu_new" if word == "gated-gelu" else activation, "is_gated_act": gate == "gated"}
    return {**said, **{key: value for key, value in config.items() if (key, value) != ("tie_word_embeddings", None)}}


def _stack(
    c: Config, depth: int, branches: Mapping[str, ModuleSpec], masks: Mapping[str, Mask], buckets: Buckets
) -> Stack.Spec:
    norm, dropout = RMSNorm.Spec(eps=c["layer_norm_epsilon"]), c["dropout_rate"]
    return Stack.Spec(
        blocks=repeat(_parts.sequential(branches, pre=norm, dropout=dropout), depth),
        final=Chain.Spec(parts=(norm, Dropout.Spec(rate=dropout))),
        positions={"relative": RelativeBias.Spec(heads=c["num_heads"], buckets=buckets)},
        masks=masks,
        start=Dropout.Spec(rate=dropout),
    )


_ATTENTION = (("q", "branch.q"), ("k", "branch.k"), ("v", "branch.v"), ("o", "branch.out"))
_PLAIN = (("wi", "branch.up"), ("wo", "branch.down"))
_GATED = (("wi_0", "branch.gate"), ("wi_1", "branch.up"), ("wo", "branch.down"))
_SUBLAYERS = {
    "encoder": (("SelfAttention", "attention"), ("DenseReluDense", "feed_forward")),
    "decoder": (("SelfAttention", "attention"), ("EncDecAttention", "cross"), ("DenseReluDense", "feed_forward")),
}


LEGACY_NAMES: Mapping[str, str | None] = {
    r"^(encoder|decoder)\.embed_tokens\.weight$": "shared.weight",
    # The first checkpoints hold a table for the cross-attention, which never had positions.
    r"^decoder\.block\.0\.layer\.1\.EncDecAttention\.relative_attention_bias\.weight$": None,
}


def WEIGHTS(config: Mapping[str, Any]) -> tuple[Rule, ...]:  # noqa: N802 - the name of a family's rules
    """Return the rules of the files."""
    return rules(settled(config, DEFAULTS["feed_forward_proj"])["is_gated_act"])


def rules(gated: bool | None) -> tuple[Rule, ...]:
    """Return the rules; whether the feed-forward network is gated decides what ``wi`` means."""
    feed_forward = _GATED if gated else _PLAIN
    rules = [rename("shared.weight", "reader.embed.token.weight"), rename("lm_head.weight", "head.vocabulary.weight")]
    for side, sublayers in _SUBLAYERS.items():
        first = f"{side}.block.0.layer.0.SelfAttention.relative_attention_bias.weight"
        rules.append(rename(first, f"{STACKS[side]}.positions.relative.table.weight"))
        for number, (part, role) in enumerate(sublayers):
            theirs, ours = f"{side}.block.{{i}}.layer.{number}", f"{STACKS[side]}.blocks.{{i}}.{role}"
            pairs = feed_forward if role == "feed_forward" else _ATTENTION
            rules += renames(f"{theirs}.{part}", ours, pairs, ends=("weight",))
            rules.append(rename(f"{theirs}.layer_norm.weight", f"{ours}.pre.weight"))
        rules.append(rename(f"{side}.final_layer_norm.weight", f"{STACKS[side]}.final.0.weight"))
    return tuple(rules)
