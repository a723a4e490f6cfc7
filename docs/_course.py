"""The pages of the course, as Markdown: their text and their code are those of `orrery_course.course`."""

from collections.abc import Iterator

from _benchmark_tables import table

from orrery_course.course import Deck, Item, decks

PAGES = tuple(f"docs/course/{name.lower()}.md" for name in decks())


def page(deck: Deck) -> str:
    """Return everything of a deck's page but its heading: each item in the order of the slides, then the questions."""
    parts = [deck.about, *(part for item in deck.items for part in _item(item)), *_questions(deck)]
    return "\n\n".join(parts) + "\n"


def _item(item: Item) -> Iterator[str]:
    yield f"## {item.title}"
    yield f"Slide: *{item.slide}*. {item.about}"
    kind, body = ("example", item.source) if item.source else ("command", item.lines)
    yield f"```{{{kind}}}\n{body}\n```"
    if item.beside:
        yield item.beside
    more = f"; more by `{item.more}`" if item.more else ""
    yield f"In the terminal: `orrery course {item.deck} {item.name}`{more}. Items: {', '.join(item.codes)}."


def _questions(deck: Deck) -> Iterator[str]:
    yield "## What the deck asks"
    yield "Each answer is computed, and stands behind a click; `orrery quiz` asks them in the terminal."
    yield f"```{{question}}\n{deck.name}\n```"


def index() -> str:
    """Return the decks with what their pages hold."""
    rows = [
        (f"[{deck.name}]({name.lower()}.md)", deck.title, deck.about, str(len(deck.items)))
        for name, deck in decks().items()
    ]
    return table(("deck", "of", "is about", "examples"), rows)


TABLES = {f"deck-{name.lower()}": (lambda deck=deck: page(deck)) for name, deck in decks().items()} | {"decks": index}
