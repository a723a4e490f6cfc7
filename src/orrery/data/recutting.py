"""Texts cut into pieces anew each time they are read, so that a model meets many cuts of one word (BPE-dropout)."""

from collections.abc import Sequence
from random import Random
from typing import final

from orrery.errors import UsageError
from orrery.text.sampling import Sampler, bpe_dropout
from orrery.text.tokenizer import Tokenizer

CUTS = 32
"""Random cuts kept of each word: drawing one anew each time takes longer than small models take to learn from it."""


@final
class Recutter:
    """Ids of a text whose words are cut at random; a draw follows from the seed, the text's number and the step.

    Paper: Provilkov et al. 2020. Differs in that the cuts of a word are drawn among `CUTS` that were drawn once.
    """

    def __init__(self, sampler: Sampler, texts: Sequence[str], seed: int) -> None:
        self.sampler, self.texts, self.seed = sampler, texts, seed
        self._cuts: dict[str, list[list[int]]] = {}
        self._words: dict[int, list[str]] = {}

    def ids(self, number: int, step: int) -> list[int]:
        """Return the ids of a text as they are cut in a step."""
        rng = Random(f"{self.seed} {number} {step}")
        return [id for word in self._words_of(number) for id in rng.choice(self._cuts_of(word))]

    def _words_of(self, number: int) -> list[str]:
        if number not in self._words:
            self._words[number] = self.sampler.words(self.texts[number])
        return self._words[number]

    def _cuts_of(self, word: str) -> list[list[int]]:
        if word not in self._cuts:
            rng = Random(f"{self.seed} {word}")
            self._cuts[word] = [self.sampler.cut(word, rng) for _ in range(CUTS)]
        return self._cuts[word]


def with_dropout(tokenizer: Tokenizer, probability: float, key: str) -> Sampler:
    """Return what cuts words with merges left out.

    Raises:
        UsageError: the tokenizer is none of byte-pair encoding; ``key`` of the recipe asked for it.
    """
    try:
        return bpe_dropout(tokenizer, probability)
    except UsageError as error:
        raise UsageError(f"{key}: {error}", "name a tokenizer of kind byte_bpe, or leave the key out") from error
