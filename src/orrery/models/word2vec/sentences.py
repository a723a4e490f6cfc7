"""From text to sentences of words: where a sentence ends, what a word is, and which pairs are one word."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import final

from orrery.models.word2vec.phrases import join_phrases, phrase_scores

Sentences = Iterable[Sequence[str]]

_WORD = re.compile(r"[^\W\d_]+(?:['\u2019][^\W\d_]+)*")
_PARAGRAPH_END = re.compile(r"\n\s*\n")


def letters(text: str) -> list[str]:
    """Return the runs of letters; an apostrophe between letters belongs to the word."""
    return _WORD.findall(text)


UNITS: dict[str, Callable[[str], list[str]]] = {"lines": str.splitlines, "paragraphs": _PARAGRAPH_END.split}
CUTS: dict[str, Callable[[str], list[str]]] = {"letters": letters, "spaces": str.split}


@final
class CutText:
    """The sentences of texts, cut again each time they are gone through, so that no text stays in memory."""

    def __init__(
        self, texts: Callable[[], Iterable[str]], unit: str = "lines", cut: str = "letters", lowercase: bool = True
    ) -> None:
        self._texts, self._unit, self._cut, self._lowercase = texts, UNITS[unit], CUTS[cut], lowercase

    def __iter__(self) -> Iterator[list[str]]:
        for text in self._texts():
            for sentence in self._unit(text.lower() if self._lowercase else text):
                if words := self._cut(sentence):
                    yield words


@final
class PhrasedSentences:
    """Sentences with their phrases as one word each; see `join_phrases`."""

    def __init__(self, sentences: Sentences, threshold: float) -> None:
        self._sentences, self._threshold = sentences, threshold
        scores = phrase_scores(sentences)
        self._scores = {pair: score for pair, score in scores.items() if score > threshold}

    def __iter__(self) -> Iterator[list[str]]:
        return join_phrases(self._sentences, self._scores, self._threshold)


def with_phrases(sentences: Sentences, passes: int, threshold: float = 100.0) -> Sentences:
    """Join phrases ``passes`` times, each time at half the threshold before: two, then up to four words, and so on."""
    for number in range(passes):
        sentences = PhrasedSentences(sentences, threshold / 2**number)
    return sentences
