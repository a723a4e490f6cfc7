"""What a trained matcher and its ranker find of texts held back, beside simple methods."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch

from orrery.scores.propensity import Propensities, propensity_precision_at
from orrery.scores.resampled import AdditiveScore, mean_of
from orrery.scores.retrieval import ndcg_of_ranks, precision_at, recall_at
from orrery.tasks._task import Done
from orrery.tasks.finetuning.findings import Findings, Mistake
from orrery.tasks.xbert import CLUSTERS
from orrery.tasks.xbert.baselines import neighbours, popular
from orrery.tasks.xbert.finishing import beside
from orrery.tasks.xbert.ranker import Ranking, grouped
from orrery.tasks.xbert.reading import matched
from orrery.tasks.xbert.saved import load
from orrery.tasks.xbert.xr_linear import tree_of_linear

if TYPE_CHECKING:
    from orrery.language_model.model import LanguageModel

FIRST = 10
"""Labels of a ranking that are kept."""


class Judge:
    """What rankings of labels are worth for the texts that are held back."""

    def __init__(self, source: Any) -> None:
        self.names = list(source.counts)
        self.right = [row.classes for row in source.held_back]
        self.propensities = Propensities(source.counts, len(source.train))

    def scores(self, rankings: Sequence[Ranking]) -> list[AdditiveScore]:
        """Return precision, propensity-scored precision, gain and recall of the first labels."""
        ranked = [[self.names[label] for label, _ in each] for each in rankings]
        grades: Sequence[Mapping[Any, float]] = [dict.fromkeys(own, 1.0) for own in self.right]
        return [
            *(precision_at(k, ranked, self.right) for k in (1, 3, 5)),
            *(propensity_precision_at(k, ranked, self.right, self.propensities) for k in (1, 3, 5)),
            ndcg_of_ranks(5, ranked, grades),
            *(recall_at(k, ranked, self.right) for k in (5, FIRST)),
        ]


def ranked_by_model(
    lm: "LanguageModel", texts: Sequence[str], clusters: int, done: Done | None = None
) -> tuple[list[Ranking], list[float]]:
    """Return the best labels of texts, and the share of all labels that was read for each."""
    saved = load(lm.stored.folder)
    words = saved.features.rows(texts)
    found = saved.words.beside(words, matched(lm, texts, saved.length, done))
    rows = beside(words, found)
    best = [each.best(clusters) for each in found]
    rankings = [saved.ranker.within(rows, number, groups, FIRST) for number, groups in enumerate(best)]
    read = [saved.ranker.read([group for group, _ in groups]) / len(saved.labels) for groups in best]
    return rankings, read


def simple(source: Any, texts: Sequence[str]) -> dict[str, list[Ranking]]:
    """Return the rankings of methods without an encoder, by their names; names of labels are texts for them too."""
    train, asked = source.rows, source.features.rows(texts)
    empty, nothing = torch.zeros(len(train), 0), torch.zeros(len(asked), 0)
    tree = tree_of_linear(train.beside(empty), source.own, grouped(source.cluster_of))
    return {
        "popularity": popular(source.own[: len(source.train)], len(texts), FIRST),
        "TF-IDF kNN": neighbours(train, source.own, asked, FIRST),
        "XR-Linear": tree.rank(asked.beside(nothing), FIRST),
    }


def findings(lm: "LanguageModel", source: Any, done: Done | None = None) -> Findings:
    """Return the scores of a model, those of simple methods on the same texts, and the surest mistakes."""
    judge, rows = Judge(source), source.held_back
    texts = [row.text for row in rows]
    rankings, read = ranked_by_model(lm, texts, CLUSTERS, done)
    others = {name: judge.scores(each) for name, each in simple(source, texts).items()}
    share = mean_of("labels read", f"share of all, {CLUSTERS} clusters", read, higher_is_better=False)
    wrong = [n for n, each in enumerate(rankings) if judge.names[each[0][0]] not in judge.right[n]]
    wrong.sort(key=lambda n: -rankings[n][0][1])
    return Findings(
        scores=(*judge.scores(rankings), share),
        examples=f"{len(rows):,} texts held back, {len(judge.names):,} labels",
        floors=[(name, scores[0]) for name, scores in others.items()],
        others=[(name, score) for name, scores in others.items() for score in scores[1:]],
        mistakes=[Mistake(texts[n], ", ".join(judge.right[n]), judge.names[rankings[n][0][0]]) for n in wrong],
    )
