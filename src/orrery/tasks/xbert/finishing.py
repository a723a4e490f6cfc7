"""The ranker of a trained matcher: what it learns from, and how."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch

from orrery.tasks._task import Done
from orrery.tasks.xbert.ranker import fitted, grouped
from orrery.tasks.xbert.reading import Matched, matched
from orrery.tasks.xbert.saved import SavedRanker
from orrery.tasks.xbert.words import clusters_by_words

if TYPE_CHECKING:
    from orrery.data.many_labels.features import SparseRows
    from orrery.language_model.model import LanguageModel

TAKEN = 2
"""Clusters that the matcher finds likeliest: their labels are negatives, where they are wrong."""


def learned_ranker(lm: "LanguageModel", source: Any, length: int, done: Done | None = None) -> SavedRanker:
    """Return the ranker over the words of texts and the vectors of an encoder.

    Args:
        lm: the trained encoder.
        source: the data, of kind many_labels.
        length: tokens of a row in training.
        done: told how many clusters are done.
    """
    texts = list(source.texts())
    found = matched(lm, texts, length)
    taken = [[group for group, _ in each.best(TAKEN)] for each in found]
    rows = beside(source.rows, found)
    told = done or (lambda count, total: None)
    ranker = fitted(rows, source.own, grouped(source.cluster_of), taken, done=told)
    words = clusters_by_words(source.rows, source.own, source.cluster_of, source.settings.encoder)
    return SavedRanker(list(source.counts), source.features, ranker, length, words)


def beside(rows: "SparseRows", found: Sequence[Matched]) -> "SparseRows":
    """Return the words of texts with the vectors of the encoder, and a column of ones."""
    return rows.beside(torch.stack([each.vector_E for each in found]))
