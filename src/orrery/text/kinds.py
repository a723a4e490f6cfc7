"""The kinds of tokenizer that can be trained, and how many ids each has unless told otherwise."""

from typing import Literal, get_args

Kind = Literal["byte_bpe", "character", "word", "char_bpe", "wordpiece", "unigram", "bigram"]
KINDS: tuple[Kind, ...] = get_args(Kind)

VOCABULARY: dict[Kind, int | None] = {
    "byte_bpe": 4096,
    "character": None,
    "word": None,
    "char_bpe": 4096,
    "wordpiece": 4096,
    "unigram": 4096,
    "bigram": 8192,
}
"""The number of ids where none is given; None keeps every character or word of the corpus."""
