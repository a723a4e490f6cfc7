"""Retrieval: which documents of a corpus a query finds by the vectors of both, and how high the right ones stand."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from orrery.data.rows.retrieval_sets import RetrievalSet
from orrery.errors import ModelFileError
from orrery.evaluation.evaluated import Done, Evaluated
from orrery.language_model.model import LanguageModel
from orrery.scores.retrieval import average_precision, hit_at, ndcg_of_ranks, recall_at, reciprocal_rank

CHUNK = 4_096
"""Documents whose vectors are in memory at once."""
DEEP = 100
"""Places of a ranking that are looked at."""
QUERY_PROMPTS, DOCUMENT_PROMPTS = ("query",), ("document", "passage", "corpus")
"""What a folder of sentence-transformers calls the prompts of the two sides, the likeliest first."""


def similarity(lm: LanguageModel) -> str:
    """Return how the folder compares vectors: by their cosine unless it says otherwise.

    Raises:
        ModelFileError: it says what is not built.
    """
    name = lm.sentences.similarity or "cosine"
    if name not in ("cosine", "dot", "euclidean", "manhattan"):
        message = f"{lm.folder}: similarity_fn_name = {str(name)[:40]!r}"
        raise ModelFileError(message, "cosine, dot, euclidean and manhattan are built")
    return name


def compared(name: str, one_NE: Tensor, other_ME: Tensor) -> Tensor:
    """Return how near each vector is to each other one, the greater the nearer: ``[N, M]``.

    Differs from: sentence-transformers, where torch takes euclidean distances of more than 25 vectors from products,
    |a|^2 + |b|^2 - 2 a.b: of near vectors little is left of their float32 digits, and equal ones are not equally near.
    """
    if name == "cosine":
        return F.normalize(one_NE, dim=-1) @ F.normalize(other_ME, dim=-1).T
    if name == "dot":
        return one_NE @ other_ME.T
    exact = "donot_use_mm_for_euclid_dist"
    return -torch.cdist(one_NE, other_ME, p=2 if name == "euclidean" else 1, compute_mode=exact)


def prompt_for(lm: LanguageModel, prompt: str | None, names: Sequence[str]) -> str | None:
    """Return the prompt of one side: what is asked for, else the folder's of one of these names, else its usual one."""
    return prompt if prompt is not None else next((name for name in names if name in lm.sentences.prompts), None)


def evaluate_retrieval(
    lm: LanguageModel,
    given: RetrievalSet,
    *,
    batch_size: int = 32,
    query_prompt: str | None = None,
    document_prompt: str | None = None,
    done: Done | None = None,
) -> Evaluated:
    """Return how well queries find the documents that answer them among all of a corpus.

    Documents of one score stand in the order of their names, as in sentence-transformers.

    Args:
        lm: a model whose vectors are compared.
        given: the queries, the corpus, and which belongs to which.
        batch_size: texts computed at once.
        query_prompt: as in ``lm.embed``; by default the folder's prompt ``query``.
        document_prompt: the same; by default its prompt ``document``, ``passage`` or ``corpus``.
        done: told after each batch.
    """
    said = done if done is not None else lambda text: None
    how: dict[str, Any] = {"batch_size": batch_size, "truncation": True}
    names, kind = list(given.queries), similarity(lm)
    queries_NE = lm.embed(
        list(given.queries.values()),
        prompt=prompt_for(lm, query_prompt, QUERY_PROMPTS),
        done=lambda count, total: said(f"{count:,} of {total:,} queries"),
        **how,
    )
    documents, size = sorted(given.corpus), len(given.corpus)
    best: list[list[tuple[float, str]]] = [[] for _ in names]
    prompt = prompt_for(lm, document_prompt, DOCUMENT_PROMPTS)
    for start in range(0, size, CHUNK):
        some = documents[start : start + CHUNK]
        vectors_ME = lm.embed(
            [given.corpus[name] for name in some],
            prompt=prompt,
            done=lambda count, _, before=start: said(f"{before + count:,} of {size:,} documents"),
            **how,
        )
        scores_NM = compared(kind, queries_NE, vectors_ME).numpy()
        for row, kept in zip(scores_NM, best, strict=True):
            # Names are sorted, so a stable order of scores is that of names where scores are equal.
            first = np.argsort(-row, kind="stable")[:DEEP]
            kept += [(float(row[place]), some[place]) for place in first]
            kept.sort(key=lambda one: (-one[0], one[1]))
            del kept[DEEP:]
    return _evaluated(given, names, best, kind)


def _evaluated(
    given: RetrievalSet, names: Sequence[str], best: Sequence[Sequence[tuple[float, str]]], kind: str
) -> Evaluated:
    ranked = [[name for _, name in kept] for kept in best]
    right = [set(given.grades[name]) for name in names]
    graded = [given.grades[name] for name in names]
    scores = [
        ndcg_of_ranks(10, ranked, graded),
        reciprocal_rank(ranked, right, 10),
        average_precision(ranked, right, DEEP),
        *(hit_at(k, ranked, right) for k in (1, 3, 5, 10)),
        *(recall_at(k, ranked, right) for k in (1, 3, 5, 10, 100)),
    ]
    details: list[Mapping[str, Any]] = [
        {"query": name, "right": sorted(own), "found": documents[:10], "scores": [round(s, 6) for s, _ in kept[:10]]}
        for name, own, documents, kept in zip(names, right, ranked, best, strict=True)
    ]
    notes = [*given.notes, f"{len(names):,} queries, {len(given.corpus):,} documents, compared by {kind}"]
    return Evaluated(scores, list(given.queries.values()), details, notes=notes)
