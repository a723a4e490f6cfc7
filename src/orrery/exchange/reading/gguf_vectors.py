"""GGUF files of embedders: the encoders of BERT and ModernBERT, and how any model of a file makes one vector of a text.

The files of RoBERTa and XLM-R name the same architecture: their table of positions begins behind the row of padding, so
that what is left of their own rule is BERT's. The pooler is in the files of rerankers alone: it is what RoBERTa's head
does to the first token before it gives a number, and BERT's pooler before its.
Source: https://github.com/ggml-org/llama.cpp, ``convert_hf_to_gguf.py`` and ``src/llama-model.cpp``; measured against
llama.cpp itself.
"""

from collections.abc import Collection, Mapping
from typing import Any

from orrery.checkpoints.rules import Rule, fused, rename, renames
from orrery.errors import ModelFileError
from orrery.exchange.reading import gguf_parts as parts
from orrery.exchange.reading import gguf_ranking as ranking
from orrery.exchange.reading.gguf_parts import BLOCK, THEIRS, Config
from orrery.models.sentence_vectors import Pooling, Sentences, SentenceVectors, UnitLength

_MEAN, _FIRST = 1, 2
POOLINGS = {_MEAN: "mean", _FIRST: "cls", 3: "lasttoken"}
"""Ours by llama.cpp's number; 0 pools nothing."""


def sentences_of(facts: Mapping[str, Any], tensors: Collection[str]) -> Sentences | None:
    """Return how a file's model makes vectors of texts, of length one as llama.cpp's programs give them.

    A model with a head makes none: it gives pairs of texts a number.

    Raises:
        ModelFileError: the texts are ranked without a head that is built, or pooled in an unknown way.
    """
    architecture = str(facts.get("general.architecture"))
    number = facts.get(f"{architecture}.{parts.POOLING}", 0)
    if not number:
        return None
    if number == ranking.RANKS and ranking.gives_numbers(architecture, tensors):
        ranking.check_words(facts, architecture)
        return None
    if type(number) is not int or number not in POOLINGS:
        said = f"{architecture}.{parts.POOLING} = {str(number)[:40]}"
        raise ModelFileError(
            f"{said}: only the mean (1), the first (2) and the last token (3) are built, and rank (4) of a head",
            "take the Hugging Face folder of the same model",
        )
    return Sentences(SentenceVectors(Pooling((POOLINGS[number],)), [UnitLength()]).eval())


def _bert_config(facts: Mapping[str, Any], tensors: Collection[str]) -> Config:
    ranks = {"architectures": ["BertForSequenceClassification"], "num_labels": facts.get("labels", 1)}
    _one_of(facts, "classifier.activation", "tanh")
    _one_of(facts, "classifier.pooling_type", _FIRST)
    return {
        **parts.sizes_config(facts),
        **(ranks if ranking.ROWS in tensors else {"architectures": ["BertModel"]}),
        "max_position_embeddings": facts["context_length"],
        "layer_norm_eps": facts["attention.layer_norm_epsilon"],
        "type_vocab_size": facts.get("token_types", 1),
    }


def _one_of(facts: Mapping[str, Any], key: str, usual: Any, *others: Any) -> Any:
    """Return a fact that is one of few; what a file does not say is as llama.cpp takes it.

    Raises:
        ModelFileError: it is another.
    """
    said, known = facts.get(key, usual), (usual, *others)
    if said not in known:
        raise ModelFileError(f"{key} = {str(said)[:40]} is not built; {' and '.join(map(str, known))} are", parts.HINT)
    return said


def _bert_rules(spec: Any) -> tuple[Rule, ...]:
    matrices = (*parts.MATRICES, *((f"attn_{x}", f"attention.branch.{x}") for x in "qkv"))
    norms = (("attn_output_norm", "attention.out"), ("layer_output_norm", "feed_forward.out"))
    return (
        rename("token_embd.weight", "embed.token.weight"),
        rename("token_types.weight", "embed.segment.weight"),
        rename("position_embd.weight", "stack.positions.learned.table.weight"),
        *(rename(f"token_embd_norm.{end}", f"stack.start.0.{end}") for end in ("weight", "bias")),
        *renames(THEIRS, BLOCK, (*norms, *matrices)),
        *_head_rules(),
    )


