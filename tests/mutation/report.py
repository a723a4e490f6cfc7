"""What became of all mutations: by package, by kind, the survivors, and whether the bar is met."""

import json
from collections import Counter
from pathlib import Path

from mutation.drawing import package_of

EXPLAINED = Path(__file__).with_name("explained.json")
LEAST_CAUGHT = 0.97


def report(rows: list[dict], chosen: int, path: Path) -> int:
    """Print the tables and the survivors; return the exit code."""
    explained = json.loads(EXPLAINED.read_text(encoding="utf-8"))
    survivors = [row for row in rows if not row["caught_by"]]
    for what, of in (("package", lambda row: package_of(row["file"])), ("kind", lambda row: row["kind"])):
        every, caught = Counter(map(of, rows)), Counter(of(row) for row in rows if row["caught_by"])
        print(f"by {what}: " + ", ".join(f"{name} {caught[name]}/{count}" for name, count in sorted(every.items())))
    for row in survivors:
        print(f"survivor {row['file']}:{row['line']} {row['name']}\n    {explained.get(row['name'], 'UNEXPLAINED')}")
    share = 1 - len(survivors) / max(1, len(rows))
    unexplained = sum(row["name"] not in explained for row in survivors)
    used = sum(row["core_seconds"] for row in rows) / max(1, len(rows))
    print(f"{len(rows)} of {chosen} mutations tried, {share:.1%} caught, {unexplained} survivors unexplained")
    print(f"{used:.0f} core-seconds a mutation on average; verdicts in {path}")
    return int(share < LEAST_CAUGHT or unexplained > 0 or len(rows) < chosen)
