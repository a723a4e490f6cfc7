"""The demo's page: findings in, one HTML file out that needs nothing but a browser."""

from collections.abc import Mapping
from itertools import groupby
from typing import Any

from orrery.reports.figures import bar_chart, heat_map, line_chart
from orrery.reports.making import Making
from orrery.reports.page import Heading, document, figure, rows_table, section, visible
from orrery.studies.demo.findings import DemoFindings, DemoHead

_SUMMARY = {"check": "must be above the model", "aim": "a number to aim at", "model": ""}


def page(findings: DemoFindings, making: Making) -> str:
    """Return the whole page; the same findings give the same bytes."""
    parts = (curves, comparison, samples, attention, checks, facts, onward)
    return document(summary(findings), [part(findings) for part in parts], making)


def summary(findings: DemoFindings) -> Heading:
    """Return the heading, with the result in two sentences."""
    corpus, run = findings.corpus, findings.run
    verdict = "Every check below passed." if not findings.failed else f"{len(findings.failed)} of the checks failed."
    seconds = sum(run.seconds.values())
    text = (
        f"In {seconds:.0f} seconds this machine built a tokenizer and trained a {run.family} of {run.parameters:,} "
        f"parameters on {corpus.train_bytes / 1e6:.1f} MB of text ({corpus.source}). Text that it has never seen costs "
        f"it {findings.model.bits_per_byte:.2f} bits per byte. {verdict}"
    )
    model = f"{run.family}, {run.parameters:,} parameters"
    return Heading("demo", "The whole system in minutes", (model, corpus.source), text)


def curves(findings: DemoFindings) -> str:
    """Return the losses over the tokens seen."""
    names = {"train/loss": "training", "val/loss": "held back"}
    series = {
        name: [(record["tokens"], record[key]) for record in findings.run.records if record.get(key) is not None]
        for key, name in names.items()
    }
    chart = line_chart(
        {name: points for name, points in series.items() if points},
        title="Loss while it learned",
        x_label="tokens seen",
        y_label="nats per token",
    )
    note = "What one token costs, lower is better. Where the curves part, the model knows its training text too well."
    return section("How it learned", figure(chart, note))


def comparison(findings: DemoFindings) -> str:
    """Return bits per byte as bars and as a table, the best first."""
    ordered = sorted(findings.measures, key=lambda measure: measure.bits_per_byte)
    place = 1 + ordered.index(findings.model)
    chart = bar_chart(
        {measure.name: measure.bits_per_byte for measure in ordered},
        title="Bits per byte of the text held back",
        x_label="bits per byte, lower is better",
    )
    # The chart has one hue; the model's bar is the one that keeps its full strength.
    strong = f"<style>.bars rect{{fill-opacity:.35}}.bars rect:nth-of-type({place}){{fill-opacity:1}}</style>"
    rows = [(measure.name, f"{measure.bits_per_byte:.3f}", _SUMMARY[measure.role]) for measure in ordered]
    table = rows_table(("", "bits per byte", ""), rows)
    return section("How good it is", strong + figure(chart, findings.method, "bars") + table)


def samples(findings: DemoFindings) -> str:
    """Return what the model wrote, by how its tokens were chosen."""
    parts = []
    for method, group in groupby(findings.samples, lambda sample: sample.method):
        samples_alike = list(group)
        speed = sum(sample.tokens for sample in samples_alike) / sum(
            max(sample.tokens, 1) / max(sample.tokens_per_second, 1e-9) for sample in samples_alike
        )
        parts.append(f"<h3>{visible(method)}</h3>\n<p>{speed:,.0f} tokens per second.</p>")
        parts += [
            f'<blockquote tabindex="0"><b>{visible(sample.prompt)}</b>{visible(sample.text)}</blockquote>'
            for sample in samples_alike
        ]
    return section("What it writes", "\n".join(parts))


