"""Decoders that were published without their language-model head, told by the class in ``architectures``."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from orrery.checkpoints.rules import Rule
from orrery.errors import ModelFileError
from orrery.families._classifier import class_beside
from orrery.models.model import ModelSpec
from orrery.nn.heads import Headless
from orrery.nn.residual import Identity

_WHOLE = re.compile(r"(ForCausalLM|LMHeadModel)$")
_OTHER = re.compile(r"For(Sequence|Token)Classification$|ForQuestionAnswering$|DoubleHeadsModel$")
"""Classes of decoders with an answer that is no next token."""
_PAIRED = re.compile(r"(ForConditionalGeneration|MTModel)$")
_PARTS = re.compile(r"For(Sequence|Token)Classification$|ForQuestionAnswering$|EncoderModel$|ForCausalLM$|DoubleHeads")
"""Classes of an encoder-decoder that are a part of it, or have another head."""


def refuse_other_parts(architecture: str, config: Mapping[str, Any]) -> None:
    """Refuse the files of a class beside an encoder-decoder: a part of it, or with a head of its own.

    Raises:
        ModelFileError: the configuration names such a class.
    """
    if _PAIRED.search(architecture) and _PARTS.search(_named(config)):
        raise ModelFileError(
            f"architectures = {_named(config)!r}: of this family only {architecture} is built",
            f"load the files of {architecture}, of which lm.hidden gives the encoder's stream",
        )


def is_bare(architecture: str, config: Mapping[str, Any]) -> bool:
    """Say whether a configuration names the backbone of a family's class, ``LlamaModel`` for ``LlamaForCausalLM``."""
    stem, count = _WHOLE.subn("", architecture)
    named = _named(config).removesuffix("Model").removesuffix("Text")
    return bool(count) and _named(config) != architecture and named.lower() == stem.lower()


def without_head(architecture: str, config: Mapping[str, Any], spec: Any) -> ModelSpec:
    """Return a decoder as the class in its configuration has it.

    Raises:
        ModelFileError: the class has another head.
    """
    if not spec.writes or spec.reads_source or isinstance(spec.head, Headless.Spec):
        return spec
    if _OTHER.search(_named(config)):
        raise ModelFileError(
            f"architectures = {_named(config)!r}: a decoder with a head that is no language model is not supported",
            f"known are {', '.join(filter(None, (architecture, class_beside(architecture))))} and the backbone alone, "
            "whose final stream lm.hidden gives",
        )
    if not is_bare(architecture, config):
        return spec
    if spec.head.transform != Identity.Spec():
        raise ModelFileError(
            f"architectures = {_named(config)!r}: a backbone that ends with a projection is not supported",
            f"load the files of {architecture}, of whose head the projection is a part here",
        )
    return replace(spec, head=Headless.Spec())


def unprefixed(rules: Sequence[Rule]) -> tuple[Rule, ...]:
    """Return the rules of a backbone's own files."""
    prefix = _prefix(rules)
    return tuple(replace(rule, theirs=rule.theirs.removeprefix(prefix)) for rule in rules)


def placing(
    architecture: str, config: Mapping[str, Any], rules: Sequence[Rule], names: Iterable[str]
) -> Callable[[str], str | None]:
    """Return the function from a file's name to that of the class in the configuration.

    A backbone may stand in the file of a whole model, whose head is then left, and a whole model with a tied head in
    a backbone's; ``rules`` are those of the whole model, ``names`` all that the file has.
    """
    prefix = _prefix(rules)
    heads = {rule.theirs for rule in rules if not rule.theirs.startswith(prefix)}
    if is_bare(architecture, config):
        return lambda name: None if name in heads else name.removeprefix(prefix)
    inside = {rule.theirs.removeprefix(prefix) for rule in rules if rule.theirs.startswith(prefix)}
    names = set(names)
    is_whole = any(name.startswith(prefix) for name in names) or not inside & names
    if not _WHOLE.search(architecture) or is_whole:
        return lambda name: name
    return lambda name: name if name in heads else prefix + name


def _prefix(rules: Sequence[Rule]) -> str:
    """Return what the names of a backbone begin with inside a whole model, ``model.``, where they have that at all."""
    prefix = rules[0].theirs.partition(".")[0] + "."
    layers = (rule.theirs for rule in rules if "{i}" in rule.theirs)
    return prefix if all(name.startswith(prefix) for name in layers) else ""


def _named(config: Mapping[str, Any]) -> str:
    """Return the class that a configuration names."""
    given = config.get("architectures")
    first = given[0] if isinstance(given, list | tuple) and given else ""
    return first if isinstance(first, str) else ""
