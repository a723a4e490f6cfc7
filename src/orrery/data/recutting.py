"""Texts cut into pieces anew each time they are read, so that a model meets many cuts of one word (BPE-dropout)."""

from collections.abc import Sequence
from random import Random
from typing import final

from orrery.errors import UsageError
from orrery.text.sampling import Sampler, bpe_dropout
from orrery.text.tokenizer import Tokenizer

CUTS = 32
"""Random cuts of a word, each drawn once: drawing all anew takes longer than small models take to learn from them."""


@final
class Recutter:
    """Ids of a text whose words are cut at random; a draw follows from the seed, the text's number and the step.

    Paper: Provilkov et al. 2020. Differs in that a word has `CUTS` random cuts, of which each reading takes one.
    """

    def __init__(self, sampler: Sampler, texts: Sequence[str], seed: int) -> None:
        self.sampler, self.texts, self.seed = sampler, texts, seed
        self._words: dict[int, list[str]] = {}
        self._cuts: dict[tuple[str, int], list[int]] = {}

    def ids(self, number: int, step: int) -> list[int]:
        """Return the ids of a text as they are cut in a step."""
        if number not in self._words:
            self._words[number] = self.sampler.words(self.texts[number])
        rng = Random(f"{self.seed} {number} {step}")
        return [id for word in self._words[number] for id in self._cut(word, rng.randrange(CUTS))]

    def _cut(self, word: str, which: int) -> list[int]:
        if (word, which) not in self._cuts:
            self._cuts[word, which] = self.sampler.cut(word, Random(f"{self.seed} {which} {word}"))
        return self._cuts[word, which]


def with_dropout(tokenizer: Tokenizer, probability: float, key: str) -> Sampler:
    """Return what cuts words with merges left out.

    Raises:
        UsageError: the tokenizer is none of byte-pair encoding; ``key`` of the recipe asked for it.
    """
    try:
        return bpe_dropout(tokenizer, probability)
    except UsageError as error:
        raise UsageError(f"{key}: {error}", "name a tokenizer of kind byte_bpe, or leave the key out") from error
