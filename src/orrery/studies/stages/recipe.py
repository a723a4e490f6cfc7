"""A recipe of stages: ordinary recipes with names, which begin from one another; importing it imports no torch."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from orrery.errors import UsageError
from orrery.recipes.config import Recipe, RunName
from orrery.recipes.read import check_as, check_recipe, overridden, read_yaml
from orrery.schema.numbers import NotNegative, Positive, Seed
from orrery.schema.section import Section

PREFIX = "stage:"
"""Before the name of a stage, in the place of the folder of its run."""
FILE = "recipe"
"""The key of a stage that names the file of its recipe; the keys beside it change that."""
StageName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$", max_length=40)]
RESERVED = ("stages.json", "report.html", "report.json", "lock")
"""What lies beside the folders of the stages."""


class ReportSettings(Section):
    """What is compared at the end.

    ``judge`` is the stage whose reward model judges answers to the prompts that it held back, ``prompts`` of them at
    most; ``against`` is the stage with which the others are compared. ``dialogues`` are conversations that no stage has
    learnt: their replies are scored, and what users say in them is said to each model, ``conversations`` times for
    ``turns`` turns. Answers have ``max_new_tokens`` at most and are drawn at ``temperature``, 0 for the likeliest;
    ``shown`` prompts stand in the report with all answers.
    """

    judge: str
    against: str
    dialogues: str
    prompts: Positive = 100
    conversations: Positive = 200
    turns: Positive = 6
    max_new_tokens: Positive = 64
    temperature: NotNegative = 0.0
    shown: Positive = 6


class StagesSettings(Section):
    """Stages by name, each an ordinary recipe or the ``recipe`` of a file beside this one, with keys that change it.

    A value ``stage:NAME`` is the folder of that stage's run. ``seed``, where it is given, is that of every stage.
    """

    name: RunName
    seed: Seed | None = None
    stages: Annotated[dict[StageName, dict[str, Any]], Field(min_length=1)]
    report: ReportSettings | None = None

    @model_validator(mode="after")
    def _report_names_stages(self) -> "StagesSettings":
        named = {} if self.report is None else {"judge": self.report.judge, "against": self.report.against}
        for key, stage in named.items():
            if stage not in self.stages:
                parts = {"key": key, "stage": stage[:100], "known": ", ".join(self.stages)}
                raise PydanticCustomError("stage", "report.{key}: no stage is called {stage}; known: {known}", parts)
        if taken := [name for name in self.stages if name in RESERVED]:
            raise PydanticCustomError("stage", "no stage can be called {name}", {"name": taken[0]})
        return self


@dataclass(frozen=True)
class Stage:
    """One stage: its recipe as plain values, in which other stages are named, and which these are."""

    name: str
    values: Mapping[str, Any]
    begins: tuple[str, ...]
    source: str

    def recipe(self, folder: Path) -> Recipe:
        """Return the recipe of the stage in the folder of a run of stages.

        Raises:
            UsageError: it is no recipe; the key is named.
        """
        return check_recipe(_placed(self.values, folder), f"{self.source}: stages.{self.name}")


@dataclass(frozen=True)
class Staged:
    """A recipe of stages, in the order in which they run."""

    settings: StagesSettings
    stages: tuple[Stage, ...]

    @property
    def name(self) -> str:
        """What the run is called."""
        return self.settings.name

    def as_values(self) -> dict[str, Any]:
        """Return it as plain values, each stage with all its keys."""
        stages = {stage.name: dict(stage.values) for stage in self.stages}
        report = self.settings.report
        plain = {"name": self.name, "seed": self.settings.seed, "stages": stages}
        return plain | ({} if report is None else {"report": report.model_dump(mode="json")})


def has_stages(path: Path) -> bool:
    """Say whether a recipe is one of stages."""
    return "stages" in read_yaml(path)


def load_staged(path: Path, overrides: Sequence[str] = (), environment: Mapping[str, str] | None = None) -> Staged:
    """Read a recipe of stages with what the environment and, over it, flags change; files of stages are read first.

    Raises:
        UsageError: it is none, or a stage is none, names one that is not there, or begins from itself.
    """
    values = read_yaml(path)
    stages = values.get("stages")
    if isinstance(stages, Mapping):
        values["stages"] = {name: _whole(path, str(name), content) for name, content in stages.items()}
    known = list(values["stages"]) if isinstance(stages, Mapping) else []
    values = overridden(values, overrides, environment, StagesSettings)
    after = values.get("stages")
    if known and isinstance(after, Mapping) and (new := [name for name in after if name not in known]):
        raise UsageError(f"stages.{new[0]}: no stage is called so", f"stages: {', '.join(known)}")
    settings = check_as(StagesSettings, values, str(path))
    named = {name: _stage(settings, path, name, content) for name, content in settings.stages.items()}
    return Staged(settings, tuple(named[name] for name in _order(named, path)))


def _whole(path: Path, name: str, content: Any) -> dict[str, Any]:
    """Return all keys of a stage: those of its file, and over them its own."""
    content = {FILE: content} if isinstance(content, str) else content
    if not isinstance(content, Mapping):
        message = f"{path}: stages.{name} is neither a recipe nor the file of one"
        raise UsageError(message, f"write {name}: FILE.yaml, or the keys of a recipe below it")
    own = dict(content)
    file = own.pop(FILE, None)
    if file is None:
        return own
    if not isinstance(file, str):
        raise UsageError(f"{path}: stages.{name}.{FILE} is no file", f"write {FILE}: FILE.yaml")
    return _over(read_yaml(path.parent / file), own)


def _over(values: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return nested mappings with others laid over them; one that says another kind replaces the whole."""
    merged = dict(values)
    for key, value in changes.items():
        before = merged.get(key)
        alike = isinstance(before, Mapping) and isinstance(value, Mapping) and _same_kind(before, value)
        merged[key] = _over(dict(before or {}), value) if alike else value
    return merged


