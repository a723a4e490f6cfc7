"""The page of a comparison: findings in, one HTML file out that needs nothing but a browser."""

from orrery.reports.making import Making
from orrery.reports.page import Heading, document, figure, rows_table, section, visible
from orrery.studies.compare import charts
from orrery.studies.compare.budgets import Budget
from orrery.studies.compare.charts import BY_BUDGET, BY_SECONDS, BY_TOKENS, SWEEPS, figures
from orrery.studies.compare.findings import Comparison
from orrery.studies.compare.probes.table import PROBES
from orrery.studies.compare.summary import columns, gain_sentences, gains, order_sentences, ranked, table
from orrery.studies.compare.sweep import at_edge


def page(comparison: Comparison, making: Making) -> str:
    """Return the whole page; the same findings give the same bytes."""
    drawn = figures(comparison)
    parts = (
        quality(comparison),
        curves(drawn),
        budgets(comparison, drawn),
        recipe_or_budget(comparison),
        sweeps(comparison, drawn),
        probes(comparison, drawn),
        facts(comparison),
    )
    return document(summary(comparison), parts, making)


def summary(comparison: Comparison) -> Heading:
    """Return the heading, with the result in two sentences."""
    best, *_, worst = (groups := ranked(comparison)) * 2
    last = f", the last {worst.name} with {worst.mean:.3f}" if len(groups) > 1 else ""
    text = (
        f"{len(groups)} models learned the same text with the same tokenizer and {given(comparison)}. The best is "
        f"{best.name} with {best.mean:.3f} bits per byte of the text held back{last}."
    )
    title = f"{len(groups)} models on one text" if len(groups) > 1 else f"{best.name} on one text"
    return Heading("comparison", title, (str(comparison.corpus["source"]), given(comparison)), text)


def given(comparison: Comparison) -> str:
    """Return what each model was given, in words."""
    unit, seeds = comparison.settings["unit"], len(comparison.settings["seeds"])
    each = " or ".join(Budget(amount, unit).label for amount in sorted(comparison.settings["budgets"]))
    return f"{each} each" + (f", with {seeds} seeds" if seeds > 1 else "")


def quality(comparison: Comparison) -> str:
    """Return bits per byte as bars, and everything as a table, the best first."""
    note = (
        "Each held-back document is read from its own start, in overlapping windows; every token counts once. "
        "Perplexity is of a token. The n-gram's parameters are its different n-grams, and it sees all tokens before. "
        "With several seeds: the mean, and the standard deviation behind \u00b1."
    )
    return section(
        "Who learned most", figure(charts.bars(comparison), note) + rows_table(columns(comparison), table(comparison))
    )


def curves(drawn: dict[str, str]) -> str:
    """Return the losses over seconds and over tokens."""
    if BY_SECONDS not in drawn:
        return section("How they learned", "<p>None of them learned step by step.</p>")
    note = (
        "Held-back text, the greatest budget and the first seed; evaluations are not counted as training. What was "
        "counted rather than trained is a level line."
    )
    return section("How they learned", "\n".join(figure(drawn[name], note) for name in (BY_SECONDS, BY_TOKENS)))


def budgets(comparison: Comparison, drawn: dict[str, str]) -> str:
    """Return bits per byte over the budget, and where the order of each two models turns."""
    if BY_BUDGET not in drawn:
        return ""
    note = "Each point is a training of its own, with a schedule that ends with its budget; upright: the seeds' spread."
    said = "".join(f"<li>{visible(sentence)}</li>" for sentence in order_sentences(comparison))
    return section("By the budget", figure(drawn[BY_BUDGET], note) + f"<ul>{said}</ul>")


def recipe_or_budget(comparison: Comparison) -> str:
    """Return how much each gains by its own rate and how much by more budget."""
    rows = [
        (gain.name, *(f"{number:.3f}" for number in (gain.before, gain.recipe, gain.budget, gain.after)))
        for gain in gains(comparison)
    ]
    if not rows:
        return ""
    heads = ("model", "hand-set rate, least budget", "gained by the sweep", "gained by budget", "both")
    said = "".join(f"<li>{visible(sentence)}</li>" for sentence in gain_sentences(comparison))
    return section("Recipe or budget", rows_table(heads, rows) + f"<ul>{said}</ul>")


def sweeps(comparison: Comparison, drawn: dict[str, str]) -> str:
    """Return every trial of every sweep, what it reached, and what was chosen."""
    if not comparison.sweeps:
        return ""
    settings = comparison.settings["sweep"]
    note = ""
    if settings is not None:
        trials, each = settings["rates"] + len(settings["warmups"]) - 1, Budget(settings["trial"], settings["unit"])
        note = (
            f"The same for all: {trials} trials with {each.label} each, judged on the end of the training text, which "
            "they learn nothing of; the first at the rate set by hand. The text of the table is another. "
        )
    rows = []
    for name, sweep in comparison.sweeps.items():
        for number, trial in enumerate(sweep.trials, start=1):
            chosen = "chosen" + (", at the edge" if at_edge(sweep) else "") if trial == sweep.best else ""
            loss = "came apart" if trial.bits_per_byte is None else f"{trial.bits_per_byte:.3f}"
            rows.append(
                (name, str(number), f"{trial.rate:.3g}", f"{trial.warmup:.0%}", f"{trial.steps:,}", loss, chosen)
            )
    heads = ("model", "trial", "rate", "warm-up", "steps", "bits per byte", "")
    drawing = figure(drawn[SWEEPS], note) if SWEEPS in drawn else f"<p>{visible(note)}</p>"
    return section("The sweep", drawing + rows_table(heads, rows))


def probes(comparison: Comparison, drawn: dict[str, str]) -> str:
    """Return the figure of every probe, with its numbers."""
    made = []
    for name, curves_by_model in comparison.probes.items():
        probe = PROBES[name]
        if name not in drawn:
            continue
        places = list(dict.fromkeys(place for curve in curves_by_model.values() for place in curve))
        rows = [
            (model, *(f"{curve[place]:.4g}" if place in curve else "" for place in places))
            for model, curve in curves_by_model.items()
        ]
        made.append(figure(drawn[name], probe.note) + rows_table((probe.x_label, *places), rows))
    return section("What else they can do, and what it costs", "\n".join(made)) if made else ""


def facts(comparison: Comparison) -> str:
    """Return the facts of text and models."""
    corpus = comparison.corpus
    described = {entry.name: entry.description for entry in comparison.entries}
    rows = [
        ("text", f"{corpus['source']}: {corpus['train_bytes']:,} bytes, {corpus['train_tokens']:,} tokens"),
        ("held back", f"{corpus['held_back_bytes']:,} bytes, {corpus['held_back_tokens']:,} tokens"),
        ("kept for choosing", f"{corpus['choosing_bytes']:,} bytes at the end of the training text's documents"),
        ("fingerprint", f"sha256 {corpus['fingerprint']}"),
        ("vocabulary", f"{corpus['vocabulary']:,} tokens"),
        ("seeds", ", ".join(map(str, comparison.settings["seeds"]))),
        *described.items(),
    ]
    return section("Facts", rows_table(("", ""), rows))
