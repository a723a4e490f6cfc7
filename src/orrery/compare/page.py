"""The page of a comparison: findings in, one HTML file out that needs nothing but a browser."""

from orrery.compare.findings import COLUMNS, Comparison
from orrery.reports.figures import bar_chart, line_chart
from orrery.reports.page import document, figure, rows_table, section, visible


def page(found: Comparison) -> str:
    """Return the whole page; the same findings give the same bytes."""
    body = "\n".join((summary(found), table(found), curves(found), facts(found)))
    return document("Orrery: a comparison", body)


def summary(found: Comparison) -> str:
    """Return the heading and the result in two sentences."""
    best, worst = found.ranked[0], found.ranked[-1]
    text = (
        f"{len(found.entries)} models learned the same text with the same tokenizer and {budget(found)}. The best is "
        f"{best.name} with {best.bits_per_byte:.3f} bits per byte of the text held back, the last {worst.name} with "
        f"{worst.bits_per_byte:.3f}."
    )
    return f'<header>\n<h1>Orrery</h1>\n<p class="lead">{visible(text)}</p>\n</header>'


def budget(found: Comparison) -> str:
    """Return what each model was given, in words."""
    steps, minutes = found.settings["steps"], found.settings["minutes"]
    count, unit = (f"{steps:,}", "step") if steps is not None else (f"{minutes:g}", "minute")
    return f"{count} {unit} each" if count == "1" else f"{count} {unit}s each"


def table(found: Comparison) -> str:
    """Return bits per byte as bars, and everything as a table, the best first."""
    chart = bar_chart(
        {entry.name: entry.bits_per_byte for entry in found.ranked},
        title="Bits per byte of the text held back",
        x_label="bits per byte, lower is better",
    )
    note = (
        "Each held-back document is read from its own start, in overlapping windows; every token counts once. "
        "Perplexity is of a token. The n-gram's parameters are its different n-grams, and it sees all tokens before."
    )
    return section("Who learned most", figure(chart, note) + rows_table(COLUMNS, [entry.row for entry in found.ranked]))


def curves(found: Comparison) -> str:
    """Return the losses over seconds and over tokens."""
    if not any(entry.curve for entry in found.entries):
        return section("How they learned", "<p>None of them learned step by step.</p>")
    note = "Held-back text, seconds of training alone. What was counted rather than trained is a level line."
    figures = [figure(svg, note) for svg in (by_seconds(found), by_tokens(found))]
    return section("How they learned", "\n".join(figures))


def by_seconds(found: Comparison) -> str:
    """Return bits per byte over seconds of training, as SVG."""
    return _chart(found, "seconds", "seconds of training")


def by_tokens(found: Comparison) -> str:
    """Return bits per byte over tokens seen, as SVG."""
    return _chart(found, "tokens", "tokens seen")


def _chart(found: Comparison, axis: str, label: str) -> str:
    places = [getattr(point, axis) for entry in found.entries for point in entry.curve]
    series = {}
    for entry in found.entries:
        level = [(place, entry.bits_per_byte) for place in (min(places), max(places))]
        series[entry.name] = [(getattr(point, axis), point.bits_per_byte) for point in entry.curve] or level
    title = f"What a byte costs, by {label}"
    return line_chart(series, title=title, x_label=label, y_label="bits per byte")


def facts(found: Comparison) -> str:
    """Return the facts of text and models."""
    corpus = found.corpus
    rows = [
        ("text", f"{corpus['source']}: {corpus['train_bytes']:,} bytes, {corpus['train_tokens']:,} tokens"),
        ("held back", f"{corpus['held_back_bytes']:,} bytes, {corpus['held_back_tokens']:,} tokens"),
        ("fingerprint", f"sha256 {corpus['fingerprint']}"),
        ("vocabulary", f"{corpus['vocabulary']:,} tokens"),
        ("seed", str(found.settings["seed"])),
        *((entry.name, entry.description) for entry in found.entries),
    ]
    return section("Facts", rows_table(("", ""), rows))
