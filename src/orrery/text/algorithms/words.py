"""One id a word between whitespace: what training never saw becomes ``<OOV>``."""

from collections import Counter
from collections.abc import Iterator, Sequence

from tokenizers import Tokenizer, models, pre_tokenizers

UNKNOWN = "<OOV>"


def train(texts: Iterator[str], vocabulary: int | None, end: str) -> Tokenizer:
    """Take every word (or the most frequent that fit), in code point order after ``<OOV>``; end comes last."""
    counts: Counter[str] = Counter()
    cut = pre_tokenizers.WhitespaceSplit()
    for text in texts:
        counts.update(word for word, _ in cut.pre_tokenize_str(text))
    limit = None if vocabulary is None else vocabulary - 2
    kept = sorted(counts, key=lambda word: (-counts[word], word))[:limit]
    tokenizer = of_words([UNKNOWN, *sorted({*kept} - {UNKNOWN, end})])
    # Outside the model's own words, so that a text that spells it does not get the control id.
    tokenizer.add_special_tokens([end])
    return tokenizer


def of_words(words: Sequence[str]) -> Tokenizer:
    """Give each word its place as its id."""
    tokenizer = Tokenizer(models.WordLevel({word: id for id, word in enumerate(words)}, unk_token=UNKNOWN))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return tokenizer
