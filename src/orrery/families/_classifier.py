"""Decoders that were published with a head for the whole row in the place of the language model's: rewards, classes."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from orrery.checkpoints.rules import Rule, rename
from orrery.families import _heads
from orrery.families._config import Config
from orrery.models.model import ModelSpec
from orrery.nn.heads import Headless, Last, Pooler, SequenceHead
from orrery.nn.residual import Identity

HEAD = "sequence"
_LANGUAGE_MODEL = re.compile(r"(ForCausalLM|LMHeadModel)$")
_CLASS = "ForSequenceClassification"
_WITHOUT = (
    "CohereForCausalLM", "GraniteForCausalLM", "OlmoeForCausalLM", "Gemma3ForCausalLM", "OpenAIGPTLMHeadModel",
    "FalconMambaForCausalLM", "Mamba2ForCausalLM", "MambaForCausalLM", "RwkvForCausalLM",
)  # fmt: skip
"""Classes beside which transformers has no such one, or one that is not held against it yet."""
_RULE = rename("score.weight", f"heads.{HEAD}.labels.weight")


def class_beside(architecture: str) -> str | None:
    """Return the class for rows beside that of a decoder's language model, ``LlamaForSequenceClassification``."""
    stem, found = _LANGUAGE_MODEL.subn("", architecture)
    return f"{stem}{_CLASS}" if found and architecture not in _WITHOUT else None


def is_classifier(architecture: str, config: Mapping[str, Any]) -> bool:
    """Say whether a configuration names that class."""
    given = config.get("architectures")
    first = given[0] if isinstance(given, list | tuple) and given else None
    return first is not None and first == class_beside(architecture)


def with_labels(config: Mapping[str, Any], spec: Any) -> ModelSpec:
    """Return a decoder with ``W x`` of the last real token in the place of its language-model head.

    Raises:
        ModelFileError: what the configuration says of its labels cannot be meant.
    """
    told = {key: config[key] for key in _heads.DEFAULTS if key in config}
    labels = _heads.of_row(Config("a classifier", told, _heads.DEFAULTS))
    head = SequenceHead.Spec(bias=False, pooler=Pooler.Spec(pool=Last()), **labels)
    return replace(spec, head=Headless.Spec(), heads={HEAD: head})


def can_lose_its_head(spec: Any) -> bool:
    """Say whether the final stream of a decoder is what its head reads: some project it first."""
    return bool(spec.head.transform == Identity.Spec())


def with_score(rules: Sequence[Rule]) -> tuple[Rule, ...]:
    """Return the rules of such a file, given those of the language model's."""
    return (*rules, _RULE)
