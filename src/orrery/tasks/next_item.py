"""Recommendation: which item a user takes next, all items ranked."""

import difflib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import Field

from orrery.errors import UsageError
from orrery.schema.numbers import Positive
from orrery.tasks._no_text import NO_TEXT
from orrery.tasks._task import Learned, register
from orrery.tasks.finetuning.findings import Findings
from orrery.tasks.pipelines._pipeline import Pipeline, PipelineSettings
from orrery.tasks.pipelines._rows import InputRow

if TYPE_CHECKING:
    from orrery.language_model.model import LanguageModel
    from orrery.recipes.config import Recipe
    from orrery.tasks.next_items.counts import Counts
    from orrery.tasks.next_items.ranking import NewItems

NEAR = 3
"""Names that are told of where an item is unknown."""


class NextItemSettings(PipelineSettings):
    """``top_k`` items; ``seen`` ranks those of the history too; ``skip_unknown`` passes over what the model lacks.

    Of a history longer than the context the newest items are read, with ``truncation`` or without.
    """

    top_k: Positive = Field(10, description="How many items are recommended.")
    seen: bool = Field(False, description="Recommend items of the history too.")
    skip_unknown: bool = Field(False, description="Pass over items of a history that the model does not know.")


@register
class NextItem(Learned, Pipeline):
    """The items that come next in a history: ``softmax(z)`` over all items, without those of the history.

    It learns from what users took in the order of time: a decoder at every place (Kang and McAuley 2018, with the full
    softmax of Klenitskiy and Vasilev 2023 for one negative item), an encoder at masks (Sun et al. 2019). A history is a
    list of names, or a text with an item a line or between commas, the newest last.

    Differs from the papers: histories are padded on the right, so positions count from the oldest item that is read;
    counts of what followed what have a share in the ranking where ``data.counts`` gives them one.
    """

    kind = "next_item"
    names = ("recommendation",)
    verb = "recommend"
    route = "/v1/recommend"
    said = "items"
    titled = True
    source = "interactions"
    objective = "causal"
    objectives = ("masked",)
    batches = "shifted"
    longest = 200
    fields = ("history",)
    Settings = NextItemSettings
    new: "NewItems | None" = None
    counted: "tuple[Counts | None, ...]" = ()
    """What followed what, once it was looked for."""

    @classmethod
    def data(cls, train: str, val: str | None, columns: Mapping[str, str]) -> dict[str, Any]:
        """Return the section ``data`` of a recipe.

        Raises:
            UsageError: a file to validate on is named: the last items of each user are held back.
        """
        if val is not None:
            message = "next-item holds back the last two items of each user, and reads no file to validate on"
            raise UsageError(message, "leave the file to validate on out")
        return {"kind": cls.source, "train": train, **columns}

    @classmethod
    def begins(cls, source: Any, steps: int | None = None) -> dict[str, Any]:
        """Return the model that is made where none is named: a small decoder over the items."""
        from orrery.tasks.next_items.default_model import sections

        return sections(source, cls.longest, steps)

    @classmethod
    def texts(cls, source: Any) -> Iterable[tuple[str, ...]]:
        """Return the histories as texts."""
        from orrery.data.rows.histories import spelt

        return ((" ".join(map(spelt, each.learned)),) for each in source.train)

    @classmethod
    def metrics(cls, source: Any) -> list[dict[str, Any]]:
        """Return NDCG@10 over all items."""
        return [{"kind": "ndcg", "seen": source.settings.seen}]

    @classmethod
    def finish(cls, lm: "LanguageModel", source: Any, recipe: "Recipe", done: Any = None) -> None:
        """Write what followed what beside the model, where the recipe has a share for it (``data.counts``)."""
        from orrery.tasks.next_items.counts import Counts
        from orrery.tasks.next_items.scoring import Problem

        if share := source.settings.counts:
            Counts(Problem(lm, source).markov(), share).save(lm.stored.folder)

    @classmethod
    def findings(cls, lm: "LanguageModel", source: Any, length: int, done: Any = None) -> Findings:
        """Return NDCG, hits and reciprocal rank of the last items, floors by counting, and hits of new items."""
        from orrery.tasks.next_items.scoring import findings

        return findings(lm, source, length, done)

    def is_many(self, inputs: Any) -> bool:
        """Say whether several histories are given: a list of names is one."""
        return isinstance(inputs, list) and any(not isinstance(each, str) for each in inputs)

    def with_new(self, texts: Mapping[str, str], encoder: "LanguageModel | None" = None) -> "NextItem":
        """Rank new items too, by their texts, and return the pipeline.

        Args:
            texts: of each item, those that the model knows among them, from which it is found where texts lie.
            encoder: makes a vector of each text; by default words are counted.
        """
        from orrery.tasks.next_items.new_items import new_items

        self.new = new_items(self.lm, texts, encoder)
        return self

    def rows(self, item: Any, settings: NextItemSettings) -> Sequence[InputRow]:
        """Return the one row of a history.

        Raises:
            UsageError: it is empty, or the model does not know an item.
        """
        from orrery.tasks.next_items.ranking import main_head, names_of, question

        if settings.head not in (None, main_head(self.lm)):
            known_heads = main_head(self.lm)
            raise UsageError(
                f"{self.task}: the head {settings.head} scores no items", f"leave it out: {known_heads} does"
            )
        known = names_of(self.lm)
        history = items_of_history(item, known, self.task)
        unknown = [name for name in history if name not in known]
        if unknown and not settings.skip_unknown:
            raise unknown_item(unknown[0], known)
        ids = [known[name] for name in history if name in known]
        if not ids:
            left = f", for none of its {len(history)} is known to the model" if history else ""
            raise UsageError(f"{self.task}: the history has no item{left}", "give at least one item that it knows")
        asked = question(self.lm, ids, self.lm.context)
        return [InputRow(asked["asked"], [], ids, asked["place"])]

    def ask(self, rows: Sequence[InputRow], settings: NextItemSettings) -> Sequence[Any]:
        """Return the logits of all items for each row."""
        from orrery.tasks.next_items.counts import counts_of
        from orrery.tasks.next_items.ranking import scores

        asked = [{"asked": row.ids, "ends": len(row.ids), "place": row.start} for row in rows]
        found = scores(self.lm, asked, self.new)
        if not self.counted:
            self.counted = (counts_of(self.lm),)
        (counts,) = self.counted
        return list(found if counts is None else counts.beside(found, [row.texts for row in rows]))

    def answer(self, item: Any, rows: Sequence[InputRow], found: Sequence[Any], settings: NextItemSettings) -> Any:
        """Return the best items with their probabilities among all that are ranked; fewer where there are no more."""
        from orrery.data.rows.histories import shown
        from orrery.tasks.next_items.baselines import candidates
        from orrery.tasks.next_items.ranking import items_of

        new = () if self.new is None else self.new.names
        items = np.concatenate([items_of(self.lm), np.ones(len(new), bool)])
        kept = candidates(items, [rows[0].texts], settings.seen)[0]
        logits = np.where(kept, found[0], -np.inf)
        odds = np.exp(logits - logits.max()) if kept.any() else np.zeros(len(logits))
        order = np.argsort(-logits, kind="stable")[: min(settings.top_k, int(kept.sum()))]
        size = len(items) - len(new)
        names = [shown(self.lm.tokenizer.token(int(n))) if n < size else new[int(n) - size] for n in order]
        return [{"item": name, "score": float(odds[n] / odds.sum())} for name, n in zip(names, order, strict=True)]

    @classmethod
    def fits(cls, lm: "LanguageModel") -> bool:
        """Say whether the model was trained on histories: its folder's recipe says so."""
        from orrery.tasks.next_items.new_items import is_recommender

        return is_recommender(lm)

    def told(self, answer: Any) -> list[dict[str, Any]]:
        """Return the items."""
        return answer or []

    def lines(self, item: Any, answer: Any) -> Iterator[str]:
        """Return a line for each item: its place, its probability, its name."""
        if answer is None:
            yield NO_TEXT
        for place, one in enumerate(self.told(answer), start=1):
            yield f"{place:>3}  {one['score']:.4f}  {one['item']}"


def items_of_history(item: Any, known: Mapping[str, int], task: str) -> list[str]:
    """Return the names of a history: those of a list, or of a text with an item a line or between commas.

    Raises:
        UsageError: it is neither.
    """
    found = item.get("history") if isinstance(item, Mapping) else item
    if isinstance(found, str):
        lines = found.splitlines()
        whole = " ".join(found.split()) in known or len(lines) > 1
        found = lines if whole else found.split(",")
    if not isinstance(found, list | tuple) or not all(isinstance(each, str | int) for each in found):
        hint = "give a list of names, or a text with an item a line"
        raise UsageError(f"{task} reads histories of items, and was given {str(found)[:60]!r}", hint)
    names = [" ".join(str(each).split()) for each in found]
    return [name for name in names if name]


def unknown_item(name: str, known: Mapping[str, int]) -> UsageError:
    """Return the error of an item that the model does not know, with names like it."""
    near = difflib.get_close_matches(name, list(known), n=NEAR) or list(known)[:NEAR]
    hint = f"names that it knows: {', '.join(near)}; skip_unknown passes over the others (--skip-unknown)"
    return UsageError(f"the model does not know the item {name[:60]!r}; it knows {len(known):,}", hint)
