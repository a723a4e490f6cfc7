"""Explain a number: its formula with the real operands, each of which can be explained in turn."""

import math
from collections.abc import Iterable
from typing import Any, ClassVar

from orrery.errors import UsageError
from orrery.inspection.explain.explain import NAMED, Explanation
from orrery.inspection.explain.formula import Index, Operand
from orrery.page.views._inside import Inside
from orrery.page.views._payload import Payload
from orrery.page.views._view import View, ViewSubject, register
from orrery.page.views.classes import head_of_classes, labels_of
from orrery.schema.section import Section

SAVED = 60
"""Explanations that a saved page holds: the default one, and those below its largest terms."""
_BY_HEAD = {
    "q": "query",
    "k": "key",
    "v": "key",
    "mixed": "query",
    "scores": "query",
    "pattern": "query",
    "products": "query",
}


class ExplainSettings(Section):
    """What is explained.

    Attributes:
        key: of a tensor, such as ``blocks.0.attention.q``; left out, the logit of the likeliest token after the last.
        index: its place without the axis of rows, as ``head,token,channel``.
        most: how many terms of a sum are named; by default ``NAMED``. Left out of the address where nothing is said, so
            that a saved page finds what a reader asks for without it.
    """

    key: str | None = None
    index: str | None = None
    most: int | None = None


@register
class Explain(View):
    """Any number of the pass, down to weights and tokens; the check is the number recomputed."""

    kind: ClassVar[str] = "explain"
    order: ClassVar[int] = 95
    Settings: ClassVar[type[Section]] = ExplainSettings

    def fits(self, subject: ViewSubject) -> bool:
        """Say whether there is a pass whose tensors are known by key."""
        return subject.inside is not None and "embedded" in subject.inside

    def saved(self, subject: ViewSubject) -> Iterable[Section]:
        """Return the default explanation and those below it, the largest terms first."""
        inside = subject.seen
        yield ExplainSettings()
        waiting = [first_number(inside)]
        for key, index in waiting:
            yield ExplainSettings(key=key, index=",".join(map(str, index)))
            terms = inside.explainer.explain(key, index).formula.terms[:3]
            below = [(one.key, one.index) for term in terms for one in term.factors if one.key is not None]
            waiting += [one for one in below if one not in waiting][: SAVED - len(waiting)]

    def payload(self, subject: ViewSubject, settings: ExplainSettings) -> Payload:
        """Return the formula of one number."""
        inside = subject.seen
        key, index = first_number(inside) if settings.key is None else (settings.key, places_of(settings.index or ""))
        most = NAMED if settings.most is None else max(1, min(settings.most, 10_000))
        explanation = inside.explainer.explain(key, index, most)
        return Payload({**_told(explanation), "axes": axes(inside, key, index)}, checks=[explanation.check])


def first_number(inside: Inside) -> tuple[str, Index]:
    """Return what is explained where nothing is asked: the greatest logit after the last token."""
    if "logits" in inside.explainer.numbers.nodes:
        logits_LV = inside.explainer.numbers["logits"][0]
        return "logits", (len(logits_LV) - 1, int(logits_LV[-1].argmax()))
    length = inside.explainer.numbers["final"].shape[1]
    return "final", (length - 1, 0)


def places_of(text: str) -> Index:
    """Return the numbers of an index.

    Raises:
        UsageError: it is written otherwise.
    """
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise UsageError(f"{text!r} is no index", "write whole numbers with commas: 1,5,0") from None


def axes(inside: Inside, key: str, index: Index) -> list[dict[str, Any]]:
    """Return what each number of an index counts: heads, tokens (with their text), channels."""
    name = key.rsplit(".", 1)[-1]
    here = "source" if key.startswith("encoder.") else "tokens"
    there = "source" if ".cross." in key else here
    if len(index) == 3 and name in _BY_HEAD:
        place = _token(inside, there if _BY_HEAD[name] == "key" else here, index[1])
        pairs = name in ("scores", "pattern", "products")
        last = _token(inside, there, index[2]) if pairs else {"name": "channel", "place": index[2]}
        return [{"name": "head", "place": index[0]}, place, last]
    if len(index) != 2:
        return [{"name": "place", "place": place} for place in index]
    read = there if name in ("k_in", "v_in", "k_normed", "v_normed") else here
    last = {"name": "channel", "place": index[1]}
    if name in ("logits", "scored"):
        last = _answer(inside, index[1])
    stream = "source" if name == "memory" else read
    return [_token(inside, stream, index[0]), last]


def _answer(inside: Inside, number: int) -> dict[str, Any]:
    """Return what a logit is of: a class of the main head, or a token of the vocabulary."""
    head = head_of_classes(inside.lm.model)
    if head is None:
        return {"name": "vocabulary", "place": number, "text": _spelt(inside, number)}
    spec: Any = inside.lm.model.spec.heads[head[0]]
    return {"name": "class", "place": number, "text": labels_of(spec)[number]}


def _token(inside: Inside, stream: str, place: int) -> dict[str, Any]:
    texts = inside.source_tokens if stream == "source" else inside.tokens
    return {"name": "token", "place": place, "text": texts[place] if place < len(texts) else "", "stream": stream}


def _spelt(inside: Inside, id: int) -> str:
    tokenizer = inside.lm.stored.tokenizer
    return inside.spell(id) if tokenizer is not None and id < tokenizer.size else ""


def _told(explanation: Explanation) -> dict[str, Any]:
    formula = explanation.formula
    return {
        "key": explanation.key,
        "index": explanation.index,
        "recorded": number(explanation.recorded),
        "value": number(formula.value),
        "text": formula.text,
        "filled": formula.filled,
        "kind": formula.kind,
        "terms": [
            {"value": number(term.value), "factors": [_operand(one) for one in term.factors]} for term in formula.terms
        ],
        "others": formula.others,
        "others_sum": number(formula.others_sum),
    }


def _operand(one: Operand) -> dict[str, Any]:
    return {
        "name": one.name,
        "value": number(one.value),
        "key": one.key,
        "index": one.index,
        "parameter": one.parameter,
    }


def number(value: float) -> float | str:
    """Return a number for JSON; one that is not finite as the text that a browser reads as it."""
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
