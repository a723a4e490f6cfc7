"""Train a tokenizer of a named kind on texts."""

from collections.abc import Callable, Iterable, Iterator
from typing import cast

import tokenizers
from tokenizers import normalizers

from orrery.errors import DataError, UsageError
from orrery.text.algorithms import bigrams, bpe, characters, subwords, wordpiece, words
from orrery.text.chunks import cut
from orrery.text.kinds import KINDS, VOCABULARY, Kind
from orrery.text.tokenizer import Tokenizer, refuse_surrogates

Trainer = Callable[[Iterator[str], int, str], tokenizers.Tokenizer]

MOST = 10_000_000
"""No vocabulary is larger: the engine makes room for all of it first, and ends the process where there is none."""

WHOLES: dict[str, Callable[[Iterator[str], int | None, str], tokenizers.Tokenizer]] = {
    "character": characters.train,
    "word": words.train,
}
SUBWORDS: dict[str, Trainer] = {
    "byte_bpe": bpe.train,
    "char_bpe": subwords.train_bpe,
    "wordpiece": wordpiece.train,
    "unigram": subwords.train_unigram,
    "bigram": bigrams.train,
}


def train_tokenizer(
    kind: str,
    texts: Iterable[str],
    vocabulary: int | None = None,
    end: str = "<|endoftext|>",
    lowercase: bool = False,
) -> Tokenizer:
    """Train on texts (read once, streamed); the same texts give the same tokenizer for any number of threads.

    ``vocabulary`` counts every id, the end token included, and is `VOCABULARY` where not given; byte-level BPE
    needs at least 257, the other subword kinds one that holds every character. A corpus too small to fill it
    gives a smaller one. With ``lowercase`` the tokenizer turns every text into lower case first. Raises `DataError`
    for an empty corpus, `UsageError` for the numbers and for a byte-level BPE in lower case.
    """
    if kind not in KINDS:
        raise UsageError(f"unknown kind of tokenizer {kind!r}", f"choose {', '.join(KINDS)}")
    refuse_lowercase(kind, lowercase)
    wanted = VOCABULARY[cast(Kind, kind)] if vocabulary is None else vocabulary
    if wanted is not None and wanted > MOST:
        raise UsageError(f"a vocabulary of {wanted:,} is more than any model has, {MOST:,}", "give a smaller one")
    source = _Checked(texts)
    lower = normalizers.Lowercase()
    read = (lower.normalize_str(text) for text in source) if lowercase else iter(source)
    if kind in WHOLES:
        trained = WHOLES[kind](read, _whole_vocabulary(wanted), end)
    else:
        trained = SUBWORDS[kind](read, _subword_vocabulary(kind, wanted), end)
    if not source.words:
        raise DataError("the corpus has 0 tokens: it is empty or only whitespace", "give it text to learn from")
    _refuse_overflow(trained.get_vocab_size(with_added_tokens=True), wanted)
    if lowercase:
        trained.normalizer = lower
    return Tokenizer(trained.to_str(), {"end": end})


def refuse_lowercase(kind: str, lowercase: bool) -> None:
    """Raise `UsageError` for byte-level BPE in lower case, which would not give back what it reads."""
    if lowercase and kind == "byte_bpe":
        raise UsageError(
            "byte_bpe gives back every byte of a text, and lower case would lose the capitals",
            "leave lowercase away, or choose char_bpe, wordpiece, unigram, word or character",
        )


class _Checked:
    """Texts on their way to the trainer, checked; remembers whether any held more than whitespace."""

    def __init__(self, texts: Iterable[str]) -> None:
        self.texts = texts
        self.words = False

    def __iter__(self) -> Iterator[str]:
        for text in self.texts:
            refuse_surrogates(text)
            self.words = self.words or (not text.isspace() and text != "")
            # Words stay whole, so nothing changes; but the engine waits for 256 texts before it works on any.
            yield from cut(text)


def _whole_vocabulary(vocabulary: int | None) -> int | None:
    if vocabulary is not None and vocabulary < 3:
        raise UsageError(
            f"a tokenizer of characters or words needs a vocabulary of at least 3, got {vocabulary}",
            "leave the size of the vocabulary away to keep all of them",
        )
    return vocabulary


def _subword_vocabulary(kind: str, vocabulary: int | None) -> int:
    least, holds = (bpe.BYTES + 1, "256 bytes") if kind == "byte_bpe" else (3, "the characters")
    if vocabulary is None or vocabulary < least:
        raise UsageError(
            f"{kind} needs a vocabulary of at least {least}, got {vocabulary}",
            f"it holds {holds}, the end token and what is learnt: give a vocabulary of 4096, for example",
        )
    return vocabulary


def _refuse_overflow(size: int, vocabulary: int | None) -> None:
    if vocabulary is not None and size > vocabulary:
        raise UsageError(
            f"the characters of this corpus alone fill {size:,} ids, more than the vocabulary of {vocabulary:,}",
            "give a larger vocabulary, or train byte_bpe, which needs 256 bytes for any script",
        )
