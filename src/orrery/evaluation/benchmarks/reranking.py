"""Reranking: the order that a model gives the candidates of each query."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from orrery.data.corpora import read_placed_rows
from orrery.errors import DataError
from orrery.evaluation.benchmarks.retrieval import DOCUMENT_PROMPTS, QUERY_PROMPTS, compared, prompt_for, similarity
from orrery.evaluation.evaluated import Done, Evaluated
from orrery.language_model.model import LanguageModel
from orrery.scores.resampled import AdditiveScore
from orrery.scores.retrieval import Lists, average_precision_of_scores, ndcg_at, reciprocal_rank

_HINT = 'a line is {"query": "...", "positive": ["..."], "negative": ["..."]}, or has "documents" as they were found'


@dataclass(frozen=True)
class Candidates:
    """A query with its documents, of which the first ``right`` answer it; ``before`` are as they were found."""

    query: str
    documents: tuple[str, ...]
    right: int
    before: tuple[str, ...] = ()


def read_candidates(source: str | Path) -> list[Candidates]:
    """Return the queries of a file of JSON lines, as CrossEncoderRerankingEvaluator takes them.

    Raises:
        DataError: a line has no query, no list of documents, or both kinds of lists.
    """
    queries = list(_candidates(source))
    if not queries:
        raise DataError(f"{source}: no queries", _HINT)
    return queries


def _candidates(source: str | Path) -> Iterator[Candidates]:
    for where, row in read_placed_rows(source, ()):
        query, right = row.get("query"), _listed(row.get("positive"))
        others, before = (_listed(row.get(key)) for key in ("negative", "documents"))
        if not isinstance(query, str) or right is None or (others is None) == (before is None):
            raise DataError(f"{where}: no query with positive and one of negative and documents", _HINT)
        wrong = others if others is not None else [text for text in before or () if text not in right]
        if not right and not wrong:
            raise DataError(f"{where}: the query has no documents", _HINT)
        yield Candidates(query, (*right, *wrong), len(right), tuple(before or ()))


def _listed(value: Any) -> list[str] | None:
    texts = [value] if isinstance(value, str) else value
    good = isinstance(texts, list | tuple) and all(isinstance(text, str) for text in texts)
    return list(texts) if good else None


def evaluate_reranking(
    lm: LanguageModel, queries: Sequence[Candidates], *, batch_size: int = 32, done: Done | None = None
) -> Evaluated:
    """Return how high the right documents stand among the candidates of their query.

    A cross-encoder scores query and document together; any other model compares their vectors. A query without a right
    document has 0.

    Args:
        lm: the model.
        queries: with their candidates.
        batch_size: pairs or texts computed at once.
        done: told after each batch.
    """
    flat = _scores(lm, queries, batch_size, done if done is not None else lambda text: None)
    ends = np.cumsum([len(one.documents) for one in queries])
    scores = [list(map(float, part)) for part in np.split(flat, ends[:-1])]
    gains = [[1] * one.right + [0] * (len(one.documents) - one.right) for one in queries]
    measures = _measures(scores, gains)
    notes = [f"{len(queries):,} queries, {int(ends[-1]):,} documents"]
    if all(one.before for one in queries):
        before = _measures(*_as_found(queries))
        notes += [f"as they were found: {score.name} {score.score:.4f}" for score in before]
    details = [
        {"query": one.query, "right": one.right, "scores": [round(score, 6) for score in own]}
        for one, own in zip(queries, scores, strict=True)
    ]
    return Evaluated(measures, [one.query for one in queries], details, notes=notes)


def _scores(lm: LanguageModel, queries: Sequence[Candidates], batch_size: int, said: Done) -> np.ndarray[Any, Any]:
    how: dict[str, Any] = {"done": lambda count, total: said(f"{count:,} of {total:,}"), "batch_size": batch_size}
    pairs = [(one.query, document) for one in queries for document in one.documents]
    if lm.is_cross_encoder:
        lm.check_ranks()
        return lm.score_pairs(pairs, **how).double().numpy()
    kind, how = similarity(lm), {**how, "truncation": True}
    query_vectors = lm.embed([one.query for one in queries], prompt=prompt_for(lm, None, QUERY_PROMPTS), **how)
    texts = list(dict.fromkeys(document for _, document in pairs))
    places = {text: place for place, text in enumerate(texts)}
    vectors = lm.embed(texts, prompt=prompt_for(lm, None, DOCUMENT_PROMPTS), **how)
    rows = [
        compared(kind, query_vectors[[number]], vectors[[places[text] for text in one.documents]])[0]
        for number, one in enumerate(queries)
    ]
    return np.concatenate([row.double().numpy() for row in rows])


def _as_found(queries: Sequence[Candidates]) -> tuple[Lists, Lists]:
    """Return scores and gains of the documents in the order in which they were found; right ones that lack are last."""
    scores, gains = [], []
    for one in queries:
        right = set(one.documents[: one.right])
        own = [int(text in right) for text in one.before]
        own += [1] * (one.right - sum(own)) if sum(own) else []
        gains.append(own)
        scores.append(list(range(len(own), 0, -1)))
    return scores, gains


def _measures(scores: Lists, gains: Lists) -> list[AdditiveScore]:
    """Return mean average precision, reciprocal rank and gain at ten; equal scores stand last first in the second."""
    ranked = [[int(n) for n in np.argsort(own)[::-1]] for own in scores]
    right = [{n for n, gain in enumerate(own) if gain} or {-1} for own in gains]
    return [average_precision_of_scores(scores, gains), reciprocal_rank(ranked, right, 10), ndcg_at(10, scores, gains)]
