"""The report of a fine-tuning: one HTML file that needs nothing but a browser."""

from collections.abc import Sequence
from typing import Any

from orrery.data.pictures.png import write_png
from orrery.data.pictures.preparing import resized
from orrery.reports.figures import bar_chart, heat_map, line_chart
from orrery.reports.making import Making
from orrery.reports.measures import charts
from orrery.reports.page import Heading, document, figure, markup_table, picture, rows_table, section, visible
from orrery.scores.resampling import interval
from orrery.tasks.finetuning.findings import MANY, Findings, Mistake

SHOWN, LONGEST = 25, 400
"""Mistakes that are shown, and characters of each."""
SIDE, SMALL = 160, 56
"""Pixels that a picture has at most, and points that it is wide at least."""
ABOUT = ("begun from", "training data")
"""Facts of the run that stand at the top."""
MOST_LABELS = 80
"""Labels of a confusion matrix that can be drawn."""


def page(
    title: str,
    findings: Findings,
    records: Sequence[dict[str, Any]],
    facts: Sequence[tuple[str, str]],
    making: Making,
) -> str:
    """Return the whole page; the same findings give the same bytes."""
    parts = (
        scores(findings),
        charts(records),
        learning(records),
        confusion(findings),
        labels(findings),
        calibration(findings),
        mistakes(findings),
        looks(findings),
        section("The run", rows_table(("", ""), facts)),
    )
    said = dict(facts)
    about = [said[name] for name in ABOUT if name in said]
    return document(Heading("fine-tuning", title, about, result(findings)), parts, making)


def result(findings: Findings) -> str:
    """Return the result in two sentences."""
    main = findings.main
    text = f"{main.name[:1].upper()}{main.name[1:]} {main.score:.4f} on {findings.examples}."
    if main.examples >= MANY:
        bounds = interval(main)
        text += f" The {100 * bounds.level:g} % interval is {bounds.low:.4f} to {bounds.high:.4f}."
    if findings.floors:
        name, floor = findings.floors[-1]
        text += f" The best simple method ({name}) reaches {floor.score:.4f}."
    text += f" {findings.under[0].upper()}{findings.under[1:]}." if findings.under else ""
    return text


def scores(findings: Findings) -> str:
    """Return all scores with their intervals, what simple methods reach beside them, and how each was computed."""
    rows = []
    for score in findings.scores:
        bounds = interval(score) if score.examples >= MANY else None
        between = "" if bounds is None else f"{bounds.low:.4f} to {bounds.high:.4f}"
        rows.append((score.name, f"{score.score:.4f}", between))
    body = rows_table(("score", "value", "95 % interval"), rows)
    if findings.floors:
        bars = {"this model": findings.main.score, **{name: score.score for name, score in findings.floors}}
        chart = bar_chart(bars, title=f"{findings.main.name}, beside simple methods", x_label=findings.main.name)
        counted = [(score.name, f"{score.score:.4f}", name) for name, score in (*findings.floors, *findings.others)]
        body = figure(chart, f"On the same examples. {findings.apart}".strip()) + body
        body += rows_table(("score", "value", "of a simple method"), counted)
    signatures = rows_table(("score", "signature"), [(score.name, score.signature) for score in findings.scores])
    return section("Scores", body) + section("How they are computed", signatures)


def learning(records: Sequence[dict[str, Any]]) -> str:
    """Return the losses over the steps."""
    series = {}
    for key, name in (("train/loss", "training"), ("val/loss", "held back")):
        points = [(record["step"], record[key]) for record in records if record.get(key) is not None]
        if len(points) > 1:
            series[name] = points
    if not series:
        return ""
    chart = line_chart(series, title="Loss by step", x_label="step", y_label="loss")
    note = (
        "Where held back rises while training falls, the model learns its examples by heart. Training has the "
        "smoothing, the weights of labels and the hidden words that the recipe asks for, held back has none of them."
    )
    return section("How it learned", figure(chart, note))


def confusion(findings: Findings) -> str:
    """Return the confusion matrix, each row as shares."""
    if findings.confusion is None or len(findings.confusion[0]) > MOST_LABELS:
        return ""
    names, counts = findings.confusion
    shares = [[count / max(1, sum(row)) for count in row] for row in counts]
    chart = heat_map(shares, rows=names, columns=names, title="What each label (row) was called (column)", highest=1.0)
    pairs = [
        (counts[i][j], names[i], names[j])
        for i in range(len(names))
        for j in range(len(names))
        if i != j and counts[i][j]
    ]
    worst = sorted(pairs, key=lambda pair: (-pair[0], pair[1:]))[:SHOWN]
    table = rows_table(("right", "said", "times"), [(right, said, f"{count:,}") for count, right, said in worst])
    return section("What is taken for what", figure(chart, "Each row adds up to one.") + table)


def labels(findings: Findings) -> str:
    """Return precision, recall and F1 of each label."""
    if not findings.by_label:
        return ""
    rows = [(name, f"{p:.3f}", f"{r:.3f}", f"{f:.3f}", f"{count:,}") for name, p, r, f, count in findings.by_label]
    return section("Label by label", rows_table(("label", "precision", "recall", "F1", "examples"), rows))


def calibration(findings: Findings) -> str:
    """Return how often the model is right, over how sure it is."""
    points = [(each.confidence, each.accuracy) for each in findings.bins if each.examples]
    if not points:
        return ""
    series = {"this model": points, "as sure as right": [(0.0, 0.0), (1.0, 1.0)]}
    chart = line_chart(series, title="Right answers by confidence", x_label="confidence", y_label="share that is right")
    note = "Below the straight line the model is surer than it is right."
    return section("Does it know what it knows?", figure(chart, note))


def mistakes(findings: Findings) -> str:
    """Return the worst mistakes with their texts or pictures."""
    if not findings.mistakes:
        return ""
    some = findings.mistakes[:SHOWN]
    heads: tuple[str, ...] = ("right", "said", "picture" if some[0].picture is not None else "text")
    rows = [[visible(each.right), visible(each.said), _shown(each)] for each in some]
    if any(each.confidence is not None for each in some):
        confidences = ["" if each.confidence is None else f"{each.confidence:.3f}" for each in some]
        heads, rows = ("sure", *heads), [[one, *row] for one, row in zip(confidences, rows, strict=True)]
    return section("The worst mistakes", markup_table(heads, rows))


def _shown(mistake: Mistake) -> str:
    """Return the text of a mistake, cut where it is long, or its picture, made smaller where it is large."""
    if mistake.picture is None:
        return visible(mistake.text[:LONGEST])
    pixels = mistake.picture
    scale = min(1.0, SIDE / max(pixels.shape[1:]))
    small = resized(pixels, (max(1, round(pixels.shape[1] * scale)), max(1, round(pixels.shape[2] * scale))), 2)
    return picture(write_png(small), mistake.text, max(SMALL, small.shape[2]))


def looks(found: Findings) -> str:
    """Return pictures with the words of their captions, each bright where the word looked."""
    if not found.shown:
        return ""
    parts = []
    for caption, words in found.shown:
        cells = [[picture(write_png(pixels), word, max(SMALL, pixels.shape[2])) for word, pixels in words]]
        parts.append(f"<p>{visible(caption)}</p>" + markup_table([visible(word) for word, _ in words], cells))
    note = "<p>Bright is where the writer looked when it chose the word: the mean over its blocks and heads.</p>"
    return section("Where each word looked", note + "".join(parts))
