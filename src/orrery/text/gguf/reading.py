"""The tokenizer of a GGUF file: its facts, under llama.cpp's keys, as a tokenizer.json.

Three kinds are read: ``gpt2`` (byte-level BPE), ``llama`` and ``t5`` (SentencePiece, with scores) and ``bert``
(WordPiece). What cuts a text before the pieces are merged is a rule that the file names, see ``gguf_rules``.
"""

import json
from collections.abc import Callable, Mapping
from itertools import takewhile
from typing import Any

from orrery.errors import ModelFileError
from orrery.text import frames
from orrery.text.gguf.rules import RULES
from orrery.text.pieces import bpe_of_bytes
from orrery.text.sentencepiece import export
from orrery.text.sentencepiece.file import BPE, UNIGRAM
from orrery.text.sentencepiece.protobuf import written, written_float
from orrery.text.tokenizer import Tokenizer

PREFIX = "tokenizer.ggml."
NORMAL, UNKNOWN, CONTROL, USER, UNUSED, BYTE = 1, 2, 3, 4, 5, 6
"""Kinds of tokens, with SentencePiece's numbers."""
WORD = "\u2581"
"""Begins what begins a word."""
HINT = "convert the model again with llama.cpp of today, or take its Hugging Face folder"
_ROLES = {
    "bos": "start", "eos": "end", "unknown": "unknown", "padding": "pad", "mask": "mask", "cls": "class",
    "seperator": "separator",
}  # fmt: skip
"""Our role by llama.cpp's key; ``seperator`` is its spelling."""
_ENDS = ("eos", "eot", "eom")
_SAID = {
    "llama": {"bos": 1, "eos": 2, "unknown": 0},
    "t5": {"eos": 1, "unknown": 2, "padding": 0},
    "bert": {"bos": 101, "unknown": 100, "seperator": 102, "padding": 0, "mask": 103},
}  # fmt: skip
"""The tokens that llama.cpp takes by their ids where a file does not name them, by the kind of tokenizer."""
ENDING = frozenset(
    {
        "<|eot_id|>", "<|im_end|>", "<|end|>", "<end_of_turn>", "<|endoftext|>", "<|end_of_text|>", "<EOT>", "_<EOT>",
        "[EOT]", "<\uff5cend\u2581of\u2581sentence\uff5c>", "<end_of_utterance>", "<|eom_id|>", "<|return|>",
        "<|call|>", "<|flush|>", "<|calls|>", "[EOS]", "<eos>", "<turn|>", "<|tool_response>", "[e~[",
    }
)  # fmt: skip
"""Texts of tokens at which llama.cpp ends a text whether or not a file names them; most converters name one alone.

It ends at ``</s>`` too, which in Gemma's tables is a tag of HTML.
"""
_GOES_ON = "<|end|>", ({"<|return|>", "<|call|>"}, {"<|calls|>", "<|flush|>"})
"""Beside either of these pairs it ends a part of a reply."""


class _Facts:
    """The facts about a tokenizer, by key without the prefix."""

    def __init__(self, facts: Mapping[str, Any]) -> None:
        self.known = {key.removeprefix(PREFIX): value for key, value in facts.items() if key.startswith(PREFIX)}
        self.tokens: list[str] = self.listed("tokens", str)
        kinds = self.listed("token_type", int, [NORMAL] * len(self.tokens))
        if len(kinds) != len(self.tokens):
            raise ModelFileError(f"it has {len(self.tokens):,} tokens and {len(kinds):,} kinds of them", HINT)
        # What fills a table up to a round number has no text.
        unused = sum(1 for _ in takewhile(lambda kind: kind == UNUSED, reversed(kinds)))
        self.size = len(kinds) - unused
        self.tokens, self.kinds = self.tokens[: self.size], kinds[: self.size]
        self.architecture = facts.get("general.architecture")

    def listed(self, key: str, kind: type, default: list[Any] | None = None) -> list[Any]:
        items = self.known.get(key, default)
        if not isinstance(items, list) or not all(type(item) is kind for item in items):
            raise ModelFileError(f"{PREFIX}{key} is no list of {'texts' if kind is str else 'numbers'}", HINT)
        return items

    def flag(self, name: str, default: bool) -> bool:
        value = self.known.get(name, default)
        if not isinstance(value, bool):
            raise ModelFileError(f"{PREFIX}{name} = {str(value)[:40]!r} is neither true nor false", HINT)
        return value

    def token(self, name: str) -> str | None:
        """Return the text of a token that the file names by its id; none where it names none."""
        id = self.id(name)
        return None if id is None or id >= self.size else self.tokens[id]

    def id(self, name: str) -> int | None:
        said = _SAID.get(str(self.known.get("model")), {}).get(name)
        value = self.known.get(f"{name}_token_id", said if said is not None and said < self.size else None)
        if value is None or value in (-1, 0xFFFFFFFF):
            return None
        if type(value) is not int or not value >= 0:
            raise ModelFileError(f"{PREFIX}{name}_token_id = {str(value)[:40]!r} is no token number", HINT)
        return value

    def of_kind(self, *kinds: int) -> list[int]:
        return [id for id, kind in enumerate(self.kinds) if kind in kinds]


