"""What a model over items finds of the last item of each history, beside simple methods and for new items."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from orrery.data.batches.histories import numbers_of
from orrery.scores.ranks import SAMPLED, gain, hit_rate, mean_reciprocal
from orrery.scores.resampled import AdditiveScore, Resampled
from orrery.tasks._task import Done
from orrery.tasks.finetuning.findings import Findings, Mistake
from orrery.tasks.next_items.baselines import Ids, ItemNeighbours, MarkovGaps, Popularity, ranks, tuned
from orrery.tasks.next_items.counts import Counts, counts_of
from orrery.tasks.next_items.new_items import projected
from orrery.tasks.next_items.ranking import Judge, Judged, NewItems, items_of, ranked

if TYPE_CHECKING:
    from orrery.data.sources.interactions import InteractionSource
    from orrery.language_model.model import LanguageModel

SHOWN = 5
"""Items of a history that are shown of a mistake."""
LEAST = 2
"""Learned items with a text from which on others can be placed."""


class Problem:
    """Histories as tokens of a model: what is learned, what is asked, what is right.

    Attributes:
        learned: of each user.
        asked: of each user of whom something is held back, all but the last item.
        right: the last item of these.
        judge: which items are ranked, and how.
    """

    def __init__(self, lm: "LanguageModel", source: "InteractionSource") -> None:
        held = source.held_back
        self.learned = [numbers_of(lm.tokenizer, each.learned) for each in source.histories]
        self.asked = [numbers_of(lm.tokenizer, each.items[:-1]) for each in held]
        self.right = numbers_of(lm.tokenizer, (each.items[-1] for each in held))
        self.judge = Judge(items_of(lm), source.settings.seen, source.settings.sampled)

    @property
    def before(self) -> tuple[list[Ids], list[int]]:
        """The histories that choose a model: without their last two items, and the last item but one."""
        return [each[:-1] for each in self.asked], [each[-1] for each in self.asked]

    def markov(self) -> MarkovGaps:
        """Return what followed what, with the decay that is best on the items before the last."""
        judge, size = self.judge, len(self.judge.items)
        decay, _ = tuned(lambda d: MarkovGaps.counted(self.learned, size, d), *self.before, judge.items, judge.seen)
        return MarkovGaps.counted(self.learned, size, decay)

    def floors(self) -> list[tuple[str, Any]]:
        """Return the ranks that counting gives, by the name of the method; decays are chosen on the items before."""
        size, items, seen = len(self.judge.items), self.judge.items, self.judge.seen
        before = self.before
        near, neighbours = tuned(lambda d: ItemNeighbours(self.learned, size, d), *before, items, seen)
        markov = self.markov()
        methods = (
            ("popularity", Popularity.counted(self.learned, size)),
            (f"item-kNN, an item back counts {near:g}", neighbours),
            (f"Markov over gaps 1 to 5, a gap more counts {markov.decay:g}", markov),
        )
        found = [(name, ranks(method, self.asked, self.right, items, seen)) for name, method in methods]
        return sorted(found, key=lambda each: gain(10, each[1]).score)  # the best one is named in the report


def findings(lm: "LanguageModel", source: "InteractionSource", length: int, done: Done | None = None) -> Findings:
    """Return scores over all items, floors, what sampling would say, new items, and the surest mistakes."""
    problem, counts = Problem(lm, source), counts_of(lm)
    unseen = sorted(set(problem.right) - {item for each in problem.learned for item in each})
    new = unlearned(lm, source, problem, unseen)
    plain = ranked(lm, problem.asked, problem.right, problem.judge, length, done=done, counts=counts)
    found = np.array([each.rank for each in plain])
    floors = problem.floors()
    alone = [] if counts is None else ranked(lm, problem.asked, problem.right, problem.judge, length)
    how = f"{int(problem.judge.items.sum())} items ranked|seen:{'ranked' if problem.judge.seen else 'left out'}"
    scores: list[Resampled] = [score(k, found, how) for k in (10, 5) for score in (gain, hit_rate)]
    scores.append(mean_reciprocal(found, how))
    more, others = of_unseen(lm, problem, unseen, new, (found, floors), length, counts)
    if alone:
        others = [("the model without counts", gain(10, [each.rank for each in alone], how)), *others]
    left = "" if problem.judge.seen else ", without those of the history"
    return Findings(
        scores=(*scores, *sampled(plain, problem.judge.sampled), *more),
        examples=f"{len(found):,} last items, {int(problem.judge.items.sum()):,} items ranked{left}",
        floors=[(name, gain(10, each, how)) for name, each in floors],
        others=[*((name, hit_rate(10, each, how)) for name, each in floors), *others],
        mistakes=mistakes(lm, source, plain),
    )


def sampled(plain: Sequence[Judged], items: int) -> list[Resampled]:
    """Return what the scores would be among a few items drawn at random, with the warning; nothing unless asked for."""
    few = [each.sampled for each in plain if each.sampled is not None]
    how = f"among {items} drawn items and the right one|{SAMPLED}"
    return [renamed(score, "sampled") for score in (gain(10, few, how), hit_rate(10, few, how))] if few else []


def renamed(score: AdditiveScore, what: str) -> Resampled:
    """Return a score whose name says what is special about it."""
    return replace(score, name=f"{score.name} {what}")


def unlearned(
    lm: "LanguageModel", source: "InteractionSource", problem: Problem, unseen: Sequence[int]
) -> NewItems | None:
    """Return the items that are scored on and were never learned, by their texts, where there are texts for them."""
    texts, known = source.item_texts, {token: item for item, token in zip(*_tokens(lm, source), strict=True)}
    learned = {known[token]: token for token in sorted({t for each in problem.learned for t in each}) if token in known}
    learned = {item: token for item, token in learned.items() if item in texts}
    ids = [token for token in unseen if known.get(token) in texts]
    if not ids or len(learned) < LEAST:
        return None
    return projected(lm, texts, learned, [known[token] for token in ids], ids=tuple(ids))


def _tokens(lm: "LanguageModel", source: "InteractionSource") -> tuple[Sequence[str], list[int]]:
    """Return all items and their tokens."""
    return source.items, numbers_of(lm.tokenizer, source.items)


def of_unseen(
    lm: "LanguageModel", problem: Problem, unseen: Sequence[int], new: NewItems | None, known: tuple[Any, Any],
    length: int, counts: Counts | None = None,
) -> tuple[list[Resampled], list[tuple[str, Resampled]]]:  # fmt: skip
    """Return the hits where what came next was never learned: with its text, without, and of the simple methods."""
    found, floors = known
    here = [number for number, token in enumerate(problem.right) if token in set(unseen)]
    if not here:
        return [], []
    how = f"{len(unseen)} items that no history has that is learned from"
    others = [(name, renamed(hit_rate(10, each[here], how), "unseen")) for name, each in floors]
    if new is None:
        return [renamed(hit_rate(10, found[here], how), "unseen")], others
    asked, right = [problem.asked[n] for n in here], [problem.right[n] for n in here]
    by_text = [each.rank for each in ranked(lm, asked, right, problem.judge, length, new, counts=counts)]
    others.append(("the model without their texts", renamed(hit_rate(10, found[here], how), "unseen")))
    return [renamed(hit_rate(10, by_text, f"{how}, ranked by their texts"), "unseen")], others


def mistakes(lm: "LanguageModel", source: "InteractionSource", plain: Sequence[Judged]) -> list[Mistake]:
    """Return the histories whose first item was another, the surest first."""
    from orrery.data.rows.histories import shown

    wrong = [(each, history) for each, history in zip(plain, source.held_back, strict=True) if each.rank > 1]
    wrong.sort(key=lambda pair: -pair[0].chance)
    return [
        Mistake(
            " > ".join(history.items[:-1][-SHOWN:]),
            history.items[-1],
            shown(lm.tokenizer.token(each.best)),
            each.chance,
        )
        for each, history in wrong
    ]