def _head_rules(*further: tuple[str, str]) -> tuple[Rule, ...]:
    """Return the rules of a head for rows: what it makes of a vector first, and the numbers."""
    ours = "heads.sequence"
    pairs = (("cls", f"{ours}.pooler.transform.0.0.linear"), ("cls.output", f"{ours}.labels"), *further)
    return tuple(rename(f"{theirs}.{end}", f"{own}.{end}") for theirs, own in pairs for end in ("weight", "bias"))


# ModernBERT


def _modernbert_config(facts: Mapping[str, Any], tensors: Collection[str]) -> Config:
    # Every third layer sees the whole row, from the first on, where a file has windows; they turn at their own rate.
    parts.pass_over(facts, "rope.scaling.type")
    window, base = facts.get("attention.sliding_window", 0), facts.get("rope.freq_base", 10_000.0)
    slides = {
        **_wide_layers(facts),
        "local_attention": window,
        "local_rope_theta": facts.get("rope.freq_base_swa", base),
    }
    return {
        **parts.sizes_config(facts),
        "architectures": ["ModernBertModel"],
        "max_position_embeddings": facts["context_length"],
        "norm_eps": facts["attention.layer_norm_epsilon"],
        "global_rope_theta": base,
        "hidden_activation": _one_of(facts, "hidden_activation", "gelu", "gelu_pytorch_tanh", "silu"),
        **(slides if window else {"global_attn_every_n_layers": 1}),
        **_modernbert_head(facts, tensors),
    }


def _wide_layers(facts: Mapping[str, Any]) -> Config:
    """Return which layers see the whole row: a file says every which one, from the first on, or each."""
    pattern = facts.get(parts.PATTERN, 3)
    return parts.layer_kinds(facts) if isinstance(pattern, list) else {"global_attn_every_n_layers": pattern}


def _modernbert_head(facts: Mapping[str, Any], tensors: Collection[str]) -> Config:
    """Return the keys of a head for rows, ``W norm(gelu(V pool(x)))``; llama.cpp pools by the mean where none is said.

    Raises:
        ModelFileError: it pools otherwise than by the mean or the first token, or has another activation.
    """
    if ranking.ROWS not in tensors:
        return {}
    return {
        "architectures": ["ModernBertForSequenceClassification"],
        "num_labels": facts["labels"],
        "classifier_pooling": POOLINGS[_one_of(facts, "classifier.pooling_type", _MEAN, _FIRST)],
        "classifier_activation": _one_of(facts, "classifier.activation", "gelu", "tanh"),
        "classifier_bias": "cls.bias" in tensors,
    }


def _modernbert_rules(spec: Any) -> tuple[Rule, ...]:
    attention, network = f"{BLOCK}.attention.branch", f"{BLOCK}.feed_forward.branch"
    matrices = (pair for pair in parts.MATRICES if pair[0] != "ffn_up")
    return (
        rename("token_embd.weight", "embed.token.weight"),
        rename("token_embd_norm.weight", "stack.start.0.weight"),
        rename("output_norm.weight", "stack.final.weight"),
        *renames(THEIRS, BLOCK, (*parts.NORMS, *matrices), ("weight",)),
        *_head_rules(("cls.norm", "heads.sequence.pooler.transform.0.2")),
        fused(f"{THEIRS}.attn_qkv.weight", tuple(f"{attention}.{x}.weight" for x in "qkv")),
        fused(f"{THEIRS}.ffn_up.weight", (f"{network}.gate.weight", f"{network}.up.weight")),
    )


_Row = parts.GgufArchitecture
ARCHITECTURES = {
    "bert": _Row("bert", None, _bert_config, _bert_rules, rotary=False),
    "modernbert": _Row("modern-bert", None, _modernbert_config, _modernbert_rules, rotary=False),
}
"""By ``model_type``."""
ENCODERS = frozenset(row.name for row in ARCHITECTURES.values())
"""llama.cpp's names of those whose tokens see all others."""
