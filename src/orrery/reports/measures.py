"""A page that follows a run: one curve for each of its measures, written again with every line of metrics."""

from collections.abc import Sequence
from typing import Any

from orrery.reports.figures import line_chart
from orrery.reports.making import Making
from orrery.reports.page import Heading, document, figure, section

SECONDS = 5
"""After which a page of a run that is not over loads itself again."""
SAID = {
    "reward": ("Reward", "mean of the answers that were drawn"),
    "kl_k3": ("Divergence from the reference", "KL, nats a token (estimate k3)"),
    "length": ("Length", "tokens of an answer"),
    "entropy": ("Entropy", "nats a token"),
    "finished": ("Answers that end", "share with an end token"),
    "clipped": ("Clipped ratios", "share of tokens"),
    "ratio": ("Ratio to the policy that wrote", "mean over tokens"),
    "value": ("Error of the value head", "half the squared error"),
    "kl_weight": ("Weight of the divergence", "nats to reward"),
}
"""Titles and units of measures, in the order in which they are shown; others have their name."""
BESIDE = {"reward": "val/reward"}
"""What is drawn beside a measure: the same of answers held back."""
LEFT_OUT = ("kl_k1", "kl_k2")


def measures_page(
    title: str, about: Sequence[str], records: Sequence[dict[str, Any]], steps: int, making: Making
) -> str:
    """Return the page of a run's measures so far; ``steps`` are those that it will have, ``about`` model and data."""
    done = records[-1]["step"] if records else 0
    html = document(Heading("training", title, about, f"{done:,} of {steps:,} steps."), [charts(records)], making)
    again = f'<meta http-equiv="refresh" content="{SECONDS}">\n<title>'
    return html.replace("<title>", again, 1) if done < steps else html


def charts(records: Sequence[dict[str, Any]]) -> str:
    """Return a section with a curve for each measure that the objective reports; nothing where it reports none."""
    figures, known = [], False
    for name in reported(records):
        title, unit = SAID.get(name, (name, name))
        keys = {"training": f"train/{name}"} | ({"held back": BESIDE[name]} if name in BESIDE else {})
        series = {said: points(records, key) for said, key in keys.items() if points(records, key)}
        if series:
            figures.append(figure(line_chart(series, title=title, x_label="step", y_label=unit)))
            known = known or name in SAID
    heading = "Reward, divergence, length, entropy" if known else "Terms of the loss"
    return section(heading, "\n".join(figures)) if figures else ""


def reported(records: Sequence[dict[str, Any]]) -> list[str]:
    """Return the names of the measures, those that are known first."""
    keys = dict.fromkeys(key for record in records for key in record if key.startswith("train/"))
    names = [key.removeprefix("train/") for key in keys if key != "train/loss"]
    known = [name for name in SAID if name in names]
    return known + [name for name in names if name not in known and name not in LEFT_OUT]


def points(records: Sequence[dict[str, Any]], key: str) -> list[tuple[int, float]]:
    """Return (step, value) wherever a value was measured."""
    return [(record["step"], record[key]) for record in records if record.get(key) is not None]
