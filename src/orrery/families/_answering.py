"""The configuration of a family's own classifier, tagger or reader, given that of its language model."""

from collections.abc import Mapping, Sequence
from typing import Any

from orrery.errors import ModelFileError
from orrery.families._classifier import class_beside
from orrery.families._registry import load_family, spec_of

_ENDS = {"sequence": "ForSequenceClassification", "token": "ForTokenClassification", "span": "ForQuestionAnswering"}
_LANGUAGE_MODEL, _PICTURES = "ForMaskedLM", "ForImageClassification"
_PUBLISHED = {"boxes": "ForObjectDetection", "pixel": "ForSemanticSegmentation"}


def answering(
    family: str, config: Mapping[str, Any], kind: str, labels: int, names: Sequence[str] = (), problem: str = ""
) -> dict[str, Any] | None:
    """Return the configuration of the class that a family publishes for a kind of answers; nothing where it has none.

    Args:
        family: its name.
        config: a configuration of the family, whatever its class.
        kind: ``sequence``, ``token`` or ``span``, of pictures also ``boxes`` or ``pixel``.
        labels: how many there are.
        names: what they are called.
        problem: the ``problem_type``.
    """
    rules = load_family(family)
    named = _class_of(rules.ARCHITECTURE, kind)
    if named is None:
        return None
    names = names or [f"LABEL_{number}" for number in range(labels)]
    label_settings: dict[str, Any] = {
        "architectures": [named],
        "id2label": {str(number): name for number, name in enumerate(names)},
        "label2id": {name: number for number, name in enumerate(names)},
    }
    kept = {key: value for key, value in config.items() if key not in ("num_labels", "problem_type")}
    answering_config = {**kept, **label_settings, **({"problem_type": problem} if problem else {})}
    try:
        spec_of(rules, answering_config)
    except ModelFileError:
        return None
    return answering_config


def _class_of(architecture: str, kind: str) -> str | None:
    """Return the class of a kind of answers; decoders have one for whole rows alone."""
    if architecture.endswith(_LANGUAGE_MODEL) and kind in _ENDS:
        return architecture.removesuffix(_LANGUAGE_MODEL) + _ENDS[kind]
    if kind in _PUBLISHED:
        return architecture if architecture.endswith(_PUBLISHED[kind]) else None
    if architecture.endswith(_PICTURES):
        return architecture if kind == "sequence" else None
    return class_beside(architecture) if kind == "sequence" else None