def tokenizer_of(facts: Mapping[str, Any]) -> Tokenizer | None:
    """Return the tokenizer of a file with these facts; none where it holds none.

    Raises:
        ModelFileError: it contradicts itself, or is of a kind that is not read.
    """
    kind = facts.get(f"{PREFIX}model")
    if kind in (None, "none", "no_vocab"):
        return None
    if not isinstance(kind, str) or kind not in _KINDS:
        raise ModelFileError(
            f"its tokenizer is of the kind {str(kind)[:40]!r}; read are {', '.join(_KINDS)}",
            "take the Hugging Face folder of the same model",
        )
    known = _Facts(facts)
    definition = _KINDS[kind](known)
    roles: dict[str, str | None] = {role: known.token(name) for name, role in _ROLES.items()}
    return Tokenizer(json.dumps(definition, ensure_ascii=False), roles)


def ends_of(facts: Mapping[str, Any]) -> list[int]:
    """Return the ids that end a text: those that the file names, the end token first, and those known by text."""
    known = _Facts(facts)
    named = [id for name in _ENDS if (id := known.id(name)) is not None]
    named += known.listed("eos_token_ids", int, [])  # as Ollama writes them
    special = {known.tokens[id]: id for id in known.of_kind(CONTROL, USER)}
    within, besides = _GOES_ON
    found = ENDING - ({within} if any(texts <= special.keys() for texts in besides) else set())
    ends = dict.fromkeys([*named, *(special[text] for text in special if text in found)])
    return [id for id in ends if 0 <= id < known.size]  # llama.cpp passes over a token that there is not


def never_of(facts: Mapping[str, Any]) -> list[int]:
    """Return the ids that are never written.

    Raises:
        ModelFileError: they are no list of numbers.
    """
    known = _Facts(facts)
    return [id for id in known.listed("suppress_tokens", int, []) if 0 <= id < known.size]


def _added(known: _Facts) -> list[dict[str, Any]]:
    """Return the added tokens: control tokens, and texts that are taken whole."""
    flags = {"single_word": False, "rstrip": False, "normalized": False}
    # RoBERTa and ModernBERT take the spaces before a hidden word for a part of it; BERT's tokens are parted by spaces.
    hidden = None if known.known.get("model") == "bert" else known.id("mask")
    return [
        {"id": id, "content": known.tokens[id], "lstrip": id == hidden, **flags, "special": known.kinds[id] != USER}
        for id in known.of_kind(CONTROL, USER, UNKNOWN)
    ]


def _definition(known: _Facts, **parts: Any) -> dict[str, Any]:
    return {"version": "1.0", "truncation": None, "padding": None, "added_tokens": _added(known), **parts}


