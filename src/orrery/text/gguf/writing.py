"""A byte-level BPE tokenizer as facts of a GGUF file: its tokens, merges and control tokens, under llama.cpp's keys."""

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from orrery.errors import UsageError
from orrery.text.algorithms import bpe
from orrery.text.chunks import definition_of, plain
from orrery.text.gguf.reading import ENDING
from orrery.text.gguf.rules import RULES
from orrery.text.tokenizer import Tokenizer

_HINT = "GGUF takes byte-level BPE tokenizers; export to hf keeps any tokenizer"
_NORMAL, _CONTROL, _PLAIN_ADDED, _UNUSED = 1, 3, 4, 5


def vocabulary(tokenizer: Tokenizer, size: int, ends: Collection[int]) -> dict[str, Any]:
    """Return the facts by full key.

    Args:
        tokenizer: byte-level BPE.
        size: rows of the model's table; those without a token are written as unused.
        ends: ids that end a text.

    Raises:
        UsageError: another kind of tokenizer, or one that llama.cpp would not apply alike.
    """
    definition = tokenizer.definition
    if reason := _unlike(definition):
        raise UsageError(f"the tokenizer cannot be written to GGUF: {reason}", _HINT)
    if tokenizer.size > size:
        raise UsageError(
            f"the tokenizer has {tokenizer.size:,} ids, the model's table {size:,} rows",
            "take the tokenizer that the model was trained with",
        )
    added = {token["id"]: token for token in definition.get("added_tokens") or []}
    texts = [tokenizer.token(id) if id < tokenizer.size else "" for id in range(size)]
    merges = [pair if isinstance(pair, str) else " ".join(pair) for pair in definition["model"]["merges"]]
    facts: dict[str, Any] = {
        "model": "gpt2",
        "pre": _rule(definition),
        "tokens": [text or f"[PAD{id}]" for id, text in enumerate(texts)],
        "token_type": [_kind(text, added.get(id)) for id, text in enumerate(texts)],
        "merges": merges,
        "add_bos_token": _starts_texts(definition),
        **_control_tokens(tokenizer, ends),
    }
    return {f"tokenizer.ggml.{key}": value for key, value in facts.items()}


def tells_apart_long_words(tokenizer: Tokenizer) -> bool:
    """Say whether the tokenizer cuts very long words, which no rule of llama.cpp does."""
    return plain(tokenizer.definition.get("pre_tokenizer")) == definition_of(bpe.pre_tokenizer())


def _unlike(definition: Mapping[str, Any]) -> str | None:
    """Return what llama.cpp would do otherwise, or nothing."""
    model, normalizer = definition["model"], definition.get("normalizer") or {}
    decoder = (definition.get("decoder") or {}).get("type")
    if model["type"] != "BPE" or decoder != "ByteLevel":
        return f"it is {model['type']} with the decoder {decoder}"
    for key in ("continuing_subword_prefix", "end_of_word_suffix", "byte_fallback", "dropout"):
        if model.get(key):
            return f"its model sets {key}"
    # The published Qwen files have NFC, and llama.cpp leaves it away for all of them.
    if normalizer and normalizer.get("type") != "NFC":
        return f"it has the normalizer {normalizer.get('type')}"
    for token in definition.get("added_tokens") or []:
        if any(token.get(flag) for flag in ("lstrip", "rstrip", "single_word")) and not token.get("special"):
            return f"its added token {token['content']!r} takes spaces with it"
    return None if _rule(definition) else "llama.cpp has no name for its pre-tokenizer"


def _rule(definition: Mapping[str, Any]) -> str | None:
    """Return llama.cpp's name of the pre-tokenizer, where there is one."""
    splitting = plain(definition.get("pre_tokenizer"))
    ignores_merges = bool(definition["model"].get("ignore_merges"))
    if splitting == definition_of(bpe.pre_tokenizer()) and not ignores_merges:
        return "gpt-2"
    return next(
        (name for name, rule in RULES.items() if (plain(rule.definition), rule.whole) == (splitting, ignores_merges)),
        None,
    )


def _kind(text: str, added: Mapping[str, Any] | None) -> int:
    if not text:
        return _UNUSED
    if added is None:
        return _NORMAL
    return _CONTROL if added.get("special") else _PLAIN_ADDED


def _control_tokens(tokenizer: Tokenizer, ends: Collection[int]) -> dict[str, int]:
    """Return the ids of the control tokens.

    Raises:
        UsageError: no end token: llama.cpp would take id 11 for it; or more than it has names for.
    """
    roles = {
        role: tokenizer.special(role) for role in tokenizer.roles if tokenizer.id(tokenizer.roles[role]) is not None
    }
    ordered = sorted(ends, key=lambda id: (id != roles.get("end"), id))
    names = ("eos", "eot", "eom")
    if len(ordered) > len(names):  # what a reader finds by its text needs no name
        ordered = [ordered[0], *(id for id in ordered[1:] if tokenizer.token(id) not in ENDING)]
    if not 1 <= len(ordered) <= len(names):
        raise UsageError(
            f"the model names {len(ordered)} tokens that end a text, and GGUF has room for one to three",
            "set eos_token_id in generation_config.json",
        )
    ids = {f"{name}_token_id": id for name, id in zip(names, ordered, strict=False)}
    # A text begins after the end of another one, where there is no token for it; llama.cpp would take id 11.
    ids["bos_token_id"] = roles.get("start", ordered[0])
    others = {"unknown": "unknown_token_id", "pad": "padding_token_id", "mask": "mask_token_id"}
    return ids | {key: roles[role] for role, key in others.items() if role in roles}


def _starts_texts(definition: Mapping[str, Any]) -> bool:
    """Say whether the tokenizer itself puts a token in front of every text."""
    return any(
        "SpecialToken" in template["single"][0]
        for template in _steps(definition.get("post_processor") or {})
        if template.get("type") == "TemplateProcessing" and template.get("single")
    )


def _steps(rule: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield a rule, or those of a sequence."""
    yield from rule.get("processors", [rule])
