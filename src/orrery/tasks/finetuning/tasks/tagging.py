"""Tagging: a label for each word."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from orrery.tasks.finetuning.tasks import Task, register

if TYPE_CHECKING:
    from orrery.data.rows.tagged import Tagged
    from orrery.language_model.model import LanguageModel
    from orrery.tasks.finetuning.findings import Findings

BATCH = 32
"""Rows answered at once."""
OUTSIDE = "O"
"""The label of words outside of entities."""


@register
class Tagging(Task):
    """A label for each word of a sentence: parts of speech, names of people and places."""

    kind: ClassVar[str] = "tagging"
    source = "tagged"
    objective = "tagging"
    columns = ("layer", "words", "tags")
    head = "token"

    @classmethod
    def texts(cls, source: Any) -> Iterable[tuple[str, ...]]:
        """Return the sentences."""
        return ((" ".join(sentence.words),) for sentence in source.train)

    @classmethod
    def metrics(cls, source: Any) -> list[dict[str, Any]]:
        """Return entity F1 where the labels are those of entities."""
        return [{"kind": "entity_f1", "head": cls.head}] if are_entities(source.labels) else []

    @classmethod
    def findings(cls, lm: "LanguageModel", source: Any, length: int, done: Any = None) -> "Findings":
        """Return accuracy over words, and entity F1 where the labels are those of entities."""
        from orrery.scores import classification, entities
        from orrery.tasks.finetuning.findings import Findings
        from orrery.tasks.finetuning.tasks._counting import MostFrequentTag

        rows: Sequence[Tagged] = source.held_back
        gold = [row.tags for row in rows]
        said = predicted(lm, [row.words for row in rows], length, usual(source.labels), done)
        counting = MostFrequentTag((row.words, row.tags) for row in source.train)
        counted = [counting.predict(row.words) for row in rows]
        flat = [[tag for tags in each for tag in tags] for each in (said, gold, counted)]
        labels, counts = classification.confusion(flat[0], flat[1])
        name, named = "the most frequent tag of each word", are_entities(source.labels)
        scores = [classification.accuracy(flat[0], flat[1]), classification.f1(flat[0], flat[1], "macro")]
        floor = classification.accuracy(flat[2], flat[1])
        table = classification.by_label(flat[0], flat[1])
        if named:
            scores, floor = [entities.entity_f1(said, gold), *scores], entities.entity_f1(counted, gold)
            table = entities.by_type(said, gold)
        return Findings(
            scores=scores,
            examples=f"{len(rows):,} sentences held back, {len(flat[1]):,} words",
            floors=[(name, floor)],
            confusion=([str(label) for label in labels], counts.tolist()),
            mistakes=mistakes(rows, said),
            by_label=[(str(each.label), each.precision, each.recall, each.f1, int(each.support)) for each in table],
        )


def are_entities(labels: Iterable[str]) -> bool:
    """Say whether labels are those of entities: O, and others that begin with a letter and a hyphen."""
    others = [label for label in labels if label != OUTSIDE]
    return bool(others) and all(label[:2] in ("B-", "I-", "E-", "S-", "L-", "U-") for label in others)


def usual(labels: Mapping[str, int]) -> str:
    """Return the label of a word of which nothing is known: outside of all entities, else the most frequent one."""
    return OUTSIDE if OUTSIDE in labels else max(labels, key=labels.__getitem__)


def predicted(
    lm: "LanguageModel", sentences: Sequence[Sequence[str]], length: int, unread: str, done: Any = None
) -> list[list[str]]:
    """Return the likeliest label of each word, read at its first token as in training.

    A word without a token, as a lone zero-width character has none, gets the label ``unread``: the model has not seen
    it, and what stands before it says nothing of it.
    """
    import torch

    from orrery.data.batches.padded_rows import padded
    from orrery.data.batches.token_windows import IGNORE
    from orrery.data.batches.words import tokenise_words
    from orrery.data.sources.tagged import rows_of
    from orrery.tasks.finetuning.findings import label_names

    names = label_names(lm, "token")
    found: list[list[str]] = [[] for _ in sentences]
    rows: list[dict[str, Any]] = []
    owners: list[tuple[int, int]] = []
    for number, words in enumerate(sentences):
        tokens = tokenise_words(lm.tokenizer, words)
        found[number] = [unread] * len(words)
        for row in rows_of(lm.tokenizer, tokens.ids, tokens.firsts, range(len(words)), length):
            owners.append((number, len(rows)))
            rows.append(dict(row))
    order = sorted(range(len(rows)), key=lambda n: len(rows[n]["ids"]))
    for start in range(0, len(order), BATCH):
        some = order[start : start + BATCH]
        batch = {name: tensor.to(lm.device) for name, tensor in padded([rows[n] for n in some]).items()}
        with torch.no_grad():
            best = lm.model(batch, ["token"])["token"].argmax(-1).tolist()
        for n, labels in zip(some, best, strict=True):
            for word, label in zip(rows[n]["targets"], labels, strict=False):
                if word != IGNORE:
                    found[owners[n][0]][word] = names[label]
        if done is not None:
            done(min(len(order), start + BATCH), len(order))
    return found


def mistakes(rows: "Sequence[Tagged]", said: Sequence[Sequence[str]]) -> list[Any]:
    """Return the sentences with most wrong labels."""
    from orrery.tasks.finetuning.findings import Mistake

    wrong = [[n for n, tag in enumerate(row.tags) if tags[n] != tag] for row, tags in zip(rows, said, strict=True)]
    order = sorted((n for n in range(len(rows)) if wrong[n]), key=lambda n: -len(wrong[n]))
    return [
        Mistake(
            " ".join(rows[n].words),
            ", ".join(f"{rows[n].words[w]}: {rows[n].tags[w]}" for w in wrong[n][:8]),
            ", ".join(said[n][w] for w in wrong[n][:8]),
        )
        for n in order
    ]
