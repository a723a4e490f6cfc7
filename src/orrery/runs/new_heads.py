"""The head that an objective needs: the model's own, the one that its family publishes, or a new one."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from orrery.errors import UsageError
from orrery.families import answering, load_family, spec_of
from orrery.models.heads import HEADS, HeadSettings
from orrery.models.model import ModelSpec
from orrery.nn.heads import LastTokensHead, SequenceHead, TokenHead
from orrery.nn.picture_heads import BoxHead, PixelHead
from orrery.objectives import NeededHead
from orrery.recipes.config import ModelSettings
from orrery.runs.begin import Base

AnyHead = SequenceHead.Spec | TokenHead.Spec | PixelHead.Spec | BoxHead.Spec
KINDS: Mapping[str, type[AnyHead]] = {
    "sequence": SequenceHead.Spec,
    "token": TokenHead.Spec,
    "span": TokenHead.Spec,
    "pixel": PixelHead.Spec,
    "boxes": BoxHead.Spec,
}
"""The head that gives answers of a kind."""
OTHERS = {"boxes": "classes", "pixel": "points"}
"""The head with the labels of a family that has one of its own: YOLOS, whose boxes come from another, and SegFormer."""


@dataclass(frozen=True)
class Settled:
    """What the head that an objective needs changes of a model.

    Attributes:
        config: the family's configuration, which may name another class.
        heads: new heads by name, beside the model's.
        renamed: whether the configuration names another class than the base's, so that the architecture follows it.
        renewed: heads of the base whose labels are others: their last map is drawn again.
        names: the labels in the order of their numbers.
        head: the name of the head that the objective asked for.
    """

    config: dict[str, Any]
    heads: Mapping[str, HeadSettings] = field(default_factory=dict)
    renamed: bool = False
    renewed: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    head: str | None = None


def settle(model: ModelSettings, base: Base | None, config: dict[str, Any], needed: NeededHead | None) -> Settled:
    """Return how a model gets the head that an objective needs."""
    if needed is None:
        return Settled(config, model.heads)
    return replace(_settled(model, base, config, needed), head=needed.name)


def _settled(model: ModelSettings, base: Base | None, config: dict[str, Any], needed: NeededHead) -> Settled:
    if needed.name in model.heads:
        head = _filled(model.heads[needed.name], needed)
        return Settled(config, {**model.heads, needed.name: head}, names=needed.names)
    there = None if base is None else _own(base.stored.model.spec, needed)
    same = there is not None and same_labels(there, needed)
    if there is not None and same and not _meant_otherwise(there, needed):
        return Settled(config, model.heads, names=tuple(there.names) or needed.names)
    renewed = () if there is None or same else (needed.name,)
    if there is not None and base is not None and OTHERS.get(needed.kind) in base.stored.model.spec.heads:
        renewed = (OTHERS[needed.kind],)
    family = model.family if base is None else base.stored.family
    if family is not None and model.spec is None and (base is None or _as_published(base, family)):
        labels = (needed.labels, needed.names, needed.problem)
        published = answering(family, config, needed.kind, *labels)
        if published is not None:
            return Settled(published, model.heads, True, renewed, needed.names)
    if there is not None and same:
        return Settled(config, model.heads, names=tuple(there.names) or needed.names)
    heads = {**model.heads, needed.name: _usual(needed, base, family)}
    return Settled(config, heads, False, renewed, needed.names)


def same_labels(there: AnyHead, needed: NeededHead) -> bool:
    """Say whether a head that exists gives what is needed: as many numbers, and the same names in any order."""
    return there.labels == needed.labels and set(there.names) == set(needed.names)


def _meant_otherwise(there: AnyHead, needed: NeededHead) -> bool:
    """Say whether the one number of a head is a logit and should be a number, or the other way: its folder says so."""
    return isinstance(there, SequenceHead.Spec) and there.labels == 1 and there.problem != needed.problem


def _own(spec: ModelSpec, needed: NeededHead) -> AnyHead | None:
    """Return the head of this name that a model has, where it is one of its kind, or the one of ``OTHERS``."""
    head, other = spec.heads.get(needed.name), spec.heads.get(OTHERS.get(needed.kind, ""))
    if isinstance(other, LastTokensHead.Spec):  # its last label is nothing
        return replace(other.head, labels=other.head.labels - 1, names=other.head.names[:-1])
    if isinstance(other, TokenHead.Spec):
        return other
    return head if isinstance(head, KINDS[needed.kind]) else None


def _as_published(base: Base, family: str) -> bool:
    """Say whether a model has the heads that its configuration says, and no others."""
    heads = spec_of(load_family(family), base.stored.config or {}).heads
    return not base.stored.model.transforms and set(heads) == set(base.stored.model.spec.heads)


def _usual(needed: NeededHead, base: Base | None, family: str | None) -> HeadSettings:
    """Return the head of a model without a published one: of a row, the last token of what writes, else the mean."""
    kind = "token" if needed.kind == "span" else needed.kind
    writes = base.stored.model.spec.writes if base is not None else family is not None
    pool = {"pool": "last" if writes else "mean"} if kind == "sequence" else {}
    settings: HeadSettings = HEADS.find(kind).Settings(kind=kind, **pool)
    return _filled(settings, needed)


def _filled(settings: HeadSettings, needed: NeededHead) -> HeadSettings:
    """Return the settings of a head with what the data say of its labels.

    Raises:
        UsageError: the recipe gives another number of labels.
    """
    of_data = {"labels": needed.labels, "names": needed.names, "problem": needed.problem}
    known = {name: value for name, value in of_data.items() if name in type(settings).model_fields}
    own = getattr(settings, "labels", None)
    if own not in (None, needed.labels):
        message = f"model.heads.{needed.name} gives {own} labels, the data have {needed.labels}"
        raise UsageError(message, "leave the number out: it is taken from the data")
    return settings.model_copy(update=known)


def without_labels(spec: ModelSpec, renewed: tuple[str, ...]) -> tuple[str, ...]:
    """Return how the names of tensors begin that are drawn again: the last maps of the heads with other labels."""
    ends = ("labels.", "head.labels.")
    return tuple(f"heads.{name}.{end}" for name in renewed if name in spec.heads for end in ends)
