"""The model card: README.md, generated from what is known and silent about nothing that is not."""

import json
from collections.abc import Mapping
from typing import Any

from torch import nn

import orrery

_UNKNOWN = "not recorded"
_SECTIONS = (
    ("data", "Training data"),
    ("tokens", "Tokens seen in training"),
    ("evaluation", "Evaluation"),
    ("limits", "Limits"),
    ("command", "Command"),
)


def model_card(family: str, model: nn.Module, facts: Mapping[str, Any]) -> str:
    """Return the text of README.md.

    Args:
        family: the ``model_type``.
        model: counted.
        facts: what is known: ``name``, ``license``, ``data``, ``tokens``, ``evaluation`` (a mapping of metrics),
            ``limits``, ``command``. What is absent is called "not recorded", never guessed.
    """
    parameters = sum(parameter.numel() for parameter in model.parameters())
    header = {"library_name": "transformers", "pipeline_tag": "text-generation", "tags": ["orrery", family]}
    if "license" in facts:
        header["license"] = facts["license"]
    front = "\n".join(f"{key}: {json.dumps(value, ensure_ascii=False)}" for key, value in header.items())
    parts = [f"---\n{front}\n---", f"# {_line(facts.get('name', family))}"]
    parts.append(f"A {family} language model of {parameters:,} parameters, written by Orrery {orrery.__version__}.")
    known = {"limits": _default_limits(facts), **facts}
    parts += [f"## {title}\n\n{_text(known.get(key), code=key == 'command')}" for key, title in _SECTIONS]
    return "\n\n".join(parts) + "\n"


def _default_limits(facts: Mapping[str, Any]) -> str:
    measured = "only the evaluation above" if facts.get("evaluation") else "nothing"
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
