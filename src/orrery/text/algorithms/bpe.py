r"""Byte-level byte-pair encoding: 256 bytes, then the most frequent adjacent pair is merged, again and again.

Papers: Sennrich, Haddow and Birch 2016 (pair merging); Radford et al. 2019, section 2.2 (on bytes, within
words).

A text is first cut into words by the pattern of GPT-2, and no merge crosses a cut.

Differs from GPT-2: no piece is longer than `PIECE` characters. A megabyte without a space would otherwise be
one word, and training on it quadratic. Pieces are cut, never dropped, so decoding still gives back every
byte; ordinary words are shorter and come out as in GPT-2.
"""

from collections.abc import Iterator

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

PIECE = 64
"""Longest piece, in characters, that merges can work on."""

BYTES = 256

CONTRACTIONS = "'s|'t|'re|'ve|'m|'ll|'d"
LETTERS = rf"\p{{L}}{{1,{PIECE}}}"
LETTERS_AND_MARKS = rf"\p{{L}}[\p{{L}}\p{{M}}]{{0,{PIECE - 1}}}"
OTHERS = rf" ?\p{{N}}{{1,{PIECE}}}| ?[^\s\p{{L}}\p{{N}}]{{1,{PIECE}}}|\s{{1,{PIECE}}}(?!\S)|\s{{1,{PIECE}}}"
WORDS = f"{CONTRACTIONS}| ?{LETTERS}|{OTHERS}"
MARKED_WORDS = f"{CONTRACTIONS}| ?{LETTERS_AND_MARKS}|{OTHERS}"


def words(pattern: str = WORDS) -> pre_tokenizers.PreTokenizer:
    """Cut into words, the space before a word kept with it."""
    return pre_tokenizers.Split(Regex(pattern), "isolated")


def marked_words() -> pre_tokenizers.PreTokenizer:
    """Cut as `words` does, with the marks of a letter, which write the vowels of many scripts, kept with it."""
    return words(MARKED_WORDS)


def pre_tokenizer() -> pre_tokenizers.PreTokenizer:
    """Cut into words, then write each byte as one visible character."""
    return pre_tokenizers.Sequence([words(), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


def train(texts: Iterator[str], vocabulary: int, end: str) -> Tokenizer:
    """Learn merges until the vocabulary (end token, 256 bytes, merges) is full or no pair occurs twice."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizer()
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        min_frequency=2,
        special_tokens=[end],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer
