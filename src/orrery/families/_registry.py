"""Families by name: ``families/<model_type>.py``, or a module that the user's own Python registered."""

import importlib
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, cast, runtime_checkable

import torch
from torch import Tensor

from orrery.checkpoints.rules import Rule
from orrery.errors import ModelFileError, UsageError, there_are
from orrery.families import _bare, _classifier, _wrappers
from orrery.families._keys import plain
from orrery.models.model import ModelSpec

_registered: dict[str, str] = {}


@runtime_checkable
class Family(Protocol):
    """What a family file offers.

    Attributes:
        ARCHITECTURE: the class that ``config.json`` names.
        WEIGHTS: the rules of its files, or a function from a configuration to them.
        DEFAULTS: every key of ``config.json`` that the family uses, with what an absent key means, and around that,
            where it does not tell enough, which values the key may have (``families/_keys.py``).
        TINY: a configuration of a few thousand parameters, on which the laws and the documentation run.

    Five more are optional, and read with ``current_names``, ``initial_stds``, ``ends_of_texts``, ``model_type`` and
    ``library_of``:

    - ``LEGACY_NAMES``: what earlier files call their tensors, or a function from a configuration to it: a mapping
      from a regular expression, searched in the name, to what takes its place, or to ``None`` for a tensor that no
      forward pass reads (a buffer; a head that the configuration does not name). They are applied in their order.
    - ``INITIAL_STD``: a function from a configuration to the deviations of new matrices, where the family draws them
      otherwise than GPT-2: a mapping from a regular expression, searched in the path of a module, to a number.
    - ``ENDS``: a function from a configuration to the tokens that end a text, where the reference writes to others than
      those that the files name.
    - ``MODEL_TYPE``: the family's name in ``config.json``, where no file of Python may be called so.
    - ``LIBRARY``: who reads its files, where it is not transformers.
    """

    ARCHITECTURE: str
    WEIGHTS: Sequence[Rule] | Callable[[Mapping[str, Any]], Sequence[Rule]]
    DEFAULTS: Mapping[str, Any]
    TINY: Mapping[str, Any]

    def spec(self, config: Mapping[str, Any]) -> ModelSpec:
        """Return the architecture that a ``config.json`` describes."""
        ...


def rules_of(family: Family, config: Mapping[str, Any]) -> tuple[Rule, ...]:
    """Return a family's rules for a configuration; some layouts depend on it (the number of heads, the head)."""
    rules = _whole_rules(family, config)
    if is_row_decoder(family, config):
        return (*rules, _classifier.RULE)
    return _bare.unprefixed(rules) if _bare.is_bare(family.ARCHITECTURE, config) else rules


def _whole_rules(family: Family, config: Mapping[str, Any]) -> tuple[Rule, ...]:
    weights = family.WEIGHTS
    return tuple(weights(config) if callable(weights) else weights)


def is_row_decoder(family: Family, config: Mapping[str, Any]) -> bool:
    """Say whether a ``config.json`` names the class of a decoder that answers for whole rows: labels, rewards."""
    return _classifier.is_classifier(family.ARCHITECTURE, config)


def part_of_texts(family: Family) -> str | None:
    """Return the key of a configuration under which that of the side with the vocabulary stands, if it is a part."""
    return next(
        (part for part in ("decoder", "text_config") if isinstance(defaults_of(family).get(part), Mapping)), None
    )


def spec_of(family: Family, config: Mapping[str, Any]) -> ModelSpec:
    """Return the architecture of a ``config.json`` with the head that its class has, or none.

    Raises:
        ModelFileError: the class is not built, or the configuration describes nothing.
    """
    _bare.refuse_other_parts(family.ARCHITECTURE, config)
    spec: Any = family.spec(config)
    if is_row_decoder(family, config) and _classifier.can_lose_its_head(spec):
        return _classifier.with_labels(family.ARCHITECTURE, config, spec)
    return _bare.without_head(family.ARCHITECTURE, config, spec)


def current_names(family: Family, config: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the tensors of a file under the names that its family has now, without those that nothing reads.

    Raises:
        ModelFileError: two tensors have one name now, and differ, or an adapter was saved with its base.
    """
    _wrappers.refuse_adapter(tensors)
    given = getattr(family, "LEGACY_NAMES", {})
    old: Mapping[str, str | None] = given(config) if callable(given) else given
    renamed: dict[str, Tensor] = {}
    known = {name: now for name in tensors if (now := _current(name, old)) is not None}
    place = _bare.placing(family.ARCHITECTURE, config, _whole_rules(family, config), known.values())
    for name, now in known.items():
        current = place(now)
        if current is None:
            continue
        tensor = tensors[name]
        if current in renamed and not (tensor.is_meta or torch.equal(renamed[current], tensor)):
            raise ModelFileError(
                f"{name} is {current} under an old name, and the file has two different ones",
                "keep the one that the model was trained with",
            )
        renamed[current] = tensor
    return renamed


def other_heads(family: Family, config: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the tensors of a file that are of heads of the family which its configuration does not name.

    A model without them begins a fine-tuning with less: the published BERT's pooler is one. They have their names of
    today, and stand in no model: ``current_names`` leaves them out.
    """
    given = getattr(family, "LEGACY_NAMES", {})
    old: Mapping[str, str | None] = given(config) if callable(given) else given
    renamed = {pattern: name for pattern, name in old.items() if name is not None}
    heads = {rule.theirs for rule in _whole_rules(family, config) if rule.ours[0].startswith("heads.")}
    left = [name for name in tensors if _current(name, old) is None]
    return {now: tensors[name] for name in left if (now := str(_current(name, renamed))) in heads}


def _current(name: str, old: Mapping[str, str | None]) -> str | None:
    """Return the name that a tensor has now."""
    if _wrappers.is_value_head(name):
        return None
    name = _wrappers.unwrapped(name)
    for pattern, replacement in old.items():
        if replacement is not None:
            name = re.sub(pattern, replacement, name)
        elif re.search(pattern, name):
            return None
    return name


def defaults_of(family: Family) -> dict[str, Any]:
    """Return what an absent key of ``config.json`` means, for every key that the family uses."""
    return plain(family.DEFAULTS)


def initial_stds(family: Family, config: Mapping[str, Any]) -> Mapping[str, float]:
    """Return how a family draws new matrices, by a regular expression over paths; nothing where as GPT-2 does."""
    stds: Callable[[Mapping[str, Any]], Mapping[str, float]] | None = getattr(family, "INITIAL_STD", None)
    return {} if stds is None else stds(config)


def ends_of_texts(name: str | None, config: Mapping[str, Any]) -> tuple[int, ...]:
    """Return the tokens that end a text of a family whatever its files name; none where the files decide."""
    if name is None:
        return ()
    ends: Callable[[Mapping[str, Any]], tuple[int, ...]] | None = getattr(load_family(name), "ENDS", None)
    return () if ends is None else ends(config)


def model_type(name: str) -> str:
    """Return what ``config.json`` calls the family of this name: ``xlm-roberta`` for ``xlm_roberta``."""
    return getattr(load_family(name), "MODEL_TYPE", name)


def library_of(name: str) -> str:
    """Return the library that the files of a family are for, as the hub calls it."""
    return getattr(load_family(name), "LIBRARY", "transformers")


def names() -> list[str]:
    """Return the names of all families."""
    files = {path.stem for path in Path(__file__).parent.glob("[a-z]*.py")}
    return sorted(files | set(_registered))


def register(path: str, name: str | None = None) -> None:
    """Add a family from a module of the user's own, by its import path; never called by a file or the environment.

    Args:
        path: dotted path of an importable module with ``spec``, ``WEIGHTS``, ``DEFAULTS``, ``TINY`` and
            ``ARCHITECTURE``.
        name: the ``model_type``; by default the module's last name.
    """
    _registered[name or path.rpartition(".")[2]] = path


def load_family(name: Any) -> Family:
    """Return the family of a ``model_type``.

    Raises:
        ModelFileError: there is none of this name.
        UsageError: a registered module lacks a part.
    """
    known = isinstance(name, str) and re.fullmatch(r"[a-z0-9_-]+", name)
    if not known or not {name, name.replace("-", "_")} & set(names()):
        raise ModelFileError(f"no family {name!r}", there_are(name, names()))
    module = importlib.import_module(_registered.get(name, f"{__package__}.{name.replace('-', '_')}"))
    for part in ("spec", "WEIGHTS", "DEFAULTS", "TINY", "ARCHITECTURE"):
        if not hasattr(module, part):
            raise UsageError(
                f"the family {name!r} has no {part}", "a family file defines them all; see families/gpt2.py"
            )
    return cast(Family, module)
