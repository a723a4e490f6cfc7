"""The three ways a word is predicted: which output rows are touched, and the loss by the plain definition."""

from typing import TYPE_CHECKING, Protocol, final, runtime_checkable

import numpy as np

from orrery.errors import UsageError
from orrery.models.word2vec.draws import Ids, Targets, with_negatives, with_paths
from orrery.models.word2vec.huffman import HuffmanPaths
from orrery.models.word2vec.negatives import NoiseTable
from orrery.models.word2vec.vocabulary import Vocabulary

if TYPE_CHECKING:  # the compiled passes need no torch: 200 MB less
    from torch import Tensor


@runtime_checkable
class WordLoss(Protocol):
    """How the predicted word becomes labelled output rows, and what those cost."""

    rows: int
    labelled: bool

    def targets(self, words: Ids, key: np.uint64) -> Targets:
        """Return the output rows of each predicted word."""

    def loss(self, hidden: "Tensor", weights: "Tensor", rows: "Tensor", labels: "Tensor") -> "Tensor":
        """Return the loss of one example from the whole table of output rows."""


@final
class NegativeSampling:
    """The word against ``negatives`` drawn words, one logistic regression each."""

    labelled = True

    def __init__(self, vocabulary: Vocabulary, negatives: int = 5, power: float = 0.75) -> None:
        if negatives < 1:
            raise UsageError(f"negative sampling with {negatives} negatives learns nothing", "take at least 1")
        self.rows, self.negatives = len(vocabulary.words), negatives
        self.noise = NoiseTable(vocabulary.counts, power)

    def targets(self, words: Ids, key: np.uint64) -> Targets:
        """Return each word and its negatives; see `with_negatives`."""
        return with_negatives(words, self.negatives, self.noise.limits, self.noise.others, key)

    def loss(self, hidden: "Tensor", weights: "Tensor", rows: "Tensor", labels: "Tensor") -> "Tensor":
        """Return `definition.labelled_rows` of the drawn rows."""
        from orrery.models.word2vec import definition

        return definition.labelled_rows(hidden, weights[rows], labels)


@final
class HierarchicalSoftmax:
    """The turns on the way from the root of the Huffman tree to the word."""

    labelled = True

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.rows = len(vocabulary.words) - 1
        self.paths = HuffmanPaths(vocabulary.counts)

    def targets(self, words: Ids, key: np.uint64) -> Targets:
        """Return the path to each word; nothing is drawn."""
        return with_paths(words, self.paths.nodes, self.paths.turns, self.paths.ends)

    def loss(self, hidden: "Tensor", weights: "Tensor", rows: "Tensor", labels: "Tensor") -> "Tensor":
        """Return `definition.labelled_rows` of the path."""
        from orrery.models.word2vec import definition

        return definition.labelled_rows(hidden, weights[rows], labels)


@final
class FullSoftmax:
    """The word against every word: the model the other two approximate; every step touches the whole table."""

    labelled = False

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.rows = len(vocabulary.words)

    def targets(self, words: Ids, key: np.uint64) -> Targets:
        """Return the word itself; nothing is drawn."""
        return Targets(words, np.arange(1, len(words) + 1), np.ones(len(words), np.bool_))

    def loss(self, hidden: "Tensor", weights: "Tensor", rows: "Tensor", labels: "Tensor") -> "Tensor":
        """Return `definition.full_softmax`."""
        from orrery.models.word2vec import definition

        return definition.full_softmax(hidden, weights, rows[0])
