"""The report of a run of stages: every stage that writes beside the others, as a page and as JSON."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

from orrery.reports.making import made
from orrery.reports.status import waiting
from orrery.scores.resampled import Resampled
from orrery.scores.resampling import interval
from orrery.studies.kept import Kept, Say
from orrery.studies.stages.folder import Done, StagesFolder
from orrery.studies.stages.measure import Material, StageResult, measure_all
from orrery.studies.stages.page import page
from orrery.studies.stages.picture import picture
from orrery.studies.stages.recipe import Staged
from orrery.text.chat.messages import text_of

MANY = 2
"""Examples from which on an interval can be drawn."""


def write_report(staged: Staged, path: Path, say: Say) -> dict[str, Any]:
    """Measure the stages of a finished run, and write ``report.html`` and ``report.json`` beside them.

    Args:
        staged: the recipe, with a section ``report``.
        path: the folder of the run.
        say: told the scores of each stage and where the report is.

    Raises:
        UsageError: a stage cannot be what the report asks of it.
        ModelFileError: a stage has no model.
    """
    began = perf_counter()
    state = StagesFolder(path, staged).state()
    with waiting() as line:
        shared, results = measure_all(staged, path, line.now)
    values = as_values(staged, shared, results, state)
    for name, stage in values["stages"].items():
        say(f"{name}: " + ", ".join(f"{key} {one['score']:.4g}" for key, one in stage["scores"].items()))
    kept = Kept(path, "report", "report of stages")
    kept.leave(values, page(values, picture(staged, path, state), made()))
    say(f"compared in {perf_counter() - began:.1f} s; {kept.page} shows the stages side by side")
    return values


def as_values(
    staged: Staged, shared: Material, results: Mapping[str, StageResult], state: Mapping[str, Done]
) -> dict[str, Any]:
    """Return everything that the report says as plain values."""
    settings = shared.settings
    times = {stage.name: state.get(stage.name, Done()) for stage in staged.stages}
    return {
        "name": staged.name,
        "settings": settings.model_dump(mode="json"),
        "runs": {name: {"steps": done.steps, "minutes": done.seconds / 60} for name, done in times.items()},
        "stages": {name: _stage(one) for name, one in results.items()},
        "samples": _samples(shared, results),
        "conversation": _conversation(results),
    }


def _stage(one: StageResult) -> dict[str, Any]:
    """Return the scores of a stage, and how its conversations ended."""
    answers = [answer for talk in one.talks for answer in talk.answers]
    return {
        "scores": {score.name: told(score) for score in one.scores},
        "conversations": {
            "held": len(one.talks),
            "kept": sum(talk.kept for talk in one.talks),
            "answers": len(answers),
            "without_end": sum(not answer.ended for answer in answers),
            "leaked": sum(answer.leaked for answer in answers),
            "empty": sum(not answer.text.strip() for answer in answers),
            "beyond_context": sum(talk.forgotten > 0 for talk in one.talks),
        },
    }


def told(score: Resampled) -> dict[str, Any]:
    """Return a score with its interval as plain values."""
    bounds = interval(score) if score.examples >= MANY else None
    plain: dict[str, Any] = {"score": score.score, "examples": score.examples, "signature": score.signature}
    return plain if bounds is None else {**plain, "low": bounds.low, "high": bounds.high}


def _samples(shared: Material, results: Mapping[str, StageResult]) -> list[dict[str, Any]]:
    """Return some prompts, evenly spread, each with the answer and the reward of every stage."""
    count = min(shared.settings.shown, len(shared.prompts))
    places = [number * len(shared.prompts) // count for number in range(count)]
    return [
        {
            "prompt": "\n".join(text_of(message) for message in shared.prompts[place].messages),
            "answers": {
                name: {"text": one.answers[place].text, "reward": one.rewards[place], "ended": one.answers[place].ended}
                for name, one in results.items()
            },
        }
        for place in places
    ]


def _conversation(results: Mapping[str, StageResult]) -> dict[str, Sequence[Mapping[str, str]]]:
    """Return the first conversation with each stage, its messages as they were said."""
    return {
        name: [
            {"role": str(message["role"]), "text": text_of(message)}
            for message in (one.talks[0].messages if one.talks else ())
        ]
        for name, one in results.items()
    }
