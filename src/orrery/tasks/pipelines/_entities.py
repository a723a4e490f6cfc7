"""Labels of tokens into entities: words of tokens, groups of words, and what overlapping windows say twice."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from orrery.tasks.pipelines._heads import Scores

Strategy = Literal["none", "simple", "first", "average", "max"]
Entity = dict[str, Any]


@dataclass(frozen=True)
class ScoredToken:
    """One token of a text with the scores of its labels.

    Attributes:
        text: the vocabulary's spelling.
        scores: of each label.
        start: the character of the text with which it begins.
        end: the one behind it.
        index: its place in the row.
        inside: whether it goes on with the word of the token before it.
    """

    text: str
    scores: Scores
    start: int
    end: int
    index: int
    inside: bool


@dataclass(frozen=True)
class Grouping:
    """How tokens become entities.

    Attributes:
        names: of the labels.
        spell: from spellings of tokens to a text.
        strategy: ``none`` leaves tokens alone; ``simple`` groups them; the others give all tokens of a word the label
            of its ``first`` token, of the ``average`` of their scores, or of the token with the ``max``imal score.
    """

    names: Sequence[str]
    spell: Callable[[Sequence[str]], str]
    strategy: Strategy

    def of(self, tokens: Sequence[ScoredToken]) -> list[Entity]:
        """Return the entities of a row."""
        if self.strategy in ("none", "simple"):
            labelled = [self._token(token) for token in tokens]
        else:
            labelled = [self._word(word) for word in words_of(tokens)]
        return labelled if self.strategy == "none" else [self._group(group) for group in groups_of(labelled)]

    def _token(self, token: ScoredToken) -> Entity:
        best = int(token.scores.argmax())
        return {
            "entity": self.names[best],
            "score": float(token.scores[best]),
            "index": token.index,
            "word": token.text,
            "start": token.start,
            "end": token.end,
        }

    def _word(self, word: Sequence[ScoredToken]) -> Entity:
        scores = {
            "first": lambda: word[0].scores,
            "average": lambda: np.mean([token.scores for token in word], 0),
            "max": lambda: max(word, key=lambda token: float(token.scores.max())).scores,
        }[self.strategy]()
        return {
            "entity": self.names[int(scores.argmax())],
            "score": float(scores.max()),
            "word": self.spell([token.text for token in word]),
            "start": word[0].start,
            "end": word[-1].end,
        }

    def _group(self, group: Sequence[Entity]) -> Entity:
        return {
            "entity_group": group[0]["entity"].split("-", 1)[-1],
            "score": float(np.mean([entity["score"] for entity in group])),
            "word": self.spell([entity["word"] for entity in group]),
            "start": group[0]["start"],
            "end": group[-1]["end"],
        }


def words_of(tokens: Sequence[ScoredToken]) -> list[list[ScoredToken]]:
    """Return the tokens of each word."""
    words: list[list[ScoredToken]] = []
    for token in tokens:
        if words and token.inside:
            words[-1].append(token)
        else:
            words.append([token])
    return words


def groups_of(entities: Sequence[Entity]) -> list[list[Entity]]:
    """Return neighbours with the same tag: ``B-`` begins a group, ``I-`` and a bare tag go on with one."""
    groups: list[list[Entity]] = []
    for entity in entities:
        begins, tag = _tag(entity["entity"])
        if groups and not begins and tag == _tag(groups[-1][-1]["entity"])[1]:
            groups[-1].append(entity)
        else:
            groups.append([entity])
    return groups


def without_overlaps(entities: Sequence[Entity]) -> list[Entity]:
    """Return the entities of several windows: of two that overlap the longer one stays, else the more probable."""
    kept: list[Entity] = []
    for entity in sorted(entities, key=lambda entity: int(entity["start"])):
        if not kept or not kept[-1]["start"] <= entity["start"] < kept[-1]["end"]:
            kept.append(entity)
        elif _weight(entity) > _weight(kept[-1]):
            kept[-1] = entity
    return kept


def _weight(entity: Entity) -> tuple[int, float]:
    return entity["end"] - entity["start"], entity["score"]


def _tag(label: str) -> tuple[bool, str]:
    return label.startswith("B-"), label[2:] if label.startswith(("B-", "I-")) else label
