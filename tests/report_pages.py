"""One small page of each kind of report, with numbers that nobody measured and texts that are long."""

from collections.abc import Callable
from math import sin
from typing import Any

from compare_toy import whole
from demo_toy import findings
from ladder_toy import followed
from made_pages import MADE
from orrery.reports.flow import Box, flow
from orrery.reports.measures import measures_page
from orrery.scores.calibration import Bin
from orrery.scores.classification import accuracy
from orrery.studies.bench import report as speed
from orrery.studies.compare import page as compare
from orrery.studies.demo import page as demo
from orrery.studies.ladder import page as ladder
from orrery.studies.ladder.forecast import forecasts
from orrery.studies.stages import page as stages
from orrery.tasks.finetuning import page as finetuning
from orrery.tasks.finetuning.findings import Findings, Mistake
from orrery_course.labs import _page as labs
from orrery_course.labs import carry_out
from orrery_course.papers import tables
from speed_toy import MEASURED

TEXT = "A sentence of some length, with a_name_that_is_longer_than_any_word_of_a_language and <b>marks</b>. "


def curve(name: str, start: float) -> list[dict[str, Any]]:
    """Return lines of metrics of a measure that falls."""
    return [{"step": step, f"train/{name}": start / (1 + step / 20) + sin(step) / 50} for step in range(1, 80)]


def finetuning_page() -> str:
    """Return the report of a fine-tuning with everything that it can have."""
    names = [f"label number {number}" for number in range(12)]
    gold = [names[number % 12] for number in range(96)]
    said = [names[(number + number % 3) % 12] for number in range(96)]
    score, floor = accuracy(said, gold), accuracy([names[0]] * 96, gold)
    counts = [[8 if row == column else (row * column) % 3 for column in range(12)] for row in range(12)]
    found = Findings(
        scores=(score,),
        examples="96 texts held back",
        floors=[("the most frequent label", floor)],
        confusion=(names, counts),
        bins=[Bin(n / 10, (n + 1) / 10, 9, n / 10 + 0.05, n / 12) for n in range(10)],
        mistakes=[Mistake(TEXT * 3, names[1], names[2], 0.97), Mistake("short", names[3], names[4], 0.91)],
        by_label=[(name, 0.9, 0.5, 0.6429, 8) for name in names],
    )
    records = [{**line, "val/loss": 0.9} for line in curve("loss", 3.0)]
    facts = [("training data", "reviews/train.csv, 864 examples"), ("begun from", "runs/encoder"), ("seed", "7")]
    return finetuning.page("reviews-classification", found, records, facts, MADE)


def stages_page() -> str:
    """Return the report of three stages, one of them the judge."""
    names = ("sft", "reward", "ppo")
    scores = {key: {"score": 0.5, "low": 0.25, "high": 0.75, "signature": TEXT} for key, _ in stages.COLUMNS}
    talk = [{"role": "user", "text": TEXT}, {"role": "assistant", "text": TEXT * 2}]
    answer = {"text": TEXT, "reward": 1.25, "ended": False}
    kept = dict.fromkeys(("held", "kept", "answers", "without_end", "leaked", "empty", "beyond_context"), 3)
    values = {
        "name": "from-imitation-to-reward",
        "settings": {"judge": "reward", "against": "sft", "dialogues": "talks.jsonl", "turns": 2, "max_new_tokens": 40},
        "runs": {name: {"steps": 1200, "minutes": 3.5} for name in names},
        "stages": {name: {"scores": scores, "conversations": kept} for name in ("sft", "ppo")},
        "samples": [{"prompt": TEXT, "answers": {name: answer for name in ("sft", "ppo")}}],
        "conversation": {name: talk for name in ("sft", "ppo")},
    }
    boxes = [Box(name, [f"stage {name}", "talks.jsonl", "1,200 steps, 3.5 minutes"]) for name in names]
    return stages.page(values, flow(boxes, [(0, 1), (1, 2)], title="The stages of this run"), MADE)


def labs_page() -> str:
    """Return the page of one lab."""
    return labs.page({"bottleneck": carry_out("bottleneck", [2], quick=True)}, MADE)


def ladder_page() -> str:
    """Return the page of a ladder whose losses follow a law."""
    followed_law = followed(lambda parameters: 1.2 + 30 / parameters**0.35)
    return ladder.page(followed_law, forecasts(followed_law), MADE)


REPORTS: dict[str, Callable[[], str]] = {
    "demo": lambda: demo.page(findings(TEXT), MADE),
    "fine-tuning": finetuning_page,
    "comparison": lambda: compare.page(whole(), MADE),
    "ladder": ladder_page,
    "labs": labs_page,
    "stages": stages_page,
    "speed": lambda: speed.page(MEASURED, MADE),
    "plan": lambda: tables.page(MADE),
    "training": lambda: measures_page("helpful", ("runs/sft", "prompts.jsonl"), curve("reward", 2.0), 79, MADE),
}
"""What makes the page, by the kind that it calls itself."""
