"""The model card: README.md, generated from what is known and silent about nothing that is not."""

import json
from collections.abc import Mapping
from typing import Any

import orrery
from orrery.families import library_of
from orrery.models.model import Model
from orrery.tuning import numbers_of

_CONTINUES = "text-generation"
_TASKS: Mapping[str, str] = {
    "masked": "fill-mask",
    "sequence": "text-classification",
    "token": "token-classification",
    "span": "question-answering",
}
"""What the hub calls the task of an encoder's main head; with any other or none it gives vectors."""

_SEEING: Mapping[str, str] = {
    "sequence": "image-classification",
    "classes": "object-detection",
    "points": "image-segmentation",
    "similarity": "zero-shot-image-classification",
}
"""The same of an encoder that reads images."""

_UNKNOWN = "not recorded"
_SECTIONS = (
    ("data", "Training data"),
    ("tokens", "Tokens seen in training"),
    ("evaluation", "Evaluation"),
    ("limits", "Limits"),
    ("command", "Command"),
)


def model_card(family: str, model: Model, facts: Mapping[str, Any]) -> str:
    """Return the text of README.md.

    Args:
        family: the ``model_type``.
        model: counted.
        facts: what is known: ``name``, ``license``, ``data``, ``tokens``, ``evaluation`` (a mapping of metrics),
            ``limits``, ``command``. What is absent is called "not recorded", never guessed.
    """
    parameters = numbers_of(model)
    task = pipeline_tag(model)
    header = {"library_name": library_of(family), "pipeline_tag": task, "tags": ["orrery", family]}
    if "license" in facts:
        header["license"] = facts["license"]
    front = "\n".join(f"{key}: {json.dumps(value, ensure_ascii=False)}" for key, value in header.items())
    parts = [f"---\n{front}\n---", f"# {_line(facts.get('name', family))}"]
    kind = "language model" if task == _CONTINUES else "model"
    parts.append(f"A {family} {kind} of {parameters:,} parameters, written by Orrery {orrery.__version__}.")
    known = {"limits": _default_limits(task, facts), **facts}
    parts += [f"## {title}\n\n{_text(known.get(key), code=key == 'command')}" for key, title in _SECTIONS]
    return "\n\n".join(parts) + "\n"


def pipeline_tag(model: Model) -> str:
    """Return what the hub calls the task of a model, by what it reads and its main head."""
    spec, sees = model.spec, "images" in model.spec.inputs
    if spec.reads_source:
        return "image-to-text" if sees else "text2text-generation"
    if spec.writes:
        return _CONTINUES
    main = next(iter(spec.head_names), "")
    if sees:
        return _SEEING.get(main, "image-feature-extraction")
    return _TASKS.get(main, "feature-extraction")


def _default_limits(task: str, facts: Mapping[str, Any]) -> str:
    measured = "only the evaluation above" if facts.get("evaluation") else "nothing"
    if task != _CONTINUES:
        return f"Its answers follow its training data and may be wrong or unfair; {measured} has been measured."
    return (
        f"It continues text in the manner of its training data and may state false or harmful things; {measured} has "
        "been measured. It was not tuned to follow instructions or to refuse any."
    )


def _text(value: Any, code: bool) -> str:
    if value is None:
        return f"{_UNKNOWN.capitalize()}."
    if isinstance(value, Mapping):
        rows = "\n".join(f"| {_cell(key)} | {_cell(item)} |" for key, item in value.items())
        return f"| metric | value |\n|---|---|\n{rows}"
    if isinstance(value, int):
        return f"{value:,}"
    return f"```\n{value}\n```" if code else str(value)


def _cell(value: Any) -> str:
    shown = f"{value:.4g}" if isinstance(value, float) else str(value)
    return _line(shown).replace("|", "\\|")


def _line(value: Any) -> str:
    return " ".join(str(value).split())
