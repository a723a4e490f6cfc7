"""Train a tokenizer of a named kind on texts."""

from collections.abc import Iterable, Iterator

from tokenizers import normalizers

from orrery.errors import DataError, UsageError
from orrery.text.chunks import cut
from orrery.text.kinds import TOKENIZERS, TokenizerKind
from orrery.text.tokenizer import Tokenizer, refuse_surrogates

MOST = 10_000_000
"""No vocabulary is larger: the engine makes room for all of it first, and ends the process where there is none."""


def train_tokenizer(
    kind: str,
    texts: Iterable[str],
    vocabulary: int | None = None,
    end: str = "<|endoftext|>",
    lowercase: bool = False,
) -> Tokenizer:
    """Train on texts (read once, streamed); the same texts give the same tokenizer for any number of threads.

    ``vocabulary`` counts every id, the end token included, and is that of the kind where not given; byte-level BPE
    needs at least 257, the other subword kinds one that holds every character. A corpus too small to fill it
    gives a smaller one. With ``lowercase`` the tokenizer turns every text into lower case first. Raises `DataError`
    for an empty corpus, `UsageError` for the kind, the numbers and for a byte-level BPE in lower case.
    """
    part = TOKENIZERS.find(kind)
    refuse_lowercase(kind, lowercase)
    wanted = _vocabulary(part, vocabulary)
    source = _Checked(texts)
    lower = normalizers.Lowercase()
    read = (lower.normalize_str(text) for text in source) if lowercase else iter(source)
    trained = part.train(read, wanted, end)
    if not source.words:
        raise DataError("the corpus has 0 tokens: it is empty or only whitespace", "give it text to learn from")
    _refuse_overflow(trained.get_vocab_size(with_added_tokens=True), wanted)
    if lowercase:
        trained.normalizer = lower
    return Tokenizer(trained.to_str(), {"end": end})


def refuse_lowercase(kind: str, lowercase: bool) -> None:
    """Raise `UsageError` for an exact kind in lower case, which would not give back what it reads."""
    if lowercase and TOKENIZERS.find(kind).exact:
        raise UsageError(
            f"{kind} gives back every byte of a text, and lower case would lose the capitals",
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


def _vocabulary(part: type[TokenizerKind], vocabulary: int | None) -> int:
    wanted = (part.vocabulary or MOST) if vocabulary is None else vocabulary
    if wanted > MOST:
        raise UsageError(f"a vocabulary of {wanted:,} is more than any model has, {MOST:,}", "give a smaller one")
    if wanted < part.least:
        raise UsageError(
            f"{part.kind} needs a vocabulary of at least {part.least}, got {wanted}",
            "leave the size of the vocabulary away to keep all of them"
            if part.vocabulary is None
            else f"it holds {part.holds}, the end token and what is learnt: give a vocabulary of 4096, for example",
        )
    return wanted


def _refuse_overflow(size: int, vocabulary: int) -> None:
    if size > vocabulary:
        raise UsageError(
            f"the characters of this corpus alone fill {size:,} ids, more than the vocabulary of {vocabulary:,}",
            "give a larger vocabulary, or train byte_bpe, which needs 256 bytes for any script",
        )
