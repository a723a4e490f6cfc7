"""Reversible rules between the tensor names and layouts of a published format and ours.

A family lists its rules once, from their names to ours; saving is derived, so the round trip can be a law. ``{i}``
and ``{x}`` stand for numbers (a layer, an expert) and match the same number on both sides.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from orrery.checkpoints.layouts import ROWS, TURNED, Layout
from orrery.errors import ModelFileError, UsageError


@dataclass(frozen=True)
class Rule:
    """One tensor of theirs is made of one or more of ours, as the layout says."""

    theirs: str
    ours: tuple[str, ...]
    layout: Layout = ROWS

    def split(self, tensor: Tensor, shapes: Sequence[torch.Size]) -> list[Tensor]:
        """Return our tensors, cut from theirs.

        Raises:
            ValueError: the shapes do not fit.
        """
        empty = [torch.empty(shape, device="meta") for shape in shapes]
        expected = list(self.layout.join(empty).shape)
        if list(tensor.shape) != expected:
            raise ValueError(f"has shape {list(tensor.shape)}, the configuration says {expected}")
        return [part.contiguous() for part in self.layout.split(tensor, shapes)]

    def join(self, parts: Sequence[Tensor]) -> Tensor:
        """Return their tensor, made of ours."""
        return self.layout.join(parts).contiguous()

    def places(self, names: Iterable[str]) -> Iterator[tuple[str, tuple[str, ...]]]:
        """Yield the pairs of names, theirs and ours, for every number at which our names exist."""
        template = re.compile(re.sub(r"\\\{([a-z])\\\}", r"(?P<\1>\\d+)", re.escape(self.ours[0])))
        for name in names:
            if match := template.fullmatch(name):
                numbers = match.groupdict()
                yield _filled(self.theirs, numbers), tuple(_filled(x, numbers) for x in self.ours)


def _filled(name: str, numbers: Mapping[str, str]) -> str:
    for letter, number in numbers.items():
        name = name.replace(f"{{{letter}}}", number)
    return name


def rename(theirs: str, ours: str, *, transpose: bool = False) -> Rule:
    """Return the rule that a tensor has another name, perhaps turned."""
    return Rule(theirs, (ours,), TURNED if transpose else ROWS)


def renames(
    theirs: str, ours: str, pairs: Iterable[tuple[str, str]], ends: Sequence[str] = ("weight", "bias")
) -> tuple[Rule, ...]:
    """Return the rules that ``theirs.a.weight`` is ``ours.b.weight``, for every pair (a, b) and every end.

    A rule for a bias that a model lacks finds no place and does no harm.
    """
    return tuple(rename(f"{theirs}.{a}.{end}", f"{ours}.{b}.{end}") for a, b in pairs for end in ends)


def fused(theirs: str, ours: tuple[str, ...], *, transpose: bool = False) -> Rule:
    """Return the rule that several of ours, one below the other, are one tensor of theirs."""
    return Rule(theirs, ours, TURNED if transpose else ROWS)


def to_ours(theirs: Mapping[str, Tensor], rules: Sequence[Rule], shapes: Mapping[str, torch.Size]) -> dict[str, Tensor]:
    """Return our tensors from theirs.

    Args:
        theirs: their tensors by name.
        rules: the family's rules.
        shapes: the names and shapes that our model needs, no more and no less.

    Raises:
        ModelFileError: tensors are missing, unexpected or of another shape; ten of each kind are named.
    """
    ours: dict[str, Tensor] = {}
    used: set[str] = set()
    missing: list[str] = []
    misshapen: list[str] = []
    for rule in rules:
        for their_name, our_names in rule.places(shapes):
            used.add(their_name)
            if their_name not in theirs:
                missing.append(their_name)
                continue
            try:
                parts = rule.split(theirs[their_name], [shapes[name] for name in our_names])
            except ValueError as error:
                misshapen.append(f"{their_name} {error}")
            else:
                ours.update(zip(our_names, parts, strict=True))
    if not missing and not misshapen:
        missing = [f"{name} (ours)" for name in shapes if name not in ours]
    _refuse({"missing": missing, "unexpected": sorted(set(theirs) - used), "of another shape": misshapen})
    return ours


def to_theirs(ours: Mapping[str, Tensor], rules: Sequence[Rule]) -> dict[str, Tensor]:
    """Return their tensors from ours: the inverse of ``to_ours``.

    Raises:
        UsageError: a tensor that no rule takes, a part without which a rule cannot make its tensor, or two tensors for
            one name: a file would lack them in silence.
    """
    theirs: dict[str, Tensor] = {}
    taken: set[str] = set()
    missing: list[str] = []
    doubled: list[str] = []
    for rule in rules:
        for their_name, our_names in rule.places(ours):
            if lacking := [name for name in our_names if name not in ours]:
                missing += lacking
                continue
            if their_name in theirs:
                doubled.append(their_name)
            taken.update(our_names)
            theirs[their_name] = rule.join([ours[name] for name in our_names])
    homeless = [name for name in ours if name not in taken]
    if lines := _named({"without a place in the file": homeless, "missing": missing, "for one name": doubled}):
        raise UsageError(
            f"the family's files cannot hold this model; tensors {lines}",
            "something was added to or taken from it: save the model that its configuration describes",
        )
    return theirs


def _refuse(faults: Mapping[str, list[str]]) -> None:
    """Raise one error that names ten faults of each kind, with the count."""
    if lines := _named(faults):
        around = _around(faults.get("missing", []), faults.get("unexpected", []))
        raise ModelFileError(
            f"the weights do not fit the configuration; tensors {lines}",
            f"what the file calls {around}NAME is called NAME here: a program around the model put {around!r} before "
            "each name; write the tensors again without it"
            if around
            else "config.json and the weights must come from the same model",
        )


def _around(missing: list[str], unexpected: list[str]) -> str:
    """Return what stands before the name of every missing tensor among the unexpected ones, if anything does."""
    there = set(unexpected)
    starts = [name.removesuffix(missing[0]) for name in unexpected if name.endswith(missing[0])] if missing else []
    return next((start for start in starts if start and all(start + name in there for name in missing)), "")


def _named(faults: Mapping[str, list[str]]) -> str:
    """Return ten names of each kind of fault, with the count."""
    return "; ".join(
        f"{len(names)} {kind}: {', '.join(names[:10])}{', ...' if len(names) > 10 else ''}"
        for kind, names in faults.items()
        if names
    )
