"""The pages of the course, as Markdown: their text and their code are those of `orrery_course.course`."""

import re
from collections.abc import Iterator, Sequence
from html import escape

from _benchmark_tables import table

from orrery_course.course import DAYS, EVENING, SUBJECTS, Deck, Item, Subject, decks, levels

PAGES = tuple(f"docs/course/{name.lower()}.md" for name in decks())

MOVED = {
    ("S1", "soft-dictionary"): "scale",
    ("S1", "mask"): "mask",
    ("S2", "sinusoids"): "base",
    ("S2", "llama"): "window",
    ("S3", "sampling"): "temperature",
}
"""The examples that have a picture with a slider."""


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
    if name := MOVED.get((item.deck, item.name)):
        yield f"```{{interactive}}\n{name}\n```"
    more = f"; more by `{item.more}`" if item.more else ""
    yield f"In the terminal: `orrery course {item.deck} {item.name}`{more}."


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


def evening() -> str:
    """Return ten items, one after the other."""
    items = [next(one for one in decks()[name[:2]].items if f"{one.deck} {one.name}" == name) for name in EVENING]
    return "".join(f"{place}. {_link(item)}\n" for place, item in enumerate(items, 1))


def week() -> str:
    """Return the subjects of each day, with links to the weeks of a term."""
    rows = []
    for day, places in enumerate(DAYS, 1):
        subjects = [(f"[{SUBJECTS[place].name}](#{_anchor(_week(place + 1))})", SUBJECTS[place]) for place in places]
        count = sum(len(one.items) for _, one in subjects)
        rows.append((str(day), "; ".join(link for link, _ in subjects), str(count)))
    return table(("day", "subjects", "examples"), rows)


def term() -> str:
    """Return a week for each subject: what it needs, and its items."""
    return "\n".join(line for place in range(1, len(SUBJECTS) + 1) for line in _lesson(place))


def _lesson(place: int) -> Iterator[str]:
    """Yield the lines of a week."""
    subject = SUBJECTS[place - 1]
    yield f"### {_week(place)}\n"
    if subject.needs:
        yield f"Needs {', '.join(name[0].lower() + name[1:] for name in subject.needs)}.\n"
    yield from (f"- {_link(item)}" for item in subject.found)
    yield ""


def _week(place: int) -> str:
    return f"Week {place}: {SUBJECTS[place - 1].name}"


def drawing() -> str:
    """Return the subjects, each below what it needs, as SVG in a block of the page."""
    return f"```{{raw}} html\n{_svg(SUBJECTS)}\n```\n"


STYLE = (
    ".cs path{fill:none;stroke:currentColor;stroke-opacity:.5}"
    ".cs rect{fill:var(--color-background-primary,#fff);stroke:#0b62a4}"
    ".cs text{font:12px sans-serif;fill:currentColor;text-anchor:middle}"
)
WIDTH, HEIGHT, ACROSS, DOWN, MARGIN = 190, 30, 20, 34, 8
"""Pixels of a box, between boxes, and around all."""


def _svg(subjects: Sequence[Subject]) -> str:
    """Place each subject in the row of its level, and join it to what it needs by a curve."""
    row, placed, place = levels(), dict.fromkeys(levels().values(), 0), {}
    for subject in subjects:
        level = row[subject.name]
        place[subject.name] = (MARGIN + placed[level] * (WIDTH + ACROSS), MARGIN + level * (HEIGHT + DOWN))
        placed[level] += 1
    lines, boxes = [], []
    for subject in subjects:
        x, y = place[subject.name]
        for name in subject.needs:
            begin, end, top = place[name][0] + WIDTH // 2, x + WIDTH // 2, place[name][1] + HEIGHT
            lines.append(f'<path d="M{begin} {top}C{begin} {top + DOWN} {end} {y - DOWN} {end} {y}"/>')
        boxes.append(f'<rect x="{x}" y="{y}" width="{WIDTH}" height="{HEIGHT}" rx="4"/>')
        boxes.append(f'<text x="{x + WIDTH // 2}" y="{y + 19}">{escape(_short(subject.name))}</text>')
    wide = max(x for x, _ in place.values()) + WIDTH + MARGIN
    high = max(y for _, y in place.values()) + HEIGHT + MARGIN
    style = "<style>" + STYLE + "</style>"
    title = "What depends on what: a line leads down from each subject to those that need it"
    size = f'viewBox="0 0 {wide} {high}" width="{wide}" height="{high}" style="max-width:100%;height:auto"'
    named = f'role="img" aria-label="{title}"'
    drawn = f'<svg class="cs" {size} {named}>{style}{"".join(lines + boxes)}</svg>'
    return f'<figure class="example wide">{drawn}</figure>'


def _short(name: str) -> str:
    return name if len(name) <= 27 else name.partition(",")[0]


def _link(item: Item) -> str:
    return f"[{item.title}]({item.deck.lower()}.md#{_anchor(item.title)}) ({item.deck})"


def _anchor(title: str) -> str:
    """Return the anchor of a heading, as GitHub and MyST make it."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


TABLES = {f"deck-{name.lower()}": (lambda deck=deck: page(deck)) for name, deck in decks().items()} | {
    "decks": index, "evening": evening, "week": week, "term": term, "drawing-of-subjects": drawing,
}  # fmt: skip
