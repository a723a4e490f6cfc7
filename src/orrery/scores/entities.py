r"""Entities from tags of words: which spans they mark, and precision, recall and F1 of whole spans.

An entity is right where its type, its first and its last word are. A tag is ``O`` or a letter (B, I, E, S), a dash and
a type. Each scheme is a regular expression over the letters of neighbouring tags of one type:

- ``conlleval``, the rules of CoNLL's script, mend what is invalid: an I behind O or another type begins an entity.
- ``IOB2``, ``IOE2`` and ``IOBES`` are strict: what does not match is no entity.

BILOU's letters are those of IOBES under other names, and count as such: L (last) is E, U (unit) is S.

Paper: Tjong Kim Sang and De Meulder 2003; Ramshaw and Marcus 1995. The numbers agree with seqeval, its default and its
``mode="strict"``.
"""

import re
from collections.abc import Sequence
from functools import partial
from itertools import groupby
from typing import Literal

import numpy as np

from orrery.errors import DataError
from orrery.scores.precision_recall import ZERO, Average, PrecisionRecall, f1_of, table
from orrery.scores.resampled import AdditiveScore, Floats, same_length
from orrery.scores.signature import signature

Scheme = Literal["conlleval", "IOB2", "IOE2", "IOBES"]
SCHEMES: dict[Scheme, tuple[str, str]] = {
    "conlleval": ("BIES", "S|[BI]I*E?|E"),
    "IOB2": ("BI", "BI*"),
    "IOE2": ("IE", "I*E"),
    "IOBES": ("BIES", "BI*E|S"),
}
"""The letters of a scheme, and what an entity is in them."""

_BILOU = {"L": "E", "U": "S"}

Tags = Sequence[str]
Span = tuple[str, int, int]
"""An entity: its type, its first word and the one behind its last."""


def spans(tags: Tags, scheme: Scheme = "conlleval") -> list[Span]:
    """Return the entities that the tags of one sentence mark.

    >>> spans(["B-PER", "I-PER", "O", "I-LOC"])
    [('PER', 0, 2), ('LOC', 3, 4)]
    >>> spans(["B-PER", "I-PER", "O", "I-LOC"], "IOB2")
    [('PER', 0, 2)]

    Raises:
        DataError: a tag has no letter of the scheme.
    """
    letters, pattern = SCHEMES[scheme]
    cut, entities, start = [_cut(tag, letters, place, scheme) for place, tag in enumerate(tags)], [], 0
    for kind, group in groupby(cut, key=lambda pair: pair[1]):
        run = "".join(letter for letter, _ in group)
        if kind is not None:
            entities += [(kind, start + m.start(), start + m.end()) for m in re.finditer(pattern, run)]
        start += len(run)
    return entities


def entity_f1(
    predicted: Sequence[Tags],
    gold: Sequence[Tags],
    average: Average = "micro",
    scheme: Scheme = "conlleval",
    types: Sequence[str] = (),
) -> AdditiveScore:
    """Return F1 of the entities of sentences: micro, macro or weighted over the types (see `precision_recall`).

    Where two systems are compared, ``types`` are all that occur in either, so that both are counted alike.
    """
    counts, all_types = _counts(predicted, gold, scheme, types)
    met = int((counts.sum((0, 1)) > 0).sum())
    facts = signature(n=len(counts), types=met, average=average, scheme=scheme, zero=ZERO)
    rows, of = counts.reshape(len(counts), -1), partial(f1_of, average=average)
    return AdditiveScore(f"entity-F1-{average}", facts, rows, of, columns=all_types)


def by_type(predicted: Sequence[Tags], gold: Sequence[Tags], scheme: Scheme = "conlleval") -> list[PrecisionRecall]:
    """Return precision, recall and F1 of each type of entity, and of the three averages."""
    counts, types = _counts(predicted, gold, scheme)
    return table(types, counts.sum(0))


def entity_counts(predicted: Tags, gold: Tags, types: Sequence[str], scheme: Scheme = "conlleval") -> Floats:
    """Return the counts of one sentence, ``[3, types]``: predicted and right, predicted, right."""
    ours, theirs = set(spans(predicted, scheme)), set(spans(gold, scheme))
    sets = (ours & theirs, ours, theirs)
    return np.array([[sum(span[0] == kind for span in entities) for kind in types] for entities in sets], np.float64)


def _counts(
    predicted: Sequence[Tags], gold: Sequence[Tags], scheme: Scheme, known: Sequence[str] = ()
) -> tuple[Floats, tuple[str, ...]]:
    same_length(predicted, gold, "sentences")
    for number, (ours, theirs) in enumerate(zip(predicted, gold, strict=True), 1):
        if len(ours) != len(theirs):
            message = f"sentence {number}: {len(ours)} predicted tags, {len(theirs)} right ones"
            raise DataError(message, "give one tag for each word")
    met = {kind for side in (predicted, gold) for tags in side for kind, *_ in spans(tags, scheme)}
    types = tuple(sorted({*known, *met}))
    each = [entity_counts(ours, theirs, types, scheme) for ours, theirs in zip(predicted, gold, strict=True)]
    return np.stack(each), types


def _cut(tag: str, letters: str, place: int, scheme: str) -> tuple[str, str | None]:
    """Return a tag's letter and type; ``O`` has none, a letter alone the type ``_``."""
    if tag == "O":
        return "O", None
    tag = _BILOU.get(tag[:1], tag[:1]) + tag[1:] if {"E", "S"} <= set(letters) else tag
    if not tag or tag[0] not in letters or tag[1:2] not in ("", "-"):
        message = f"word {place + 1}: {tag!r} is no tag of {scheme}"
        raise DataError(message, f"tags are O, or one of {', '.join(letters)}, a dash and a type")
    return tag[0], tag[2:] or "_"
