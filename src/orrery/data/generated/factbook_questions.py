"""Questions about countries, whose answers stand in a paragraph about the country."""

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from orrery.data.generated import GeneratedSet, _spans, register
from orrery.data.generated._countries import Country, read_countries, shortened, with_article
from orrery.data.splits import held_back

EVERY = 10
LEAST, MOST = 60, 250
"""Words of a paragraph."""


@dataclass(frozen=True)
class FactbookQuestion:
    """A question and where its answer stands in its field."""

    key: str
    text: str
    span: _spans.Span


@dataclass(frozen=True)
class Fact:
    """A field of a country as a paragraph has it, and what can be asked about it."""

    label: str
    text: str
    questions: tuple[FactbookQuestion, ...]

    @property
    def words(self) -> int:
        """How many words it adds to a paragraph."""
        return len(self.label.split()) + len(self.text.split())


@register
class FactbookQuestions(GeneratedSet):
    """Question and paragraph to a part of the paragraph, in the shape of SQuAD."""

    kind = "factbook_questions"
    what = "questions about countries, each with a paragraph that its answer stands in, word for word"
    made_from = "the set `factbook` (public domain dedication)"
    how = (
        "templates over the fields of each entry; paragraphs of 60 to 250 words, also of fields that no question is "
        "about; notes, HTML and unknown values left out; every tenth entry (by the sha256 of its name) is `val`"
    )
    columns = ("id", "title", "context", "question", "answers")
    text = "context"

    def records(self, part: str) -> Iterator[dict[str, Any]]:
        """Yield the questions about the countries of a part."""
        for country in read_countries(_table()[0].keys()):
            if held_back(country.name, EVERY) == (part == "val"):
                for number, facts in enumerate(paragraphs(facts_of(country)), start=1):
                    yield from rows_of(country, number, facts)


@cache
def _table() -> tuple[dict[str, str], dict[str, list[dict[str, Any]]]]:
    """Return the labels by path, and the templates by label."""
    content = json.loads(Path(__file__).with_name("factbook.json").read_text(encoding="utf-8"))
    templates: dict[str, list[dict[str, Any]]] = {}
    for template in content["questions"]:
        templates.setdefault(template["field"], []).append(template)
    return dict(content["fields"]), templates


def facts_of(country: Country) -> list[Fact]:
    """Return what is known of a country, the fields of a topic together, in an order of the country's own."""
    labels, _ = _table()
    topics: dict[str, list[Fact]] = {}
    for path, label in labels.items():
        text = shortened(country.fields.get(path, "")).rstrip(" .-")
        if text:
            topics.setdefault(path.partition(" / ")[0], []).append(Fact(label, text, questions(country, label, text)))
    return [
        fact for facts in topics.values() for fact in sorted(facts, key=lambda fact: _number(country.code, fact.label))
    ]


def questions(country: Country, label: str, text: str) -> tuple[FactbookQuestion, ...]:
    """Return what can be asked about a field; of a border country each length is asked once in a while."""
    questions = []
    for template in _table()[1].get(label, []):
        span = getattr(_spans, template["find"])(text)
        # Shares of the parts of a country are no groups of its people.
        of_parts = span and template["key"] == "ethnic" and _saint(text[slice(*span)]) in _saint(country.name)
        if span is not None and not of_parts:
            phrasings = template["ask"]
            phrasing = phrasings[_number(country.code, template["key"]) % len(phrasings)]
            questions.append(FactbookQuestion(template["key"], phrasing.format(c=country.spoken), span))
    if label == "Border countries":
        known = _spans.borders(text)
        name, _, span, _ = known[_number(country.code, "border") % len(known)] if known else ("", (0, 0), (0, 0), 0.0)
        if len(known) > 1 and len(name.split()) < 5:
            question = f"How long is the border between {country.spoken} and {with_article(name)}?"
            questions.append(FactbookQuestion("border", question, span))
    return tuple(questions)


def paragraphs(facts: Sequence[Fact]) -> Iterator[list[Fact]]:
    """Yield neighbouring facts until each paragraph is long enough; what is left at the end joins the last."""
    paragraphs: list[list[Fact]] = []
    held: list[Fact] = []
    for fact in facts:
        if sum(known.words for known in held) + fact.words > MOST:
            paragraphs, held = [*paragraphs, held], []
        held.append(fact)
        least = LEAST + _number(held[0].label, held[0].text) % (MOST // 2)
        if sum(known.words for known in held) >= least:
            paragraphs, held = [*paragraphs, held], []
    if sum(known.words for known in held) >= LEAST:
        paragraphs.append(held)
    elif paragraphs and sum(known.words for known in (*paragraphs[-1], *held)) <= MOST:
        paragraphs[-1] = [*paragraphs[-1], *held]
    yield from paragraphs


def rows_of(country: Country, number: int, facts: Sequence[Fact]) -> Iterator[dict[str, Any]]:
    """Yield the questions about a paragraph, each with its answer's place in characters."""
    context, starts = "", []
    for fact in facts:
        context += f"{' ' if context else ''}{fact.label}: "
        starts.append(len(context))
        context += f"{fact.text}."
    for fact, start in zip(facts, starts, strict=True):
        for question in fact.questions:
            answer = fact.text[slice(*question.span)]
            yield {
                "id": f"{country.code}-{number}-{question.key}",
                "title": country.name,
                "context": context,
                "question": question.text,
                "answers": {"text": [answer], "answer_start": [start + question.span[0]]},
            }


def _saint(name: str) -> str:
    return name.replace("St.", "Saint").casefold()


def _number(*names: str) -> int:
    """Return a number that follows from names alone, for choices that no machine changes."""
    return int.from_bytes(hashlib.sha256("\n".join(names).encode()).digest()[:8])
