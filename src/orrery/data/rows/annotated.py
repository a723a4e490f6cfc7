"""Rows as the tools of annotators export them: Label Studio's tasks, Prodigy's answers, and which count."""

from collections import Counter
from collections.abc import Mapping
from typing import Any, TypeGuard

ANSWER, ACCEPTED = "answer", "accept"
"""Prodigy's column of whether an annotation counts, and what it then says; reject and ignore are the others."""
_ANSWERS = (ACCEPTED, "reject", "ignore")
_VALUES = ("choices", "rating", "number")
"""What Label Studio calls the value of a label, of stars and of a number."""
_NOT_ACCEPTED, _UNANNOTATED, _SEVERAL = "not accepted", "unannotated", "several"
SAID = {
    _NOT_ACCEPTED: f"{{}} rows left out: their {ANSWER} is not {ACCEPTED}",
    _UNANNOTATED: "{} tasks left out: no annotation, or a cancelled one",
    _SEVERAL: "{} tasks have several annotations: the one that is marked as true counts, else the first",
}
"""What is said of how many rows."""


def is_task(row: Mapping[str, Any]) -> bool:
    """Say whether a row is a task of Label Studio with its annotations (completions, before version 1)."""
    made = row.get("annotations", row.get("completions"))
    return (
        isinstance(row.get("data"), Mapping)
        and _are_objects(made)
        and all(_are_objects(each.get("result") or []) for each in made)
    )


def _are_objects(value: Any) -> TypeGuard[list[Mapping[str, Any]]]:
    return isinstance(value, list) and all(isinstance(each, Mapping) for each in value)


def is_answered(row: Mapping[str, Any]) -> bool:
    """Say whether a row says, as Prodigy's do, if its annotation counts."""
    return row.get(ANSWER) in _ANSWERS


def counting(row: Mapping[str, Any], tally: Counter[str]) -> dict[str, Any] | None:
    """Return a row whose annotation counts, that of a task with its data and the value of each control as columns.

    Args:
        row: it; the ``spans`` of a task are those of its labels.
        tally: counts those that do not count.
    """
    if not is_task(row):
        tally[_NOT_ACCEPTED] += (left := is_answered(row) and row[ANSWER] != ACCEPTED)
        return None if left else dict(row)
    made = [each for each in row.get("annotations", row.get("completions")) or () if not each.get("was_cancelled")]
    tally[_SEVERAL] += len(made) > 1
    tally[_UNANNOTATED] += not made
    if not made:
        return None
    results = max(made, key=lambda each: bool(each.get("ground_truth"))).get("result") or ()
    values = [(each.get("from_name"), each["value"]) for each in results if isinstance(each.get("value"), Mapping)]
    given = {name: value[kind] for name, value in values for kind in _VALUES if kind in value}
    kinds = ("labels", "hypertextlabels")
    spans = [{**value, "labels": value[kind]} for _, value in values for kind in kinds if kind in value]
    return {**row["data"], **given, **({"spans": spans} if spans or not given else {})}


def told(tally: Mapping[str, int], said: Mapping[str, str] = SAID) -> str:
    """Return what is said of all rows together."""
    return "".join("; " + said[name].format(f"{count:,}") for name, count in tally.items() if count)