def _same_kind(before: Mapping[str, Any], value: Mapping[str, Any]) -> bool:
    return bool(value.get("kind", before.get("kind")) == before.get("kind"))


def _stage(settings: StagesSettings, path: Path, name: str, content: Mapping[str, Any]) -> Stage:
    """Return a stage; its run is called as it is, and a seed of all stages is its own.

    Raises:
        UsageError: it names a stage that is not there.
    """
    seed = {} if settings.seed is None else {"seed": settings.seed}
    values = {**content, "name": f"{settings.name}-{name}", **seed}
    begins = tuple(dict.fromkeys(_named(values)))
    for other in begins:
        if other not in settings.stages:
            message = f"{path}: stages.{name} names the stage {other[:100]!r}, and there is none of this name"
            raise UsageError(message, f"stages: {', '.join(settings.stages)}")
    return Stage(name, values, begins, str(path))


def _named(value: Any) -> Iterator[str]:
    """Yield the stages that are named anywhere in a value."""
    if isinstance(value, str) and value.startswith(PREFIX):
        yield value.removeprefix(PREFIX)
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from _named(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _named(inner)


def _placed(value: Any, folder: Path) -> Any:
    """Return a value with the folders of stages in the place of their names."""
    if isinstance(value, str) and value.startswith(PREFIX):
        return str(folder / value.removeprefix(PREFIX))
    if isinstance(value, Mapping):
        return {key: _placed(inner, folder) for key, inner in value.items()}
    return [_placed(inner, folder) for inner in value] if isinstance(value, list) else value


def _order(stages: Mapping[str, Stage], path: Path) -> list[str]:
    """Return the names of the stages, each behind those that it begins from, else as they are written.

    Raises:
        UsageError: some begin from one another in a circle; they are named.
    """
    order: list[str] = []
    while len(order) < len(stages):
        waiting = [name for name in stages if name not in order]
        ready = next((name for name in waiting if set(stages[name].begins) <= set(order)), None)
        if ready is None:
            circle = _circle(stages, waiting)
            message = f"{path}: stages begin from one another in a circle: {' from '.join(circle)}"
            raise UsageError(message, "let one of them begin from another stage, or with new weights")
        order.append(ready)
    return order


def _circle(stages: Mapping[str, Stage], waiting: Sequence[str]) -> list[str]:
    """Return the names along a circle of stages none of which can run."""
    walked = [waiting[0]]
    while True:
        step = next(name for name in stages[walked[-1]].begins if name in waiting)
        if step in walked:
            return [*walked[walked.index(step) :], step]
        walked.append(step)
