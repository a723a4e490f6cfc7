"""Texts cut into pieces again each time they are read, so that a model meets many cuts of one word (BPE-dropout)."""

from collections.abc import Sequence
from functools import lru_cache
from random import Random
from typing import final

from orrery.errors import UsageError
from orrery.text.algorithms.sampling import CutSampler, bpe_dropout
from orrery.text.tokenizer import Tokenizer

CUTS = 32
"""Random cuts of a word, each drawn once: drawing all again takes longer than small models take to learn from them."""

KEPT = 2**19
"""Cuts kept in memory, about 100 MB: those of the words of a small corpus, of a large one those of frequent words."""


@final
class Recutter:
    """Ids of a text whose words are cut at random; a draw follows from the seed, the text's number and the step.

    Paper: Provilkov et al. 2020. Differs in that a word has `CUTS` random cuts, of which each reading takes one.
    """

    def __init__(self, sampler: CutSampler, texts: Sequence[str], seed: int) -> None:
        self.sampler, self.texts, self.seed = sampler, texts, seed
        self._cut = lru_cache(maxsize=KEPT)(self._drawn)

    def ids(self, number: int, step: int) -> list[int]:
        """Return the ids of a text as they are cut in a step."""
        rng = Random(f"{self.seed} {number} {step}")
        words = self.sampler.words(self.texts[number])
        return [id for word in words for id in self._cut(word, rng.randrange(CUTS))]

    def _drawn(self, word: str, which: int) -> list[int]:
        return self.sampler.cut(word, Random(f"{self.seed} {which} {word}"))


def with_dropout(tokenizer: Tokenizer, probability: float, key: str) -> CutSampler:
    """Return what cuts words with merges left out.

    Raises:
        UsageError: the tokenizer is none of byte-pair encoding; ``key`` of the recipe asked for it.
    """
    try:
        return bpe_dropout(tokenizer, probability)
    except UsageError as error:
        raise UsageError(f"{key}: {error.message}", f"name a tokenizer of kind byte_bpe, or leave {key} out") from error
