"""Weights & Biases, by the package ``wandb``."""

import json
import uuid
from pathlib import Path
from typing import Any, Literal

from orrery.reports.observers import Event, Observer, RunBegan, RunEnded, StepLearned, place, register
from orrery.reports.observers._observer import package
from orrery.schema.section import Section

STATE = "wandb.json"


@register
class WeightsAndBiases(Observer):
    """A run of Weights & Biases, with the recipe as its configuration and every line of metrics.

    Its files lie in ``observers/wandb/`` of the run's folder. A run that is resumed goes on there under the same id,
    and what was logged before a kill is not logged again.
    """

    class Settings(Section):
        """``mode`` is ``online``, ``offline`` or ``disabled``; without one ``WANDB_MODE`` says it, as usual."""

        kind: Literal["wandb"] = "wandb"
        project: str = "orrery"
        entity: str | None = None
        mode: Literal["online", "offline", "disabled"] | None = None

    def __init__(self, project: str, entity: str | None, mode: str | None) -> None:
        self._wandb = package("wandb", "wandb")
        self._where = {"project": project, "entity": entity, "mode": mode}
        self._run: Any = None
        self._id, self._logged = "", 0

    def observe(self, event: Event) -> None:
        """Begin or go on, log each record that was not logged, and end."""
        match event:
            case RunBegan():
                self._begin(event)
            case StepLearned() if event.record is not None and event.step > self._logged:
                self._run.log(event.numbers, step=event.step)
                self._note(event.folder, event.step)
            case RunEnded():
                self._run.finish(exit_code=1 if event.error else 0)

    def _begin(self, event: RunBegan) -> None:
        file = place(event.folder) / STATE
        before = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
        self._id = before.get("id") or uuid.uuid4().hex[:8]
        self._note(event.folder, before.get("logged", 0))
        self._run = self._wandb.init(
            id=self._id,
            resume="allow",
            name=event.name,
            config=dict(event.recipe),
            dir=str(place(event.folder)),
            settings=self._wandb.Settings(console="off"),
            **self._where,
        )

    def _note(self, folder: Path, step: int) -> None:
        self._logged = step
        (place(folder) / STATE).write_text(json.dumps({"id": self._id, "logged": step}) + "\n", encoding="utf-8")
