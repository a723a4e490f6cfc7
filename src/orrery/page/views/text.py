"""From characters to ids, step by step: bytes, words, and how each word is cut."""

from collections.abc import Callable, Mapping, Sequence
from itertools import groupby, pairwise
from random import Random
from typing import Any, ClassVar

from orrery.errors import UsageError
from orrery.inspection.checks import Check
from orrery.page.views._inside import Inside
from orrery.page.views._payload import Payload
from orrery.page.views._view import View, ViewSubject, register
from orrery.text import Tokenizer
from orrery.text.algorithms.lattice import Lattice
from orrery.text.algorithms.merges import merge_ranks, merging
from orrery.text.algorithms.sampling import CutSampler, lattice_of
from orrery.text.algorithms.steps import longest_matches
from orrery.text.stages import Stages

WORDS = 400
"""Different words whose steps are sent; a longer text has those of its first ones."""
BEST = 5
"""The most probable cuts of a word that are shown of a Unigram tokenizer."""
REFUSED = 6
"""Longer pieces that WordPiece tried and that are named."""


@register
class TextView(View):
    """How the text became the ids that the model read: the merges of BPE, WordPiece's matches, Unigram's cuts."""

    kind: ClassVar[str] = "text"
    order: ClassVar[int] = 5

    def fits(self, subject: ViewSubject) -> bool:
        """Say whether there is a text with a tokenizer."""
        inside = subject.inside
        if inside is None or subject.lm.stored.tokenizer is None or inside.first.ids.is_floating_point():
            return False
        return bool(inside.tokens)

    def payload(self, subject: ViewSubject, settings: Any) -> Payload:
        """Return the stages of every text that was read."""
        inside, tokenizer = subject.seen, subject.lm.tokenizer
        streams, checks = [], []
        for name, text, ids in texts_of(inside, tokenizer):
            facts, compared = stages_of(tokenizer, text, ids)
            streams.append({"stream": name, **facts})
            checks += compared
        return Payload({"kind": tokenizer.definition["model"]["type"], "streams": streams}, checks=checks)


def texts_of(inside: Inside, tokenizer: Tokenizer) -> list[tuple[str, str, Sequence[int]]]:
    """Return each text that was read: its stream, the text, and the ids that it became.

    Of a conversation, and of ids, each run between control tokens is a text: those are no characters of any.
    """
    given, ids = inside.given, inside.first.ids[0].tolist()
    read = inside.first.source_ids
    if read is None:
        return [("tokens", text, ids) for text in _texts(tokenizer, given.get("text"), ids)]
    targets: list[tuple[str, str, Sequence[int]]]
    targets = [("tokens", text, ids) for text in _texts(tokenizer, given.get("target", ""), ids) if text]
    if read.is_floating_point():
        return targets
    source = given.get("source", given.get("text"))
    return [("source", text, read[0].tolist()) for text in _texts(tokenizer, source, read[0].tolist())] + targets


def _texts(tokenizer: Tokenizer, given: object, ids: Sequence[int]) -> list[str]:
    if isinstance(given, str):
        return [given]
    runs = [list(run) for control, run in groupby(ids, key=lambda id: id in tokenizer.control) if not control]
    return [text for run in runs if (text := tokenizer.decode(run)).strip()]