def _byte_level(known: _Facts) -> dict[str, Any]:
    """Return byte-level BPE."""
    name = known.known.get("pre") or "default"
    rule = RULES.get(name) if isinstance(name, str) else None
    if rule is None:
        raise ModelFileError(
            f"its texts are cut by the rule {str(name)[:40]!r}, which is not known here",
            "take the Hugging Face folder of the same model",
        )
    merges = [merge.split(" ", 1) for merge in known.listed("merges", str)]
    added = set(known.of_kind(CONTROL, USER, UNKNOWN))
    last = max((id for id in range(known.size) if id not in added), default=0)
    # Control tokens behind the others are no words: a text that spells one is never taken for it.
    vocabulary = {token: id for id, token in enumerate(known.tokens) if id not in added or id < last}
    if wrong := next(
        (pair for pair in merges if len(pair) != 2 or not {*pair, "".join(pair)} <= vocabulary.keys()), None
    ):
        raise ModelFileError(f"its merge {' '.join(wrong)[:80]!r} names a piece that is no token", HINT)
    return _definition(
        known,
        normalizer={"type": "NFC"} if rule.composed else None,
        pre_tokenizer=rule.definition,
        post_processor=_around(known, rule.starts, ends=False),
        decoder={"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
        model=bpe_of_bytes(vocabulary, merges, rule.whole),
    )


def _around(known: _Facts, starts: bool, ends: bool) -> frames.Rule | None:
    """Return what puts the start token before a text and the end token behind it, as the file asks for.

    Two texts are parted by a separator too where a file asks for it; encoders' files need not say so.
    """
    before = known.token("bos") if known.flag("add_bos_token", starts) else None
    after = known.token("eos") if known.flag("add_eos_token", ends) else None
    config = {"add_bos_token": bool(before), "add_eos_token": bool(after), "bos_token": before, "eos_token": after}
    find = {token: id for id, token in enumerate(known.tokens)}.get
    between = known.token("seperator") or after
    if not between or not known.flag("add_sep_token", known.architecture in ("bert", "modern-bert")):
        return frames.of_sentencepiece(config, find)
    first, second = ([*filter(None, (before,)), text, *filter(None, (after,))] for text in "AB")
    return frames.of_slots(first, [*first, between, *second[bool(before) :]], find)


def _scored(known: _Facts, algorithm: int, starts: bool, ends: bool) -> dict[str, Any]:
    """Return a SentencePiece model as a tokenizer.json."""
    scores = known.known.get("scores")
    if not isinstance(scores, list) or len(scores) < known.size:
        raise ModelFileError(f"it has {known.size:,} tokens and no score for each of them", HINT)
    kinds = _with_one_unknown(known)
    pieces = (
        written(1, written(1, token.encode()) + written_float(2, float(score)) + written(3, kind))
        for token, score, kind in zip(known.tokens, scores, kinds, strict=False)
    )
    rules = bytes(number & 255 for number in known.listed("precompiled_charsmap", int, []))
    normal = written(2, rules) + written(3, int(known.flag("add_space_prefix", True)))
    normal += written(4, int(known.flag("remove_extra_whitespaces", algorithm == UNIGRAM)))
    content = b"".join(pieces) + written(2, written(3, algorithm)) + written(3, normal)
    made: dict[str, Any] = json.loads(export.definition(content))
    for token in made["added_tokens"] if known.architecture == "phi3" else ():
        # In Phi-3's folders a control token takes the spaces behind it, and no file can say so.
        token["rstrip"] = token["content"] not in ("<unk>", "<s>", "<|endoftext|>")
    return made | {"post_processor": _around(known, starts, ends)}


def _with_one_unknown(known: _Facts) -> list[int]:
    """Return the kinds of the pieces, of which one alone is unknown, as in every SentencePiece model.

    Files of Phi-3 call what fills their table unknown, and what is unknown a control token; llama.cpp goes by the id.
    """
    unknown = known.id("unknown")
    kinds = [CONTROL if kind == UNKNOWN else kind for kind in known.kinds]
    return [UNKNOWN if id == unknown else kind for id, kind in enumerate(kinds)]


def _words(known: _Facts) -> dict[str, Any]:
    """Return BERT's WordPiece; in the file a piece that begins a word is marked, not one that goes on."""

    def spelt(token: str, kind: int) -> str:
        if kind in (CONTROL, UNKNOWN):
            return token
        return token.removeprefix(WORD) if token.startswith(WORD) else f"##{token}"

    texts = [spelt(token, kind) for token, kind in zip(known.tokens, known.kinds, strict=True)]
    unknown = known.token("unknown") or "[UNK]"
    vocabulary = {text: id for id, text in enumerate(texts)}
    if unknown not in vocabulary:
        raise ModelFileError(f"no token of its list is {unknown!r}, the piece for unknown words", HINT)
    known.tokens = texts
    lowercase = known.flag("normalizer.lowercase", True)
    return _definition(
        known,
        normalizer={
            "type": "BertNormalizer",
            "clean_text": True,
            "handle_chinese_chars": True,
            "strip_accents": known.flag("normalizer.strip_accents", lowercase),
            "lowercase": lowercase,
        },
        pre_tokenizer={"type": "BertPreTokenizer"},
        post_processor=frames.of_bert(vocabulary.get),
        decoder={"type": "WordPiece", "prefix": "##", "cleanup": True},
        model={
            "type": "WordPiece",
            "unk_token": unknown,
            "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100,
            "vocab": vocabulary,
        },
    )


_KINDS: dict[str, Callable[[_Facts], dict[str, Any]]] = {
    "gpt2": _byte_level,
    "llama": lambda known: _scored(known, BPE, starts=True, ends=False),
    "t5": lambda known: _scored(known, UNIGRAM, starts=False, ends=True),
    "bert": _words,
}
"""By llama.cpp's name of a kind of tokenizer."""
