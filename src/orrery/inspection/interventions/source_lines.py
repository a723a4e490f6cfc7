"""Interventions as lines of Python."""

from collections.abc import Mapping, Sequence
from typing import Any

from orrery.inspection.interventions.intervention import OPERATIONS, Intervention

_POSITIONAL = {
    "scale": ("scale",),
    "add": ("vector",),
    "set": ("value",),
    "rescale": ("scale",),
    "rebase": ("value",),
    "patch": ("source",),
    "replace": ("position", "token"),
}


def source_lines(edits: Sequence[Intervention], names: Sequence[str], trace: str, sources: Mapping[str, str]) -> str:
    """Return the lines that make the edits behind a trace, one edit a line, and run them."""
    given = ", ".join(f"{name!r}: {sources.get(name, name)}" for name in names)
    begin = f"{trace}.edit(sources={{{given}}})" if given else f"{trace}.edit()"
    return "\n".join(["edited = (", f"    {begin}", *(f"    {_line(edit)}" for edit in edits), "    .run()", ")"])


def _line(edit: Intervention) -> str:
    assert edit.op in OPERATIONS
    arguments = edit.given()
    first = [] if edit.op == "replace" else [repr(edit.at)]
    first += [_literal(arguments.pop(name)) for name in _POSITIONAL.get(edit.op, ()) if name in arguments]
    if edit.op == "replace" and edit.at != "ids":
        arguments["at"] = edit.at
    return f".{edit.op}({', '.join([*first, *(f'{name}={_literal(value)}' for name, value in arguments.items())])})"


def _literal(value: Any) -> str:
    return repr(list(value)) if isinstance(value, tuple) else repr(value)
