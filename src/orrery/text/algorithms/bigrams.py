r"""Character bigrams (C2): frequent words stay whole, every other word is cut into pairs of characters.

Paper: Sennrich, Haddow and Birch 2016, section 4.

Differs from the paper: the space before a word marks where a word begins, as in byte-level BPE, where the paper
marks what goes on; so decoding gives back the text. A pair that training never saw is ``<unk>``.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Any

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers

from orrery.errors import UsageError
from orrery.text.algorithms.bpe import words
from orrery.text.algorithms.characters import REPLACEMENT, UNKNOWN
from orrery.text.chunks import word_counts

PAIR = r" ?[\s\S]{1,2}"
"""The space before a word belongs to its first pair."""


def train(texts: Iterator[str], vocabulary: int, end: str) -> Tokenizer:
    """Take all pairs of the corpus; what then remains of the vocabulary goes to the most frequent words.

    Raises:
        UsageError: the pairs alone fill the vocabulary.
    """
    counts = word_counts(texts, words())
    pairs = {pair for word in counts for pair in pairs_of(word)} - {end}
    limit = vocabulary - 2 - len(pairs)
    if limit < 0:
        raise UsageError(
            f"the pairs of characters of this corpus alone fill {2 + len(pairs):,} ids of {vocabulary:,}",
            "give a larger vocabulary, or train byte_bpe, which needs 256 bytes for any script",
        )
    longer = sorted(counts.keys() - pairs - {end}, key=lambda word: (-counts[word], word))
    return of_words(longer[:limit], pairs, end)


def of_words(shortlist: Iterable[str], pairs: Iterable[str], end: str) -> Tokenizer:
    """Return the tokenizer that keeps the words of ``shortlist`` and cuts all others into ``pairs``."""
    shortlist = sorted(shortlist)
    pieces = [UNKNOWN, *sorted({*shortlist, *pairs})]
    tokenizer = Tokenizer(models.WordLevel({piece: id for id, piece in enumerate(pieces)}, unk_token=UNKNOWN))
    pattern = rf"\A{_pattern(shortlist)}\z|" if shortlist else ""
    pairwise = pre_tokenizers.Split(Regex(pattern + PAIR), "isolated")
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([words(), pairwise])
    tokenizer.decoder = decoders.Sequence([decoders.Replace(UNKNOWN, REPLACEMENT), decoders.Fuse()])
    # Outside the model's own pieces, so that no text that spells it gets the control id.
    tokenizer.add_special_tokens([end])
    return tokenizer


def pairs_of(word: str) -> list[str]:
    """Cut a word, which may begin with its space, into pairs of characters from the left."""
    return re.findall(PAIR, word)


def _pattern(words: Iterable[str]) -> str:
    """Return a pattern of exactly ``words``, as a tree of their prefixes: a match costs no more for more words."""
    root: dict[str, Any] = {}
    for word in words:
        node = root
        for character in word:
            node = node.setdefault(character, {})
        node[""] = {}
    return _write(root)


def _write(node: dict[str, Any]) -> str:
    branches = [re.escape(character) + _write(below) for character, below in node.items() if character]
    return f"(?:{'|'.join(branches)}){'?' if '' in node else ''}" if branches else ""
