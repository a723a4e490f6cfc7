"""What a view shows of an edited pass less what it shows of a clean one: one way for every view that allows it."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from orrery.errors import UsageError
from orrery.inspection.checks import Check
from orrery.page.views._payload import Payload

CLEAN = "clean."
"""What stands before the names of tensors of the clean pass that are not subtracted."""


def less(edited: Payload, clean: Payload, apart: Collection[str] = ()) -> Payload:
    """Return the difference of two payloads of one view: edited minus clean, number by number.

    Numbers are subtracted; whole numbers, such as ids, and the tensors ``apart`` are given of both, those of the clean
    pass as ``clean.NAME``. The facts are those of the edited pass, with those of the clean one under ``clean``. Of
    each check the worse of the two is told.

    Raises:
        UsageError: the passes show tensors of other shapes, as of texts of other lengths.
    """
    tensors: dict[str, Tensor] = {}
    for name, value in edited.tensors.items():
        before = clean.tensors.get(name)
        if before is None or (name not in apart and before.shape != value.shape):
            shapes = [list(value.shape), None if before is None else list(before.shape)]
            raise UsageError(
                f"{name} is {shapes[0]} in one pass and {shapes[1]} in the other", "compare passes of one length"
            )
        if name in apart or not value.is_floating_point():
            tensors |= {name: value, CLEAN + name: before}
        else:
            tensors[name] = minus(value, before)
    facts = {**edited.facts, "difference": True, CLEAN[:-1]: dict(clean.facts)}
    return Payload(facts, tensors, _worse([*edited.checks, *clean.checks]))


def minus(edited: Tensor, clean: Tensor) -> Tensor:
    """Return ``edited - clean`` in float32; where both are the same infinity they are equal."""
    same = (edited == clean) | (edited.isnan() & clean.isnan())
    return torch.where(same, 0.0, edited.double() - clean.double()).float()


def with_rows(payload: Payload, tensor: str, fact: str, names: Sequence[str]) -> Payload:
    """Return a payload whose tensor has the rows of these names, of which a fact lists its own; others are zero."""
    own = dict(zip(payload.facts[fact], payload.tensors[tensor], strict=True))
    value = payload.tensors[tensor]
    rows = value.new_zeros(len(names), *value.shape[1:])
    for place, name in enumerate(names):
        if name in own:
            rows[place] = own[name]
    return replace(payload, facts={**payload.facts, fact: list(names)}, tensors={**payload.tensors, tensor: rows})


def by_name(payloads: Sequence[Payload], rows: Mapping[str, str]) -> Sequence[Payload]:
    """Return payloads whose tensors have the same named rows: those that any of them has; where one has none, none."""
    for tensor, fact in rows.items():
        each = [payload.facts[fact] for payload in payloads]
        names = list(dict.fromkeys(name for own in each for name in own)) if all(each) else []
        payloads = [with_rows(payload, tensor, fact, names) for payload in payloads]
    return payloads


def union(edited: Tensor, clean: Tensor) -> str:
    """Return the numbers of two lists, each once and in its order, as a setting holds them: with commas."""
    return ",".join(map(str, dict.fromkeys([*clean.tolist(), *edited.tolist()])))


def numbers(text: str) -> list[int]:
    """Return the numbers that a setting holds.

    Raises:
        UsageError: it is written otherwise.
    """
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise UsageError(f"{text[:60]!r} is no list of numbers", "write whole numbers with commas: 1,5,0") from None


def _worse(checks: Sequence[Check]) -> list[Check]:
    by_name: dict[str, Check] = {}
    for check in checks:
        now = by_name.get(check.name)
        if now is None or (not check.passed, check.value) > (not now.passed, now.value):
            by_name[check.name] = check
    return list(by_name.values())