def stages_of(tokenizer: Tokenizer, text: str, ids: Sequence[int]) -> tuple[dict[str, Any], list[Check]]:
    """Return what happens to a text on its way to ids, and whether the steps lead to the ids that were read."""
    encoded = tokenizer.encode(text)
    facts: dict[str, Any] = {
        "text": text,
        "normal": text,
        "words": [],
        "steps": {},
        "pieces": [{"id": id, "piece": tokenizer.token(id)} for id in encoded],
    }
    checks = [Check("these ids are among those that the model read", 0.0 if _within(encoded, ids) else 1.0, 0.0)]
    try:
        stages = Stages(tokenizer)
    except UsageError as error:
        return {**facts, "why": error.message}, checks
    words = stages.words(text)
    steps_of = cutter(tokenizer)
    steps = {word: steps_of(word) for word in list(dict.fromkeys(words))[:WORDS]}
    spell = CutSampler(
        tokenizer, lambda word, rng: steps[word]["pieces"] if word in steps else list(steps_of(word)["pieces"])
    )
    cut = [spell.cut(word, Random(0)) if steps_of is not whole else [] for word in words]
    facts |= {
        "normal": stages.normalise(text),
        "words": [{"word": word, "ids": ids} for word, ids in zip(words, cut, strict=True)],
        "steps": steps,
    }
    if steps_of is not whole:
        made = [id for ids in cut for id in ids]
        off = sum(a != b for a, b in zip(made, encoded, strict=False)) + abs(len(made) - len(encoded))
        checks.append(Check("the steps of the words end in the ids that the tokenizer gives", float(off), 0.0))
    return facts, checks


def _within(part: Sequence[int], of: Sequence[int]) -> bool:
    """Say whether some ids stand in a row of others; special tokens may stand around them."""
    part, of = list(part), list(of)
    return any(of[start : start + len(part)] == part for start in range(len(of) - len(part) + 1))


Cutter = Callable[[str], dict[str, Any]]


def cutter(tokenizer: Tokenizer) -> Cutter:
    """Return what tells the steps that cut one word, for the kind of a tokenizer; ``whole`` where there are none."""
    kind = tokenizer.definition["model"]["type"]
    if kind == "BPE":
        return _merges(tokenizer.definition)
    if kind == "WordPiece":
        return lambda word: _matches(tokenizer.definition, word)
    if kind == "Unigram":
        lattice = lattice_of(tokenizer)
        return lambda word: _cuts(lattice, word)
    return whole


def whole(word: str) -> dict[str, Any]:
    """Return the steps of a word that is looked up as it is: none."""
    return {"pieces": [word], "rows": []}


def _merges(definition: Mapping[str, Any]) -> Cutter:
    """Return what tells the merges of a word: the symbols after each, what was merged, and when that was learnt."""
    ranks, steps_of = merge_ranks(definition), merging(definition)
    ignored = definition["model"]["vocab"] if definition["model"].get("ignore_merges") else {}

    def steps(word: str) -> dict[str, Any]:
        if word in ignored:
            return whole(word)
        rows = steps_of(word)
        merges: list[dict[str, Any]] = [{"symbols": rows[0]}]
        for before, after in pairwise(rows):
            place = next(i for i, symbol in enumerate(after) if symbol != before[i])
            pair = before[place : place + 2]
            merges.append({"symbols": after, "pair": pair, "rank": ranks[" ".join(pair)]})
        return {"pieces": rows[-1], "rows": merges}

    return steps


def _matches(definition: Mapping[str, Any], word: str) -> dict[str, Any]:
    steps = longest_matches(definition, word)
    pieces = [step.piece for step in steps]
    rows = [
        {
            "symbols": pieces[: number + 1],
            "piece": step.piece,
            "refused": step.refused[:REFUSED],
            "more": max(0, len(step.refused) - REFUSED),
        }
        for number, step in enumerate(steps)
    ]
    # A word with a part that is unknown is unknown as a whole.
    unknown = definition["model"]["unk_token"]
    return {"pieces": [unknown] if pieces[-1:] == [unknown] else pieces, "rows": rows}


def _cuts(lattice: Lattice, word: str) -> dict[str, Any]:
    """Return the best cut of each beginning of a word (Viterbi), and the most probable cuts of the whole."""
    rows = []
    for end in range(1, len(word) + 1):
        ((score, cut),) = lattice.best(word[:end], 1)
        rows.append({"symbols": list(cut), "score": score, "last": lattice.score(cut[-1:])})
    best = [{"cut": list(cut), "score": score} for score, cut in lattice.best(word, BEST)]
    return {"pieces": best[0]["cut"] if best else [], "rows": rows, "best": best}
