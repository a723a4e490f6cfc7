"""Reversible rules between the tensor names and layouts of a published format and ours.

A family lists its rules once, from their names to ours; saving is derived, so the round trip can be a law. ``{i}``
stands for a number and matches the same number on both sides.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from orrery.errors import ModelFileError


@dataclass(frozen=True)
class Rule:
    """One tensor of theirs is the concatenation, along the rows, of one or more of ours.

    ``transpose`` says that theirs is stored with rows and columns exchanged.
    """

    theirs: str
    ours: tuple[str, ...]
    transpose: bool = False

    def split(self, tensor: Tensor, shapes: Sequence[torch.Size]) -> list[Tensor]:
        """Return our tensors, cut from theirs.

        Raises:
            ValueError: the shapes do not fit.
        """
        turned = tensor.mT if self.transpose else tensor
        expected = [sum(shape[0] for shape in shapes), *shapes[0][1:]]
        if list(turned.shape) != expected:
            wanted = expected[::-1] if self.transpose else expected
            raise ValueError(f"has shape {list(tensor.shape)}, the configuration says {wanted}")
        return [part.contiguous() for part in turned.split([shape[0] for shape in shapes])]

    def join(self, parts: Sequence[Tensor]) -> Tensor:
        """Return their tensor, made of ours."""
        joined = parts[0] if len(parts) == 1 else torch.cat(list(parts))
        return (joined.mT if self.transpose else joined).contiguous()

    def places(self, names: Iterable[str]) -> Iterator[tuple[str, tuple[str, ...]]]:
        """Yield the pairs of names, theirs and ours, for every number at which our names exist."""
        template = re.compile(re.escape(self.ours[0]).replace(r"\{i\}", r"(?P<i>\d+)"))
        for name in names:
            if match := template.fullmatch(name):
                number = match.groupdict().get("i", "")
                yield self.theirs.replace("{i}", number), tuple(x.replace("{i}", number) for x in self.ours)


def rename(theirs: str, ours: str, *, transpose: bool = False) -> Rule:
    """Return the rule that a tensor has another name, perhaps turned."""
    return Rule(theirs, (ours,), transpose)


def fused(theirs: str, ours: tuple[str, ...], *, transpose: bool = False) -> Rule:
    """Return the rule that several of ours are one tensor of theirs."""
    return Rule(theirs, ours, transpose)


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
    """Return their tensors from ours: the inverse of ``to_ours``."""
    pairs = (
        (their_name, rule.join([ours[name] for name in our_names]))
        for rule in rules
        for their_name, our_names in rule.places(ours)
    )
    return dict(pairs)


def _refuse(faults: Mapping[str, list[str]]) -> None:
    """Raise one error that names ten faults of each kind, with the count."""
    lines = [
        f"{len(names)} {kind}: {', '.join(names[:10])}{', ...' if len(names) > 10 else ''}"
        for kind, names in faults.items()
        if names
    ]
    if lines:
        raise ModelFileError(
            "the weights do not fit the configuration; tensors " + "; ".join(lines),
            "config.json and the weights must come from the same model",
        )
