"""Which bricks of a model processes may part among themselves, as the bricks say; what says nothing is refused."""

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any

from torch import nn

from orrery.errors import UsageError
from orrery.nn.joined_linear import is_plain
from orrery.nn.parting import Grain, Parted
from orrery.nn.stack import Stack
from orrery.recipes.parallel import divisors, near

PLAIN = (nn.Sequential, nn.ModuleList, nn.Linear)
"""Modules of torch that see a token at a time."""
INSTEAD = "leave parallel.tensor out: parallel.fsdp shares the weights of every model"


@dataclass
class PartedModules:
    """The modules of a model's stacks by what becomes of them, with their paths.

    Attributes:
        bricks: of which each process computes a part.
        inside: the same within a module that sees whole rows.
        rows: modules that see whole rows, such as mixtures of experts.
        tokens: modules that see a token at a time, whose own parameters every process has.
    """

    bricks: dict[str, nn.Module] = field(default_factory=dict)
    inside: dict[str, nn.Module] = field(default_factory=dict)
    rows: dict[str, nn.Module] = field(default_factory=dict)
    tokens: dict[str, nn.Module] = field(default_factory=dict)


def parts_of(model: nn.Module, processes: int) -> PartedModules:
    """Return what becomes of the modules of a model that so many processes part.

    Raises:
        UsageError: a module says nothing of it, or does not divide; by its path.
    """
    parts = PartedModules()
    stacks = [(path, module) for path, module in model.named_modules() if isinstance(module, Stack)]
    if not stacks:
        raise UsageError(f"parallel.tensor {processes}: the model has no stack of blocks to part", INSTEAD)
    for path, stack in stacks:
        if stack.learned_places:
            message = f"parallel.tensor {processes}: {path} has a tuned prefix, whose heads are not parted"
            raise UsageError(message, INSTEAD)
        for name in ("blocks", "final"):
            _sort(stack.get_submodule(name), f"{path}.{name}", processes, parts)
    if not parts.bricks and not parts.inside:
        raise UsageError(f"parallel.tensor {processes}: the model has no layer to part", INSTEAD)
    return parts


def _sort(module: nn.Module, path: str, processes: int, parts: PartedModules) -> None:
    line = said(module, path, processes)
    if isinstance(line, Parted):
        refuse_misfit(module, line, path, processes)
        parts.bricks[path] = module
    elif line == Grain.ROWS:
        parts.rows[path] = module
        for name, each in module.named_modules():
            own = getattr(type(each), "parting", None)
            if isinstance(own, Parted):
                refuse_misfit(each, own, f"{path}.{name}", processes)
                parts.inside[f"{path}.{name}"] = each
    else:
        parts.tokens[path] = module
        for name, child in module.named_children():
            _sort(child, f"{path}.{name}", processes, parts)


def said(module: nn.Module, path: str, processes: int) -> Parted | Grain:
    """Return the line of a module.

    Raises:
        UsageError: it has none.
    """
    line: Any = Grain.TOKEN if type(module) in PLAIN else getattr(type(module), "parting", None)
    if not isinstance(line, Parted | Grain):
        name = type(module).__name__
        raise UsageError(f"parallel.tensor {processes}: {path} is a {name}, which is not parted yet", INSTEAD)
    return line


def refuse_misfit(brick: nn.Module, line: Parted, path: str, processes: int) -> None:
    """Refuse a brick whose channels do not divide, or in which is what needs all of them.

    Raises:
        UsageError: it does not fit; which part, and what would.
    """
    together = getattr(brick, line.together) if line.together else 1
    what = "heads" if line.together else "channels"
    for name in (*line.columns, *line.rows):
        linear = brick.get_submodule(name)
        if not is_plain(linear):
            message = f"parallel.tensor {processes}: {path}.{name} is a {type(linear).__name__}, no plain matrix"
            raise UsageError(message, f"adapters and quantised weights are not parted; {INSTEAD}")
        count = (linear.out_features if name in line.columns else linear.in_features) // together
        if count % processes:
            message = f"parallel.tensor {processes} does not divide the {count:,} {what} of {path}.{name}"
            raise UsageError(message, f"would fit: {near(divisors(count), processes)}; else {INSTEAD}")
    for name, part in coarse(brick, {*line.columns, *line.rows}, line.grain):
        kind = type(part).__name__
        message = f"parallel.tensor {processes}: {path}.{name} is a {kind}, which needs the channels of all processes"
        raise UsageError(message, INSTEAD)


def coarse(module: nn.Module, known: AbstractSet[str], most: Grain, path: str = "") -> Iterator[tuple[str, nn.Module]]:
    """Yield the parts of a module that see more than they may, or do not say what they see; a head's are covered."""
    for name, child in module.named_children():
        own: Any = getattr(type(child), "parting", None)
        if name in known:
            continue
        if not isinstance(own, Grain) or own > most:
            yield path + name, child
        elif own == Grain.NUMBER:
            yield from coarse(child, frozenset(), most, f"{path}{name}.")
