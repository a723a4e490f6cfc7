"""Train a tokenizer of a named kind on texts."""

from collections.abc import Iterable, Iterator

from orrery.errors import DataError, UsageError
from orrery.text import bpe, characters, subwords, wordpiece, words
from orrery.text.chunks import cut
from orrery.text.tokenizer import Tokenizer, refuse_surrogates

SUBWORDS = {"char_bpe": subwords.train_bpe, "wordpiece": wordpiece.train, "unigram": subwords.train_unigram}
KINDS = ("byte_bpe", "character", "word", *SUBWORDS)


def train_tokenizer(
    kind: str, texts: Iterable[str], vocabulary: int | None = None, end: str = "<|endoftext|>"
) -> Tokenizer:
    """Train on texts (read once, streamed); the same texts give the same tokenizer for any number of threads.

    ``vocabulary`` counts every id, the end token included; byte-level BPE needs one, of at least 257,
    the other subword kinds one that holds every character. A
    corpus too small to fill it gives a smaller one. Raises `DataError` for an empty corpus, `UsageError` for
    the numbers.
    """
    source = _Checked(texts)
    if kind == "byte_bpe":
        trained = bpe.train(iter(source), _byte_vocabulary(vocabulary), end)
    elif kind == "character":
        trained = characters.train(iter(source), _character_vocabulary(vocabulary), end)
    elif kind == "word":
        trained = words.train(iter(source), _character_vocabulary(vocabulary), end)
    elif kind in SUBWORDS:
        trained = SUBWORDS[kind](iter(source), _subword_vocabulary(kind, vocabulary), end)
    else:
        raise UsageError(f"unknown kind of tokenizer {kind!r}", f"choose {', '.join(KINDS)}")
    if not source.words:
        raise DataError("the corpus has 0 tokens: it is empty or only whitespace", "give it text to learn from")
    _refuse_overflow(trained.get_vocab_size(with_added_tokens=True), vocabulary)
    return Tokenizer(trained.to_str(), {"end": end})


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


def _byte_vocabulary(vocabulary: int | None) -> int:
    least = bpe.BYTES + 1
    if vocabulary is None or vocabulary < least:
        raise UsageError(
            f"byte-level BPE needs a vocabulary of at least {least}, got {vocabulary}",
            "it holds 256 bytes, the end token and the merges: give --vocabulary 4096, for example",
        )
    return vocabulary


def _character_vocabulary(vocabulary: int | None) -> int | None:
    if vocabulary is not None and vocabulary < 3:
        raise UsageError(
            f"a tokenizer of characters or words needs a vocabulary of at least 3, got {vocabulary}",
            "leave --vocabulary away to keep all of them",
        )
    return vocabulary


def _subword_vocabulary(kind: str, vocabulary: int | None) -> int:
    if vocabulary is None or vocabulary < 3:
        raise UsageError(f"{kind} needs a vocabulary of at least 3, got {vocabulary}", "give --vocabulary 4096")
    return vocabulary


def _refuse_overflow(size: int, vocabulary: int | None) -> None:
    if vocabulary is not None and size > vocabulary:
        raise UsageError(
            f"the characters of this corpus alone fill {size:,} ids, more than the vocabulary of {vocabulary:,}",
            "give a larger --vocabulary, or train byte_bpe, which needs 256 bytes for any script",
        )
