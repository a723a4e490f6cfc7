"""The evidence of ``orrery verify`` as a matrix of laws and families."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from orrery.checkpoints import strict_json
from orrery.errors import DataError
from orrery.laws.exactness import REMEDY, Apart, recorded

NAME = "laws.json"
"""What the page looks for in the folder of a run."""
LARGEST = 32 << 20
"""Bytes of such a file."""
NEAR = 0.5
"""The share of its bound from which a value that keeps it is called near."""
GOLDEN = "golden"
"""The law whose bound is the one right value."""
_HINT = "orrery verify --json FILE writes such a file"
_KINDS = {"name": str, "law": str, "family": str, "passed": bool, "value": int | float | None, "bound": int | float}


def laws_of(run: Path | None, given: Path | None) -> Path | None:
    """Return the file of evidence: the one that is given, else that of the run, if there is one."""
    path = given if given is not None or run is None else run / NAME
    return path if path is not None and path.is_file() else None


def read_report(path: Path) -> dict[str, Any]:
    """Return the content of a file that ``orrery verify --json`` wrote.

    Raises:
        DataError: it cannot be read or holds something else.
    """
    try:
        if path.stat().st_size > LARGEST:
            raise DataError(f"{path} has more than {LARGEST:,} bytes", _HINT)
        report = strict_json.parse(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(f"{path} cannot be read as evidence: {error}", _HINT) from error
    checks, not_run = (report.get(key) if isinstance(report, dict) else None for key in ("checks", "not_run"))
    if not _all(checks, _KINDS) or not _all(not_run, {"name": str, "reason": str}):
        raise DataError(f"{path} holds no evidence of the laws", _HINT)
    return {"checks": checks, "not_run": not_run}


def _all(entries: Any, kinds: Mapping[str, Any]) -> bool:
    if not isinstance(entries, list):
        return False
    return all(
        isinstance(one, dict) and all(isinstance(one.get(name), kind) for name, kind in kinds.items())
        for one in entries
    )


def matrix(report: Mapping[str, Any]) -> dict[str, Any]:
    """Return families, laws, a cell for each pair that was checked, what was not run, and the checks themselves.

    What belongs to no family stands in the row of the empty name. A cell has the check that is nearest to its bound.
    ``references`` says how far the families were from their references, as recorded: nothing of it was checked here.
    """
    by_cell: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for check in report["checks"]:
        by_cell.setdefault((check["family"], check["law"]), []).append(check)
    reasons: dict[str, list[str]] = {}
    for one in report["not_run"]:
        reasons.setdefault(one["reason"], []).append(one["name"])
    return {
        "families": sorted({family for family, _ in by_cell}),
        "laws": list(dict.fromkeys(check["law"] for check in report["checks"])),
        "cells": [{"family": family, "law": law, **_cell(checks)} for (family, law), checks in by_cell.items()],
        "not_run": [{"reason": reason, "names": names} for reason, names in reasons.items()],
        "checks": list(report["checks"]),
        "references": references({family for family, _ in by_cell}),
    }


def references(families: set[str]) -> dict[str, Any]:
    """Return the recorded differences of logits in float64: casts widened, as installed, with eager kernels."""

    def logits(apart: Apart | None) -> float | None:
        return None if apart is None else apart.logits

    rows = [
        {
            "family": family,
            "by": one.by,
            "widened": logits(one.widened),
            "installed": logits(one.installed),
            "eager": logits(one.eager),
            "raises": f"{one.raises} ({one.at})" if one.raises else "",
        }
        for family, one in recorded().items()
        if family in families
    ]
    return {"rows": rows, "remedy": REMEDY}


def _cell(checks: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    worst = max(checks, key=share)
    failed = sum(not check["passed"] for check in checks)
    state = "fails" if failed else "near" if share(worst) > NEAR else "holds"
    numbers = {name: worst[name] for name in ("name", "value", "bound")}
    return {"state": state, "count": len(checks), "failed": failed, **numbers}


def share(check: Mapping[str, Any]) -> float:
    """Return how much of its bound a check takes; infinite where it fails, zero where a value is exact."""
    if not check["passed"]:
        return float("inf")
    if check["law"] == GOLDEN or not check["bound"]:
        return 0.0
    return float(check["value"] / check["bound"])
