"""Small tokenizers with the control tokens of well-known chat formats."""

import json
from functools import cache

import tokenizers
from tokenizers import decoders, models, normalizers, pre_tokenizers, trainers

from orrery.text.tokenizer import Tokenizer

CONTROLS = {
    "chatml": ["<|endoftext|>", "<|im_start|>", "<|im_end|>"],
    "gemma": ["<pad>", "<eos>", "<bos>", "<unk>", "<start_of_turn>", "<end_of_turn>"],
    "llama-2": ["<unk>", "<s>", "</s>"],
    "llama-3": ["<|begin_of_text|>", "<|end_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"],
    "mistral": ["<unk>", "<s>", "</s>", "[INST]", "[/INST]"],
    "zephyr": ["<unk>", "<s>", "</s>"],
}
ROLES = {"zephyr": {"end": "</s>"}, "llama-3": {"end": "<|eot_id|>"}}
CORPUS = [
    "user assistant system model question answer the cat sat on the mat, and why?\n\n im_end im_start INST eot_id",
    "Hello there! What is 1 + 1? It is 2.\n the cat sat on the mat < | > [ ] / s end of turn <<SYS>> |>",
]


@cache
def chat_tokenizer(name: str, kind: str = "") -> Tokenizer:
    """Return a byte-level BPE for tiktoken-like formats, else a SentencePiece-like BPE or Unigram."""
    kind = kind or ("bytes" if name in ("chatml", "llama-3") else "sentencepiece")
    engine = {"bytes": _bytes, "sentencepiece": _sentencepiece, "unigram": _unigram}[kind](CONTROLS[name])
    return Tokenizer(engine.to_str(), ROLES.get(name))


def with_added(tokenizer: Tokenizer, **changes: bool) -> Tokenizer:
    """Return the tokenizer with flags of all its control tokens changed."""
    definition = json.loads(json.dumps(tokenizer.definition))
    for token in definition["added_tokens"]:
        token.update(changes)
    return Tokenizer(json.dumps(definition), tokenizer.roles)


def _bytes(controls: list[str]) -> tokenizers.Tokenizer:
    engine = tokenizers.Tokenizer(models.BPE())
    # Line breaks in a run stay one word, as in Llama 3; GPT-2's rule would cut "\\n\\n" off differently at an end.
    words = pre_tokenizers.Split(tokenizers.Regex(r"\s*[\r\n]+| ?[^\s]+|\s+"), "isolated")
    bytes_of_words = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    engine.pre_tokenizer = pre_tokenizers.Sequence([words, bytes_of_words])
    engine.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=320, special_tokens=controls, initial_alphabet=alphabet, show_progress=False
    )
    engine.train_from_iterator(CORPUS, trainer)
    return engine


def _sentencepiece(controls: list[str]) -> tokenizers.Tokenizer:
    pieces = [*controls, *(f"<0x{byte:02X}>" for byte in range(256))]
    engine = tokenizers.Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    engine.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    engine.decoder = decoders.Sequence(
        [
            decoders.Replace("▁", " "),
            decoders.ByteFallback(),
            decoders.Fuse(),
            decoders.Strip(content=" ", left=1),
        ]
    )
    # SentencePiece merges no word with the blank after it; it only learns so, and cuts nothing when it encodes.
    engine.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="never")
    trainer = trainers.BpeTrainer(vocab_size=400, special_tokens=pieces, show_progress=False)
    engine.train_from_iterator(CORPUS, trainer)
    definition = json.loads(engine.to_str())
    definition["added_tokens"] = definition["added_tokens"][: len(controls)]
    definition["pre_tokenizer"] = None
    return tokenizers.Tokenizer.from_str(json.dumps(definition))


def _unigram(controls: list[str]) -> tokenizers.Tokenizer:
    """A vocabulary that spells its own control tokens, which an engine reaches from ordinary text."""
    pieces = [(control, 0.0) for control in controls] + [(char, -5.0) for char in sorted(set("▁" + "".join(CORPUS)))]
    engine = tokenizers.Tokenizer(models.Unigram(pieces, unk_id=controls.index("<unk>")))
    engine.pre_tokenizer = pre_tokenizers.Metaspace()
    engine.decoder = decoders.Metaspace()
    engine.add_special_tokens(controls)
    return engine


def prepending_first(tokenizer: Tokenizer) -> Tokenizer:
    """Return a SentencePiece-like tokenizer that puts a blank only before the whole text, as newer exports do."""
    definition = json.loads(json.dumps(tokenizer.definition))
    definition["normalizer"] = None
    definition["pre_tokenizer"] = {
        "type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": False,
    }  # fmt: skip
    return Tokenizer(json.dumps(definition), tokenizer.roles)
