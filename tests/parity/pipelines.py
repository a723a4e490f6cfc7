"""Tiny random models in folders with real tokenizers, and the reference's pipelines over them."""

import json
import warnings
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import tokenizers
import transformers

import orrery
from orrery.tasks.pipelines import Pipeline
from tests.parity import oracle

DATA = Path(__file__).parents[1] / "data" / "pipelines"
TEXTS = [
    "The cat sat near London.",
    "Ada wrote",
    "Öl in 日本 🙂 is naïve, zürich-like & new",
    "x",
    "  two  blanks and\na line \t end ",
    "Charles Babbage and the unbelievable engine of Ada Lovelace in a short summer",
]
"""What the models read: words that were seen and not, blanks, letters beyond ASCII, one letter."""

LABELS = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"]


@cache
def stored(name: str) -> tokenizers.Tokenizer:
    """Return one of the tokenizers that `recorded_pipelines.py` has trained: no two trainings give the same one."""
    return tokenizers.Tokenizer.from_file(str(DATA / f"{name}.json"))


BERT = {"cls_token": "[CLS]", "sep_token": "[SEP]", "mask_token": "[MASK]", "pad_token": "[PAD]", "unk_token": "[UNK]"}
ROBERTA = {
    "bos_token": "<s>", "cls_token": "<s>", "eos_token": "</s>", "sep_token": "</s>", "pad_token": "<pad>",
    "unk_token": "<unk>", "mask_token": "<mask>",
}  # fmt: skip
GPT2 = {"bos_token": "</s>", "eos_token": "</s>", "pad_token": "<pad>"}
T5 = {"eos_token": "</s>", "pad_token": "[PAD]", "unk_token": "[UNK]"}

SEGMENTED = ["input_ids", "token_type_ids", "attention_mask"]
_ENCODER = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48}
FAMILIES: Mapping[str, tuple[str, Mapping[str, str], Sequence[str], Mapping[str, Any]]] = {
    "bert": ("wordpiece", BERT, SEGMENTED, _ENCODER),
    "electra": ("wordpiece", BERT, SEGMENTED, {**_ENCODER, "embedding_size": 16}),
    "distilbert": (
        "wordpiece", BERT, SEGMENTED[::2], {"dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 48},
    ),
    "roberta": ("framed_bytes", ROBERTA, SEGMENTED[::2], {**_ENCODER, "type_vocab_size": 1}),
    "deberta-v2": (
        "framed_pieces", BERT, SEGMENTED,
        {**_ENCODER, "type_vocab_size": 0, "relative_attention": True, "pos_att_type": ["p2c", "c2p"],
         "position_biased_input": False},
    ),
    "modernbert": (
        "wordpiece", BERT, SEGMENTED[::2], {**_ENCODER, "global_attn_every_n_layers": 2, "local_attention": 8},
    ),
    "gpt2": ("bytes", GPT2, SEGMENTED[::2], {"n_embd": 32, "n_layer": 2, "n_head": 4}),
    "llama": (
        "bytes", GPT2, SEGMENTED[::2], {**_ENCODER, "num_key_value_heads": 2, "head_dim": 8},
    ),
    "t5": (
        "ended_pieces", T5, SEGMENTED[::2],
        {"d_model": 32, "d_ff": 48, "d_kv": 8, "num_layers": 2, "num_heads": 4, "decoder_start_token_id": 0},
    ),
    "bart": (
        "framed_bytes", ROBERTA, SEGMENTED[::2],
        {"d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4,
         "decoder_attention_heads": 4, "encoder_ffn_dim": 48, "decoder_ffn_dim": 48, "decoder_start_token_id": 2,
         "forced_eos_token_id": None},
    ),
    "marian": (
        "ended_pieces", T5, SEGMENTED[::2],
        {"d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4,
         "decoder_attention_heads": 4, "encoder_ffn_dim": 48, "decoder_ffn_dim": 48, "decoder_start_token_id": 0,
         "forced_eos_token_id": None},
    ),
}  # fmt: skip


def folder(place: Path, kind: str, auto: str, *, context: int = 64, seed: int = 0, **config: Any) -> Path:
    """Save a random reference of a family with its tokenizer, and return the folder."""
    name, special, inputs, sizes = FAMILIES[kind]
    made = transformers.PreTrainedTokenizerFast(
        tokenizer_object=stored(name), **special, model_input_names=list(inputs), model_max_length=context
    )
    control = {f"{name}_token_id": getattr(made, f"{name}_token_id", None) for name in ("bos", "eos", "pad")}
    length = {"roberta": context + made.pad_token_id + 1}.get(kind, context)
    known = {"gpt2": "n_positions", "t5": "n_positions"}
    settings = {known.get(kind, "max_position_embeddings"): length, **sizes, **control, **config}
    model = oracle.reference(kind, seed, _float32(), auto=auto, vocab_size=len(made), **settings)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.save_pretrained(place)
        made.save_pretrained(place)
    return place


def pair(
    place: Path, kind: str, auto: str, task: str, *, context: int = 64, settings: Mapping[str, Any] | None = None,
    **config: Any,
) -> tuple[Any, Pipeline]:  # fmt: skip
    """Return the reference's pipeline and ours over one folder."""
    folder(place, kind, auto, context=context, **config)
    tokenizer = transformers.AutoTokenizer.from_pretrained(place)
    theirs = transformers.pipeline(
        task, model=str(place), tokenizer=tokenizer, device="cpu", model_kwargs={"attn_implementation": "eager"},
        **(settings or {}),
    )  # fmt: skip
    return theirs, orrery.pipeline(task, place, device="cpu", **(settings or {}))


def named(labels: Sequence[str]) -> dict[str, Any]:
    """Return the keys of a configuration that name labels."""
    return {"id2label": dict(enumerate(labels)), "label2id": {name: n for n, name in enumerate(labels)}}


def same(given: Any, expected: Any, bound: float = 1e-5, where: str = "") -> None:
    """Fail where two answers differ: numbers by more than the bound, anything else at all."""
    if isinstance(expected, Mapping):
        assert list(given) == list(expected), f"{where}: {list(given)} for {list(expected)}"
        for key in expected:
            same(given[key], expected[key], bound, f"{where}.{key}")
    elif isinstance(expected, list | tuple):
        assert len(given) == len(expected), f"{where}: {given!r:.300} for {expected!r:.300}"
        for number, (one, other) in enumerate(zip(given, expected, strict=True)):
            same(one, other, bound, f"{where}[{number}]")
    elif isinstance(expected, str | int | None):
        assert given == expected, f"{where}: {given!r} for {expected!r}"
    else:
        assert abs(given - float(expected)) <= bound, f"{where}: {given} for {expected}"


def generated(texts: Sequence[str]) -> Iterator[str]:
    """Yield texts, as a generator that a pipeline is given."""
    yield from texts


def edit_config(place: Path, **keys: Any) -> None:
    """Write keys into a folder's config.json."""
    file = place / "config.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **keys}))


def _float32() -> Any:
    import torch

    return torch.float32
