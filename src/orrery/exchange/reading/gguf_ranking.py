"""GGUF files of rerankers: which models of a file give a pair of texts a number, and how the two texts are told.

An encoder reads both behind each other. A decoder, as Qwen3's rerankers are, reads a prompt that holds both, and of its
table the file has two rows, "yes" and "no": ``softmax(W x)_yes = sigmoid((w_yes - w_no) x)`` at the last token.
Source: https://github.com/ggml-org/llama.cpp, ``convert_hf_to_gguf.py`` and ``src/llama-graph.cpp``; measured against
llama.cpp itself.
"""

import json
import re
from collections.abc import Collection, Mapping
from typing import Any

from orrery.checkpoints.layouts import FirstLessSecond
from orrery.checkpoints.rules import Rule
from orrery.errors import ModelFileError
from orrery.exchange.reading.gguf_parts import HINT, Config
from orrery.text.chat.folder import DEFAULT

RANKS = 4
"""llama.cpp's number of what gives a text a number, among its ways to make a vector of one."""
ROWS = "cls.output.weight"
_ARCHITECTURES = ("bert", "modern-bert", "qwen3")
_WORDS = ["yes", "no"]
_TOLD = "rerank"
_HOLES = re.compile(r"\{(query|document)\}")


def gives_numbers(architecture: str, tensors: Collection[str]) -> bool:
    """Say whether a file whose texts are ranked has a head that is read."""
    return architecture in _ARCHITECTURES and ROWS in tensors


def decoder_config(facts: Mapping[str, Any], tensors: Collection[str], kind: str) -> Config:
    """Return the keys of a decoder of this class that ranks; nothing where the file has no head.

    Raises:
        ModelFileError: the head has another number of rows than two.
    """
    if ROWS not in tensors:
        return {}
    if facts["labels"] != len(_WORDS):
        raise ModelFileError(
            f"{ROWS} has {facts['labels']} rows: of a decoder's head only two, yes and no, are built", HINT
        )
    return {
        "architectures": [kind],
        "id2label": {"0": "LABEL_0"},
        "pad_token_id": facts.get("padding"),
        "tie_word_embeddings": True,
    }


def head_rules(spec: Any) -> tuple[Rule, ...]:
    """Return the rule of the two rows: ours is the first less the second, whose sigmoid is llama.cpp's softmax."""
    return (Rule(ROWS, ("heads.sequence.labels.weight",), FirstLessSecond()),)


def check_words(facts: Mapping[str, Any], architecture: str) -> None:
    """Refuse a decoder whose two rows are of other words.

    Raises:
        ModelFileError: they are.
    """
    words = facts.get(f"{architecture}.classifier.output_labels", _WORDS)
    if architecture == "qwen3" and words != _WORDS:
        raise ModelFileError(
            f"{architecture}.classifier.output_labels = {str(words)[:60]}, and {_WORDS} is built", HINT
        )


def with_pairs(chat: Mapping[str, str]) -> dict[str, str]:
    """Return the chat templates of a file, that of pairs as the only one, told by messages of two roles."""
    if _TOLD not in chat:
        return dict(chat)
    return {DEFAULT: "".join(_said(part) for part in re.split(r"(\{(?:query|document)\})", chat[_TOLD]) if part)}


def _said(part: str) -> str:
    """Return a part of the prompt in the language of templates: its own words, or the content of a message."""
    if not (hole := _HOLES.fullmatch(part)):
        return f"{{{{ {json.dumps(part, ensure_ascii=False)} }}}}"
    roles = ("system", "query") if hole[1] == "query" else ("document",)
    return "".join(
        f'{{{{ messages | selectattr("role", "equalto", "{role}") | map(attribute="content") | join }}}}'
        for role in roles
    )
