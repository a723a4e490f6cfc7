"""Edits of gates: a recurrence makes them step by step, and what is edited at one step acts on all later ones."""

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from torch import Tensor

StepEdit: TypeAlias = Callable[[int, str, Tensor], Tensor]
"""From a step, a gate's name and what the gate is at this step, ``[N, E]``, to what takes its place."""


def unedited(step: int, name: str, gate_NE: Tensor) -> Tensor:
    """Return the gate as it is."""
    return gate_NE


def edits_in_time(
    find: Callable[[str], Callable[[Tensor], Tensor] | None],
    gates: Mapping[str, Tensor],
    put: Callable[[str, Tensor], Tensor],
    take: Callable[[str, Tensor], Tensor],
    at: Callable[[int], Any],
) -> StepEdit | None:
    """Return the edits that reach gates, to be applied at each step of a second run, or nothing where none does.

    At each step an edit is called with the gate of all tokens: what it is up to this step, and what it was in the run
    without edits at later ones. The rows of this step are taken from its answer. So an edit that looks at the tokens
    so far, or at fixed places, acts exactly as it says.

    Args:
        find: returns the edit of a gate by its name, if there is one.
        gates: of a run without edits, all steps in one tensor each.
        put: brings a gate to the shape in which it is shown.
        take: brings it back.
        at: where in such a tensor a step stands.
    """
    by_gate = {name: find(name) for name in gates}
    edits = {name: edit for name, edit in by_gate.items() if edit is not None}
    rows = {name: gates[name] for name in edits}

    def at_step(step: int, name: str, gate_NE: Tensor) -> Tensor:
        if name not in edits:
            return gate_NE
        # A new tensor at each step, not the old one written into: an edit's gradient may need what it was given.
        rows[name] = rows[name].clone()
        rows[name][at(step)] = gate_NE
        return take(name, edits[name](put(name, rows[name])))[at(step)]

    return at_step if edits else None
