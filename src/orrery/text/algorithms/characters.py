"""One id a character: the simplest tokenizer, of any script; what training never saw becomes ``<unk>``."""

from collections import Counter
from collections.abc import Iterator, Sequence

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers

UNKNOWN = "<unk>"
REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


def pre_tokenizer() -> pre_tokenizers.PreTokenizer:
    """Cut between any two code points, line ends included."""
    return pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated")


def train(texts: Iterator[str], vocabulary: int | None, end: str) -> Tokenizer:
    """Take every character (or the most frequent that fit), in code point order after the two special tokens.

    ``<unk>`` is not a word of the text: the five characters "<unk>" encode as five characters.
    """
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update(text)
    limit = None if vocabulary is None else vocabulary - 2
    # Ties broken by code point, so that the choice does not depend on the order of the texts.
    kept = sorted(counts, key=lambda character: (-counts[character], character))[:limit]
    tokenizer = _of_words([end, UNKNOWN, *sorted(kept)])
    tokenizer.add_special_tokens([end])
    return tokenizer


def listed(characters: Sequence[str]) -> Tokenizer:
    """Return the tokenizer of a list by ids that has no token for what it lacks: ``<unk>`` stands behind its end.

    A model with a row for each of them has none for that, and refuses a text with another character.
    """
    tokenizer = _of_words([*characters, UNKNOWN])
    tokenizer.add_special_tokens([UNKNOWN])
    return tokenizer


def _of_words(words: Sequence[str]) -> Tokenizer:
    tokenizer = Tokenizer(models.WordLevel({word: id for id, word in enumerate(words)}, unk_token=UNKNOWN))
    tokenizer.pre_tokenizer = pre_tokenizer()
    tokenizer.decoder = decoders.Sequence([decoders.Replace(UNKNOWN, REPLACEMENT), decoders.Fuse()])
    return tokenizer
