"""A model over items, asked: the scores of all items for histories, and the ranks of what came next."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from orrery.data.batches.histories import asked_at_mask, asked_behind
from orrery.data.rows.histories import shown
from orrery.errors import UsageError
from orrery.generation.batched import in_batches
from orrery.models.next_items import scores_of
from orrery.scores.ranks import ranks_of
from orrery.tasks._task import Done
from orrery.tasks.next_items.baselines import candidates
from orrery.tasks.next_items.counts import Counts

if TYPE_CHECKING:
    from orrery.language_model.model import LanguageModel

WHOLE = "WordLevel"
"""What the library calls a tokenizer whose tokens are whole words."""
Ids = Sequence[int]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class NewItems:
    """Items that a model has not learned.

    Attributes:
        names: what they are called.
        rows: of the head's table, [N, D].
        bias: that of each.
        ids: the tokens whose scores they replace; nothing where the tokenizer does not know them.
    """

    names: tuple[str, ...]
    rows: torch.Tensor
    bias: float
    ids: tuple[int, ...] = ()


def items_of(lm: "LanguageModel") -> NDArray[np.bool_]:
    """Return which tokens are items: all but control tokens and the unknown.

    Raises:
        UsageError: the model is none over items: it reads a source, or has no head over its vocabulary.
    """
    head = lm.model.named_heads.get(main_head(lm))
    table: Any = getattr(head, "vocabulary", None)
    if lm.model.spec.reads_source or table is None:
        raise UsageError("this model ranks no items", "load one that orrery finetune next-item has trained")
    found: NDArray[np.bool_] = np.zeros(len(table.weight), np.bool_)
    found[: lm.tokenizer.size] = True
    found[[id for id in (*lm.tokenizer.control, lm.tokenizer.unknown_id) if id is not None]] = False
    return found


def main_head(lm: "LanguageModel") -> str:
    """Return the name of the head that scores the items; nothing where there is none."""
    names = lm.model.spec.head_names
    return "masked" if "masked" in names else next(iter(names), "")


def names_of(lm: "LanguageModel") -> dict[str, int]:
    """Return the token of each item by its name.

    Raises:
        UsageError: its tokens are no whole items.
    """
    kind = (lm.tokenizer.definition.get("model") or {}).get("type")
    if kind != WHOLE:
        message = f"the tokens of this model are pieces of text ({kind}), and no items"
        raise UsageError(message, "load a model that orrery finetune next-item has trained")
    return {shown(lm.tokenizer.token(int(id))): int(id) for id in np.flatnonzero(items_of(lm)[: lm.tokenizer.size])}


def question(lm: "LanguageModel", history: Ids, length: int) -> Mapping[str, Any]:
    """Return what the model reads to say what comes after a history of at least one item."""
    if lm.model.spec.writes:
        return asked_behind(history, length)
    return asked_at_mask(lm.tokenizer, history, length)


@torch.no_grad()
def scores(lm: "LanguageModel", asked: Sequence[Mapping[str, Any]], new: NewItems | None = None) -> Floats:
    """Return the logits of all items for questions, [questions, V]; those of new items replace some or follow."""
    longest = max(each["ends"] for each in asked)
    ids = torch.tensor([[*each["asked"], *[0] * (longest - each["ends"])] for each in asked], device=lm.device)
    ends, places = (torch.tensor([each[name] for each in asked], device=lm.device) for name in ("ends", "place"))
    more = None if new is None else (new.rows.to(lm.device, lm.model.dtype), new.bias)
    found: Floats = scores_of(lm.model, ids, ends, places, more).cpu().double().numpy()
    if new is not None and new.ids:
        known = found.shape[1] - len(new.ids)
        found[:, list(new.ids)] = found[:, known:]
        found = found[:, :known]
    return found


@dataclass(frozen=True)
class Judged:
    """What is known of one ranking.

    Attributes:
        rank: of what came next, equal scores counted half; infinity where it is not ranked.
        sampled: the same among so many items drawn at random; nothing where none are asked for.
        best: the first item.
        chance: its probability among all that are ranked.
    """

    rank: float
    sampled: float | None
    best: int
    chance: float


@dataclass(frozen=True)
class Judge:
    """Says where the right item stands.

    Attributes:
        items: which tokens are items, [V].
        seen: rank the items of the history too.
        sampled: rank among so many candidates drawn at random too, always the same for one history; 0 for none.
    """

    items: NDArray[np.bool_]
    seen: bool
    sampled: int = 0

    def judged(self, one: Floats, history: Ids, own: int, number: int) -> Judged:
        """Return what is known of one ranking, by the scores of all items [V]; ``number`` is that of the history."""
        kept = candidates(self.items, [history], self.seen)
        few = None
        if self.sampled:
            few = float(ranks_of(one[None], [own], drawn(kept[0], own, self.sampled, number)[None])[0])
        logits = np.where(kept[0], one, -np.inf)
        best = int(logits.argmax())
        chance = float(1 / np.exp(logits - logits[best]).sum()) if kept.any() else 0.0
        return Judged(float(ranks_of(one[None], [own], kept)[0]), few, best, chance)


def ranked(
    lm: "LanguageModel", histories: Sequence[Ids], right: Ids, judge: Judge, length: int,
    new: NewItems | None = None, done: Done | None = None, batch: int = 128, counts: Counts | None = None,
) -> list[Judged]:  # fmt: skip
    """Return where what came next stands in the ranking of each history; those of like length are computed together.

    With ``counts`` the ranking is that of the model and of these.
    """
    asked = [question(lm, history, length) for history in histories]

    def answers(numbers: list[int]) -> list[Judged]:
        found = scores(lm, [asked[n] for n in numbers], new)
        found = found if counts is None else counts.beside(found, [histories[n] for n in numbers])
        return [judge.judged(one, histories[n], right[n], n) for one, n in zip(found, numbers, strict=True)]

    lengths = [each["ends"] for each in asked]
    return in_batches(lengths, batch, answers, lambda count: None if done is None else done(count, len(asked)))


def drawn(kept_V: NDArray[np.bool_], own: int, sampled: int, seed: int) -> NDArray[np.bool_]:
    """Return the right item and so many other candidates, each as likely as every other."""
    others = np.flatnonzero(kept_V)
    others = others[others != own]
    chosen = np.random.default_rng(seed).choice(others, min(sampled, len(others)), replace=False)
    found = np.zeros_like(kept_V)
    found[chosen], found[own] = True, kept_V[own]
    return found
