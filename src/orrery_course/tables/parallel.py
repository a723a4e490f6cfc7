"""The course's table for any parallel text: WDict, C2, separate and joint BPE, on lines that none of them has seen.

Paper: Sennrich, Haddow and Birch 2016, tables 2 to 5. No model translates here: on the right of an arrow stands the
reference as each system would have to write it.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from tokenizers import pre_tokenizers

from orrery.errors import DataError
from orrery.text.comparison import Measures, measure
from orrery.text.tokenizer import Tokenizer
from orrery.text.train import train_tokenizer
from orrery_course.tables import dictionary

Pair = tuple[str, str]

HELD_BACK = 20
"""Every so many-th pair is kept from training and measured."""

WORDS = pre_tokenizers.Whitespace()
ARROW = " → "


@dataclass(frozen=True)
class System:
    """A way to cut both languages; joint where the two tokenizers are one."""

    source: Tokenizer
    target: Tokenizer

    def row(self, pair: Pair) -> str:
        """Return the pieces of both sides, as on the slide."""
        return ARROW.join(" ".join(pieces(side, text)) for side, text in zip(self.sides, pair, strict=True))

    def measures(self, pairs: Sequence[Pair]) -> list[Measures]:
        """Return the measures of each side."""
        return [measure(side, texts) for side, texts in zip(self.sides, zip(*pairs, strict=True), strict=True)]

    def consistent(self, words: Sequence[str]) -> int:
        """Count the words that both sides cut alike."""
        return sum(pieces(self.source, word) == pieces(self.target, word) for word in words)

    @property
    def sides(self) -> tuple[Tokenizer, Tokenizer]:
        """Source and target."""
        return self.source, self.target


@dataclass(frozen=True)
class WordSystem:
    """Whole words, the most frequent of each language, and a dictionary for the others."""

    known: tuple[frozenset[str], frozenset[str]]
    table: dictionary.Table
    translations: dict[str, str]

    def row(self, pair: Pair) -> str:
        """Return the reference with unknown words, and after the arrow what the dictionary puts there."""
        source, target = map(words, pair)
        hidden = dictionary.hide(target, self.known[1])
        if not source or dictionary.UNKNOWN not in hidden:
            return " ".join(hidden)
        places = dictionary.align(source, target, self.table)
        return " ".join(hidden) + ARROW + " ".join(dictionary.restore(hidden, source, places, self.translations))

    def measures(self, pairs: Sequence[Pair]) -> list[Measures]:
        """Return the measures of each side: a token a word, unknown outside the shortlist."""
        return [self._measure(known, texts) for known, texts in zip(self.known, zip(*pairs, strict=True), strict=True)]

    def _measure(self, known: frozenset[str], texts: Sequence[str]) -> Measures:
        cut = [words(text) for text in texts]
        return Measures(
            vocabulary=len(known) + 1,
            bytes=sum(len(text.encode()) for text in texts),
            words=sum(len(text.split()) for text in texts),
            tokens=sum(map(len, cut)),
            unknown=sum(word not in known for row in cut for word in row),
        )


def words(text: str) -> list[str]:
    """Cut into words and runs of punctuation."""
    return [word for word, _ in WORDS.pre_tokenize_str(text)]


def pieces(tokenizer: Tokenizer, text: str) -> list[str]:
    """Return the tokens of a text as they are read, without the space that marks a word's beginning."""
    return [tokenizer.token(id).strip() or "␣" for id in tokenizer.encode(text)]


def split(pairs: Sequence[Pair]) -> tuple[list[Pair], list[Pair]]:
    """Return the pairs to train on and every twentieth, held back. Raises `DataError` for fewer than two pairs."""
    if len(pairs) < 2:
        raise DataError(f"the parallel text has {len(pairs)} pairs of lines", "give two files of two or more lines")
    train = [pair for place, pair in enumerate(pairs) if place % HELD_BACK]
    return train, list(pairs[::HELD_BACK])


@dataclass(frozen=True)
class Systems:
    """All systems of the table."""

    word: WordSystem
    subword: Mapping[str, System]

    @property
    def by_name(self) -> dict[str, System | WordSystem]:
        """The systems in the order of the slide."""
        return {"WDict": self.word, **self.subword}

    def table(self, pair: Pair) -> dict[str, str]:
        """Return the rows of the slide for one pair, by name."""
        rows = {name: system.row(pair) for name, system in self.by_name.items()}
        return {"source": pair[0], "reference": pair[1], **rows}


def train_systems(pairs: Sequence[Pair], vocabulary: int, starting: Callable[[str], None]) -> Systems:
    """Train all systems, each language with ``vocabulary`` ids, joint BPE with half as many again for both.

    ``starting`` is told the name of each before its training. Raises `UsageError` where characters, or pairs of
    them, alone fill the vocabulary.
    """
    source, target = ([pair[side] for pair in pairs] for side in (0, 1))
    starting("WDict")
    word = _word_system(pairs, vocabulary)
    starting("C2")
    bigram = System(train_tokenizer("bigram", source, vocabulary), train_tokenizer("bigram", target, vocabulary))
    starting("BPE separate")
    separate = System(*(train_tokenizer("char_bpe", texts, vocabulary) for texts in (source, target)))
    starting("BPE joint")
    both = train_tokenizer("char_bpe", [*source, *target], vocabulary * 3 // 2)
    return Systems(word, {"C2": bigram, "BPE separate": separate, "BPE joint": System(both, both)})


def shared_words(pairs: Sequence[Pair]) -> list[str]:
    """Return the words that stand on both sides of one pair, most of them names, with the space before them."""
    shared = {word for source, target in pairs for word in {*words(source)} & {*words(target)} if word.isalpha()}
    return [f" {word}" for word in sorted(shared)]


def telling(pairs: Sequence[Pair], system: WordSystem, count: int) -> list[Pair]:
    """Return the ``count`` different pairs whose references have the greatest share of unknown words."""

    def share(pair: Pair) -> float:
        target = words(pair[1])
        return sum(word not in system.known[1] for word in target) / (len(target) or 1)

    return sorted(dict.fromkeys(pairs), key=share, reverse=True)[:count]


def _word_system(pairs: Sequence[Pair], vocabulary: int) -> WordSystem:
    cut = [(words(source), words(target)) for source, target in pairs]
    known = []
    for side in (0, 1):
        counts = Counter(word for pair in cut for word in pair[side])
        # One id is the unknown word's.
        known.append(frozenset(sorted(counts, key=lambda word: (-counts[word], word))[: vocabulary - 1]))
    table = dictionary.learn(cut)
    return WordSystem((known[0], known[1]), table, dictionary.back_off(table))
