"""What a training of word vectors is of: its numbers, its pieces of text before and after drawing, its result."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from orrery.errors import UsageError
from orrery.models.word2vec.draws import Contexts, Ends, Ids, Targets
from orrery.models.word2vec.vectors import Vectors
from orrery.models.word2vec.vocabulary import Vocabulary, WordCorpus

Architecture = Callable[[Ids, Ends, int, np.uint64], Contexts]
"""`skip_gram` or `cbow`."""


@dataclass(frozen=True)
class Settings:
    """The numbers of a training; those of the C program where it has them.

    The rate is that of skip-gram; CBOW wants about three times as much (0.075): its gradient carries the 1/n of the
    mean, which the C program and gensim leave out (Irsoy et al. 2021). Recipes choose by the kind of model.
    """

    width: int = 100
    window: int = 5
    epochs: int = 5
    rate: float = 0.025
    final_rate: float = 0.0001
    sample: float = 1e-3
    chunk: int = 4_000
    workers: int = 1
    seed: int = 1337

    def __post_init__(self) -> None:
        """Raise `UsageError` for a number that cannot be."""
        for name in ("width", "window", "epochs", "chunk", "workers"):
            if getattr(self, name) < 1:
                raise UsageError(f"{name} is {getattr(self, name)}", f"{name} is at least 1")
        if not 0 <= self.final_rate <= self.rate or self.sample < 0:
            raise UsageError(
                f"rates {self.rate} to {self.final_rate}, sample {self.sample}",
                "the rate falls from `rate` to `final_rate`, none of them is negative",
            )


class Chunk(NamedTuple):
    """One piece of an epoch before anything is drawn: its text, its random stream, its learning rate."""

    corpus: WordCorpus
    numbers: tuple[int, int, int]
    rate: float


class Work(NamedTuple):
    """One piece of an epoch, drawn: only arithmetic is left."""

    contexts: Contexts
    targets: Targets
    rate: float


class Progress(NamedTuple):
    """Where the training is: words of all epochs so far, of how many, and the epoch's mean loss until now.

    ``measured`` is there once, when an epoch has ended; see `Trained`.
    """

    epoch: int
    words: int
    of: int
    loss: float
    measured: float | None = None


Draw = Callable[[Chunk], Work]
Step = Callable[[Work], float]
Stepped = tuple[int, float]
"""How many examples a chunk had and the sum of their losses; the chunk itself is gone, it has megabytes."""
Runner = Callable[[Iterator[Chunk], Draw, Step, int], Iterator[Stepped]]


@dataclass(frozen=True)
class Trained:
    """Both tables of a training, and the mean loss of an example in and after each epoch, in float64.

    ``losses`` are of the steps: each example's before its own step, but just after those of its neighbours, which
    share its words. That lowers them, the more so the larger the rate: as the rate falls they may rise while the
    model gets better. ``measured`` stand still: at rate 0, after the epoch, on the same part of the text each time.
    """

    vocabulary: Vocabulary
    vectors: NDArray[np.float32]
    weights: NDArray[np.float32]
    losses: tuple[float, ...]
    measured: tuple[float, ...]

    def keep(self) -> Vectors:
        """Throw the classifier away and keep the embeddings."""
        return Vectors(self.vocabulary.words, self.vectors)
