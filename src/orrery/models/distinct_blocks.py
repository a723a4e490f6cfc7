"""A model with every distinct block once: what a spec weighs, without building a hundred equal blocks to see it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from torch import nn

from orrery.models.meta_device import build_on_meta
from orrery.models.model import ModelSpec
from orrery.nn.stack import Stack


@dataclass(frozen=True)
class EqualBlocks:
    """Equal blocks of a stack: the depths at which they stand, and how many have weights of their own."""

    depths: tuple[int, ...]
    copies: int


@dataclass(frozen=True)
class DistinctBlocks:
    """A model on the meta device, where ``stack.blocks.2`` stands for every block of the third group.

    Attributes:
        spec: the architecture with each distinct block once.
        model: its module; parameters have shapes and no memory.
        groups: by the name of each stack.
    """

    spec: ModelSpec
    model: nn.Module
    groups: Mapping[str, Sequence[EqualBlocks]]

    def parameters(self, path: str = "", *, trained: bool = False) -> int:
        """Count the parameters below a path, a tied one at its first place; inside a block, those of one copy.

        ``trained`` leaves out what no gradient changes (a router's correction).
        """
        inside = f"{path}." if path else ""
        total = 0
        for name, parameter in self.model.named_parameters():
            counts = parameter.requires_grad or not trained
            if counts and (name == path or name.startswith(inside)):
                total += parameter.numel() * self.copies(name, inside)
        return total

    def copies(self, name: str, inside: str = "") -> int:
        """Return how often a part of the model stands in the architecture below a path."""
        for stack, groups in self.groups.items():
            blocks = f"{stack}.blocks."
            if name.startswith(blocks) and not inside.startswith(blocks):
                return groups[int(name.removeprefix(blocks).partition(".")[0])].copies
        return 1


def distinct_blocks(spec: ModelSpec) -> DistinctBlocks:
    """Return the model of an architecture with every distinct block once."""
    groups: dict[str, list[EqualBlocks]] = {}
    spec = _with_distinct(spec, "", groups)
    return DistinctBlocks(spec, build_on_meta(spec), groups)


def shortened(
    spec: ModelSpec, twice: tuple[str, int] | None = None
) -> tuple[ModelSpec, Mapping[str, Sequence[EqualBlocks]]]:
    """Return a spec with every distinct block once, but one of them twice, and the groups that the blocks stand for.

    ``twice`` is the name of a stack and the number of a group there. What a block costs is the difference of two such.
    """
    groups: dict[str, list[EqualBlocks]] = {}
    short: ModelSpec = _with_distinct(spec, "", groups, twice)
    return short, groups


def _with_distinct(
    spec: Any, path: str, groups: dict[str, list[EqualBlocks]], twice: tuple[str, int] | None = None
) -> Any:
    """Return a spec with every distinct block once in each of its stacks, a reader's too, and note the groups."""
    changed: dict[str, Any] = {}
    for f in fields(spec):
        part, place = getattr(spec, f.name), f"{path}{f.name}"
        if isinstance(part, Stack.Spec):
            members = _members(part)
            order = range(len(part.blocks)) if part.order is None else part.order
            groups[place] = [EqualBlocks(tuple(d for d, n in enumerate(order) if n in m), len(m)) for m in members]
            numbers = [m[0] for g, m in enumerate(members) for _ in range(2 if twice == (place, g) else 1)]
            changed[f.name] = replace(part, blocks=tuple(part.blocks[n] for n in numbers), order=None)
        elif isinstance(part, ModelSpec):
            changed[f.name] = _with_distinct(part, f"{place}.", groups, twice)
        elif isinstance(part, tuple) and all(isinstance(one, ModelSpec) for one in part):
            inside = (f"{place}.{number}." for number in range(len(part)))
            changed[f.name] = tuple(
                _with_distinct(one, path, groups, twice) for one, path in zip(part, inside, strict=True)
            )
    return replace(spec, **changed)


def _members(stack: Stack.Spec) -> list[list[int]]:
    """Return the numbers of equal blocks, group by group."""
    groups: list[list[int]] = []
    for number, block in enumerate(stack.blocks):
        for group in groups:
            first = stack.blocks[group[0]]
            if block is first or block == first:
                group.append(number)
                break
        else:
            groups.append([number])
    return groups
