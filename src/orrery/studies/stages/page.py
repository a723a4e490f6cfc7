"""The page of a run of stages: one HTML file that needs nothing but a browser."""

from collections.abc import Mapping, Sequence
from typing import Any

from orrery.reports.figures import bar_chart
from orrery.reports.making import Making
from orrery.reports.page import Heading, document, figure, rows_table, section, visible

COLUMNS = (
    ("perplexity", "perplexity of dialogues"),
    ("reward", "reward"),
    ("wins", "wins"),
    ("KL", "KL, nats a token"),
    ("length", "tokens of an answer"),
    ("ends", "answers that end"),
    ("leaks", "answers that leak a role"),
    ("format", "conversations in format"),
)
"""Scores by name, and the heads of their columns."""
MEASURED = (
    "Each value is the first and the last that the run itself measured: on what was held back; KL, in nats, and tokens "
    "on answers that it drew."
)
LONGEST = 600
"""Characters of a text that is shown."""


def page(values: Mapping[str, Any], picture: str, making: Making) -> str:
    """Return the whole page of what a report says; the same values give the same bytes."""
    parts = (
        section("The stages", figure(picture, MEASURED)),
        scores(values),
        charts(values),
        samples(values),
        conversations(values),
        computed(values),
    )
    return document(heading(values), parts, making)


def heading(values: Mapping[str, Any]) -> Heading:
    """Return the heading, and what was done in a sentence."""
    minutes = sum(run["minutes"] for run in values["runs"].values())
    lead = f"{len(values['runs'])} stages in {minutes:.1f} minutes; {values['settings']['against']} is what the others "
    lead += f"are compared with, the reward model of {values['settings']['judge']} judges."
    about = (" \u2192 ".join(values["runs"]), f"dialogues of {values['settings']['dialogues']}")
    return Heading("stages", values["name"], about, lead)


def scores(values: Mapping[str, Any]) -> str:
    """Return a table of all scores, a stage a row, with their intervals."""
    rows = []
    for name, stage in values["stages"].items():
        cells = [_number(stage["scores"].get(key)) for key, _ in COLUMNS]
        rows.append((name, *cells))
    times = [(name, f"{run['steps']:,}", f"{run['minutes']:.1f}") for name, run in values["runs"].items()]
    body = rows_table(("stage", *(head for _, head in COLUMNS)), rows)
    note = (
        "In brackets the interval that holds 95 % of a score's values on examples drawn again. The reward model is one "
        "of the stages: what is trained on it, or on its pairs, can please it without being better."
    )
    return section(
        "Side by side", f"{body}\n<p>{visible(note)}</p>\n" + rows_table(("stage", "steps", "minutes"), times)
    )


def _number(score: Mapping[str, Any] | None) -> str:
    """Return a score and its interval; nothing where there is none."""
    if score is None:
        return ""
    bounds = f" [{score['low']:.3g}, {score['high']:.3g}]" if "low" in score else ""
    return f"{score['score']:.4g}{bounds}"


def charts(values: Mapping[str, Any]) -> str:
    """Return reward, wins and divergence as bars."""
    figures = []
    for key, title, label in (
        ("reward", "Reward of the answers", "mean reward"),
        ("wins", f"Answers better than those of {values['settings']['against']}", "share of prompts, ties half"),
        ("KL", f"Divergence from {values['settings']['against']}", "nats a token"),
        ("format", "Conversations that keep the format", "share of conversations"),
    ):
        bars = {n: s["scores"][key]["score"] for n, s in values["stages"].items() if key in s["scores"]}
        if bars:
            figures.append(figure(bar_chart(bars, title=title, x_label=label)))
    return section("In figures", "\n".join(figures))


def samples(values: Mapping[str, Any]) -> str:
    """Return some prompts, each with the answers of all stages."""
    parts = []
    for sample in values["samples"]:
        rows = [
            (name, f"{one['reward']:.3f}", one["text"][:LONGEST] + ("" if one["ended"] else " [no end]"))
            for name, one in sample["answers"].items()
        ]
        table = rows_table(("stage", "reward", "answer"), rows)
        parts.append(f"<h3>{visible(sample['prompt'][:LONGEST])}</h3>\n{table}")
    return section("The same prompts", "\n".join(parts)) if parts else ""


def conversations(values: Mapping[str, Any]) -> str:
    """Return how conversations of several turns went, and the first with each stage."""
    heads = ("stage", "held", "in format", "answers", "without end", "leaked", "empty", "beyond the context")
    rows = []
    for name, stage in values["stages"].items():
        rows.append((name, *(f"{number:,}" for number in stage["conversations"].values())))
    turns = values["settings"]["turns"]
    note = (
        f"Each conversation has {turns} turns, with what users say in {values['settings']['dialogues']}; each answer "
        "stands in what is said next. One keeps the format where every answer ends with the end token within "
        f"{values['settings']['max_new_tokens']} tokens and none holds a control token or begins a turn of somebody."
    )
    talks = [_talk(name, messages) for name, messages in values["conversation"].items() if messages]
    return section(
        f"Conversations of {turns} turns", f"<p>{visible(note)}</p>\n{rows_table(heads, rows)}\n" + "\n".join(talks)
    )


def _talk(name: str, messages: Sequence[Mapping[str, str]]) -> str:
    rows = [(each["role"], each["text"][:LONGEST]) for each in messages]
    return f"<h3>{visible(name)}</h3>\n" + rows_table(("", "said"), rows)


def computed(values: Mapping[str, Any]) -> str:
    """Return how each score was computed."""
    signatures = {key: one["signature"] for stage in values["stages"].values() for key, one in stage["scores"].items()}
    return section("How the scores are computed", rows_table(("score", "signature"), list(signatures.items())))
