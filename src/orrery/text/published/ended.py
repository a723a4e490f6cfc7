"""Merges whose pieces mark the ends of words with </w>: those of CLIP and of the first GPT, in small letters."""

import json
import re
from collections.abc import Mapping
from typing import Any

from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers

from orrery.text import frames

_END = "</w>"
_OPENING, _CLOSING, _UNKNOWN = "<|startoftext|>", frames.GPT2_END, "<unk>"
CONTROL = {"CLIP": (_OPENING, _CLOSING), "OpenAIGPT": (_UNKNOWN,)}
"""The control tokens of the classes, by their names without "Tokenizer"."""
_CUT = rf"{re.escape(_OPENING)}|{re.escape(_CLOSING)}|'(?:s|t|re|ve|m|ll|d)|\p{{L}}+|\p{{N}}|[^\s\p{{L}}\p{{N}}]+"
"""CLIP's words, of which each figure is one (Radford et al. 2021)."""
_SAYS_ENDS = re.compile(r'"end_of_word_suffix":\s*"[^"]')


def engine_of(name: str, ids: dict[str, int], merges: list[tuple[str, str]]) -> Tokenizer:
    """Return the tokenizer of one of the classes, without its control tokens."""
    unknown = CONTROL[name][-1]
    made = Tokenizer(
        models.BPE(ids, merges, end_of_word_suffix=_END, unk_token=unknown if unknown in ids else None, fuse_unk=False)
    )
    if name == "OpenAIGPT":
        made.normalizer, made.pre_tokenizer = normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer()
        made.decoder = decoders.BPEDecoder(_END)
        return made
    made.normalizer = normalizers.Sequence(
        [normalizers.NFC(), normalizers.Replace(Regex(r"\s+"), " "), normalizers.Lowercase()]
    )
    words = pre_tokenizers.Split(Regex(_CUT), "removed", invert=True)
    made.pre_tokenizer = pre_tokenizers.Sequence([words, pre_tokenizers.ByteLevel(add_prefix_space=False)])
    made.decoder = decoders.ByteLevel()
    return made


def frame(name: str, config: Mapping[str, Any], find: frames.Find) -> frames.Rule | None:
    """Return what stands around a text: CLIP's two tokens, or those of their names in tokenizer_config.json."""
    if name != "CLIP":
        return None
    opening, closing = (config.get(f"{role}_token") for role in ("bos", "eos"))
    first, last = (
        said if isinstance(said, str) else usual for said, usual in ((opening, _OPENING), (closing, _CLOSING))
    )
    return frames.of_slots((first, "A", last), (first, "A", last, last, "B", last), find)


def spaced(content: str) -> str:
    """Return a tokenizer.json that makes a space of the end of a word, as CLIP's own program does and its file not."""
    if not _SAYS_ENDS.search(content):
        return content
    try:
        definition = json.loads(content)
        bytes_alone, end = definition["decoder"]["type"] == "ByteLevel", definition["model"]["end_of_word_suffix"]
    except (ValueError, RecursionError, TypeError, KeyError):
        return content  # what is wrong with it is said where it is read
    if not bytes_alone:
        return content
    blanks = (("String", end, " "), ("Regex", r"\A\s+|\s+\z", ""))
    steps = [{"type": "Replace", "pattern": {kind: what}, "content": put} for kind, what, put in blanks]
    return json.dumps(
        {**definition, "decoder": {"type": "Sequence", "decoders": [definition["decoder"], *steps]}}, ensure_ascii=False
    )
