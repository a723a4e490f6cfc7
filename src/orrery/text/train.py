"""Train a tokenizer of a named kind on texts."""

from collections.abc import Iterable, Iterator

from orrery.errors import DataError, UsageError
from orrery.text import bpe, characters
from orrery.text.tokenizer import Tokenizer, refuse_surrogates


def train_tokenizer(
    kind: str, texts: Iterable[str], vocabulary: int | None = None, end: str = "<|endoftext|>"
) -> Tokenizer:
    """Train on texts (read once, streamed); the same texts give the same tokenizer for any number of threads.

    ``vocabulary`` counts every id, the end token included; byte-level BPE needs one, of at least 257. A
    corpus too small to fill it gives a smaller one. Raises `DataError` for an empty corpus, `UsageError` for
    the numbers.
    """
    source = _Checked(texts)
    if kind == "byte_bpe":
        trained = bpe.train(iter(source), _byte_vocabulary(vocabulary), end)
    elif kind == "character":
        trained = characters.train(iter(source), _character_vocabulary(vocabulary), end)
    else:
        raise UsageError(f"unknown kind of tokenizer {kind!r}", "choose byte_bpe or character")
    if not source.words:
        raise DataError("the corpus has 0 tokens: it is empty or only whitespace", "give it text to learn from")
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
            yield text


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
            f"a character tokenizer needs a vocabulary of at least 3, got {vocabulary}",
            "leave --vocabulary away to keep every character",
        )
    return vocabulary