def attention(findings: DemoFindings) -> str:
    """Return the two chosen heads with their tokens, and all heads small."""
    sight = findings.sight
    labels = list(sight.tokens)
    large = [
        figure(heat_map(head.pattern, rows=labels, columns=labels, title=head.name, highest=1.0), head.note)
        for head in sight.chosen
    ]
    onward = '<p><a href="inside.html">Every number of this pass, with its checks: the inside of the model</a></p>'
    note = (
        "A sentence of the text held back. Each row is a token that looks back, each column a token looked at; the "
        "stronger the colour, the more weight; a row sums to one. The patterns are derived from the queries and keys "
        "of the very pass that gave the answer, and compared with it below."
    )
    small = "".join(thumbnail(head) for head in sight.heads)
    columns = len(sight.heads) // len({head.name.partition(",")[0] for head in sight.heads})
    every = f"<h3>All {len(sight.heads)} heads, a row for each block</h3>\n"
    every += f'<div class="thumbs" style="--columns:{columns}">{small}</div>'
    return section("Where it looks", f"<p>{visible(note)}</p>\n{onward}\n{''.join(large)}\n{every}")


def thumbnail(head: DemoHead) -> str:
    """Return a head's pattern without tokens."""
    blank = [""] * len(head.pattern)
    return figure(heat_map(head.pattern, rows=blank, columns=blank, title=head.name, highest=1.0), head.name)


def checks(findings: DemoFindings) -> str:
    """Return each check with its number and its bound."""
    rows = [
        ("passed" if check.passed else "FAILED", check.name, f"{check.value:.4g}", f"{check.bound:.4g}")
        for check in findings.checks
    ]
    note = "What is to be below something compares bits per byte; the others are errors of the looking itself."
    return section("What was checked", f"<p>{note}</p>\n" + rows_table(("", "check", "number", "at most"), rows))


def facts(findings: DemoFindings) -> str:
    """Return the facts of text, model, training and time."""
    corpus, run = findings.corpus, findings.run
    rows = [
        ("text", f"{corpus.source}: {corpus.train_documents:,} documents, {corpus.train_bytes:,} bytes"),
        ("held back", f"{corpus.held_back_documents:,} whole documents, {corpus.held_back_bytes:,} bytes"),
        ("fingerprint", f"sha256 {corpus.fingerprint}"),
        ("tokenizer", f"byte-level BPE, {run.vocabulary:,} tokens, trained on the training documents alone"),
        ("model", f"{run.family}, {run.parameters:,} parameters: {settings_line(run.config)}"),
        ("training", f"{run.steps:,} steps, {run.tokens:,} tokens ({run.tokens / corpus.train_tokens:.2f} epochs)"),
        ("arithmetic", f"{run.precision}; measured and written in float32"),
        ("speed", f"{run.tokens_per_second:,.0f} tokens per second in training"),
        ("seed", str(run.seed)),
        *((name, f"{seconds:.1f} s") for name, seconds in run.seconds.items()),
    ]
    return section("The run", rows_table(("", ""), rows))


def onward(findings: DemoFindings) -> str:
    """Return what to try next."""
    folder = findings.run.folder
    lines = (
        f'orrery generate {folder} "The list" --max-new-tokens 60',
        f'orrery score {folder} "The list is sorted."',
        f"orrery train {folder}/config.yaml --output {folder}-longer --training.steps 4000",
        'orrery demo --data.train FOLDER --evaluation.sample "Dear" --output runs/mine',
    )
    code = "\n".join(lines)
    python = f'import orrery\n\nlm = orrery.load({folder!r})\nlm.trace("The list is sorted.").checks'
    return section("Go on", f"<pre>{visible(code)}</pre>\n<p>In Python:</p>\n<pre>{visible(python)}</pre>")


def settings_line(config: Mapping[str, Any]) -> str:
    """Return a family's configuration in one line."""
    return ", ".join(f"{name} {value}" for name, value in config.items())
