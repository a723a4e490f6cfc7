"""The decoding tree behind a pass: what greedy decoding, beams and samples follow, and the distribution at any node."""

from collections.abc import Iterable, Iterator
from typing import Annotated, Any, ClassVar

import torch
from pydantic import Field

from orrery.errors import UsageError
from orrery.generation.search import LengthPenalty
from orrery.generation.tree import TreeNode
from orrery.language_model.search import Beams
from orrery.language_model.tree import DecodingTree, grown, one_beam
from orrery.page.views._decoding import MOST_BEAMS, MOST_SAMPLES, MOST_STEPS, DecodingPrompt, checks, drawn
from orrery.page.views._payload import Payload
from orrery.page.views._view import View, ViewSubject, register
from orrery.schema.section import Section
from orrery.schema.writing_fields import with_settings

BEST = 256
"""Tokens of a distribution that are spelt, and whose probabilities are told."""
LIMITS = ("top_k", "top_p")
"""Settings of draws that can be asked besides the temperature."""


@with_settings(*LIMITS)
class DecodeSettings(Section):
    """What can be asked.

    Attributes:
        steps: the depth of the tree.
        beams: hypotheses that the beam search follows.
        penalty: of their lengths, see ``LengthPenalty``.
        samples: answers that are drawn besides.
        temperature: of the draws; 0 takes the most probable token.
        seed: of the first sample; the others count on.
        path: tokens behind the text, with commas: the distribution of what follows them, instead of the tree.
    """

    steps: Annotated[int, Field(ge=1, le=MOST_STEPS)] = 8
    beams: Annotated[int, Field(ge=1, le=MOST_BEAMS)] = 3
    penalty: Annotated[float, Field(ge=0, le=10)] = 0.6
    samples: Annotated[int, Field(ge=0, le=MOST_SAMPLES)] = 2
    temperature: Annotated[int | float, Field(ge=0, le=100)] = 1
    seed: int = 1337
    path: str | None = None

    @property
    def sampling(self) -> dict[str, Any]:
        """How tokens are drawn."""
        return {"temperature": self.temperature, **{name: getattr(self, name) for name in LIMITS}}


@register
class Decode(View):
    """Every token costs ``-log p``; the costs of a way add up to that of its sequence."""

    kind: ClassVar[str] = "decode"
    screen: ClassVar[str] = "decode"
    order: ClassVar[int] = 10
    Settings: ClassVar[type[Section]] = DecodeSettings

    def fits(self, subject: ViewSubject) -> bool:
        """Say whether the model writes behind tokens, and whether they can be spelled."""
        spec, tokenizer = subject.lm.model.spec, subject.lm.stored.tokenizer
        return subject.inside is not None and spec.writes and spec.vocabulary is not None and tokenizer is not None

    def saved(self, subject: ViewSubject) -> Iterable[Section]:
        """Return the usual tree, and the distribution at its root."""
        return [DecodeSettings(), DecodeSettings(path="")]

    def payload(self, subject: ViewSubject, settings: DecodeSettings) -> Payload:
        """Return the nodes of the tree with their checks, or the logits of one node."""
        prompt = DecodingPrompt(subject.seen)
        if settings.path is not None:
            return _distribution(prompt, settings)
        tree = _grown(prompt, settings)
        greedy = _tokens(tree.root, "greedy")
        steps = prompt.room(settings.steps)
        one = one_beam(subject.lm.stored, prompt.ids, max_new_tokens=steps, length_penalty=settings.penalty)
        facts = {
            "prompt": prompt.ids,
            "nodes": list(_nodes(subject.seen.spell, tree.root)),
            "ways": _ways(subject, tree.root),
            "edited": bool(subject.seen.edits.edits),
        }
        return Payload(facts, checks=checks(prompt, tree.root, one, greedy))


def _grown(prompt: DecodingPrompt, settings: DecodeSettings) -> DecodingTree:
    return grown(
        prompt.inside.lm.stored,
        prompt.ids,
        max_new_tokens=prompt.room(settings.steps),
        beams=Beams(settings.beams, LengthPenalty(settings.penalty)),
        samples=settings.samples,
        seed=settings.seed,
        truncate=None,
        sampling=settings.sampling,
    )


def _nodes(spell: Any, tree: TreeNode) -> Iterator[dict[str, Any]]:
    """Yield the nodes, each behind the one above it, whose number it tells; the root has none and is -1."""
    waiting, number = [(-1, 0, child) for child in tree.sorted()], 0
    while waiting:
        above, depth, node = waiting.pop(0)
        own = {"parent": above, "step": depth, "token": node.token, "text": spell(node.token)}
        yield {**own, "cost": node.cost, "total": node.total, "fate": node.fate, "ways": node.ways}
        waiting += [(number, depth + 1, child) for child in node.sorted()]
        number += 1


def _tokens(tree: TreeNode, way: str) -> list[int]:
    tokens: list[int] = []
    while following := [child for child in tree.children.values() if way in child.ways]:
        tree = following[0]
        tokens.append(tree.token)
    return tokens


def _ways(subject: ViewSubject, tree: TreeNode) -> list[dict[str, Any]]:
    """Return the answers by name, with their texts and scores."""
    names = dict.fromkeys(way for _, node in tree.walk() for way in node.ways)
    answers = []
    for name in names:
        tokens = _tokens(tree, name)
        total = 0.0
        node = tree
        for token in tokens:
            node = node.children[token]
            total = node.total
        text = subject.lm.tokenizer.decode(tokens, special=True)
        answers.append({"name": name, "tokens": len(tokens), "total": total, "text": text})
    return answers


@torch.no_grad()
def _distribution(prompt: DecodingPrompt, settings: DecodeSettings) -> Payload:
    assert settings.path is not None
    answer = _path(settings.path)
    logits_V = prompt.logits(answer)[-1]
    best_K = logits_V.topk(min(BEST, int(logits_V.isfinite().sum()))).indices
    facts = {"path": answer, "best": [{"id": id, "text": prompt.inside.spell(id)} for id in best_K.tolist()]}
    # What is drawn follows from the logits: the probabilities of the best show whether a reader's own agree.
    drawn_K = drawn(prompt, logits_V, answer, **settings.sampling)[best_K]
    return Payload(facts, {"logits": logits_V.float(), "drawn": drawn_K})


def _path(text: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",") if part]
    except ValueError:
        raise UsageError(f"path = {text[:60]!r} is no list of tokens", "give their numbers, such as 5,17") from None
