"""One mutation in a copy of the source, and what the tests say of it."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from mutation.operators import Mutation

ROOT = Path(__file__).resolve().parents[2]
TIER = "not slow and not long and not alone"
PASSED, FAILED, COLLECTION_BROKEN, NOT_COLLECTED = 0, 1, 2, 4
_SLOWER = 6  # a mutation may slow a test down; beyond that it hangs
_START = 90


@dataclass(frozen=True)
class Verdict:
    """What became of a mutation: by which test it was caught, or None, and how many tests were asked."""

    mutation: Mutation
    caught_by: str | None
    asked: int


@contextmanager
def copied_source() -> Iterator[Path]:
    """Give a copy of ``src`` that may be broken; the checkout itself is never touched."""
    with tempfile.TemporaryDirectory(prefix="orrery-mutants-") as folder:
        copy = Path(folder) / "src"
        shutil.copytree(ROOT / "src", copy)
        yield copy


def attempt(source: Path, mutation: Mutation, batches: list[list[str]], seconds: dict[str, float]) -> Verdict:
    """Break the copy, ask batch after batch until one fails, and mend the copy again."""
    target, sound = source / "orrery" / mutation.file, ROOT / "src" / "orrery" / mutation.file
    try:
        target.write_text(mutation.apply(target.read_text(encoding="utf-8")), encoding="utf-8")
        for batch in batches:
            caught = _ask(source, batch, _START + _SLOWER * sum(seconds.get(test, 20.0) for test in batch))
            if caught:
                return Verdict(mutation, caught, sum(map(len, batches)))
    finally:
        shutil.copy2(sound, target)
    return Verdict(mutation, None, sum(map(len, batches)))


def _ask(source: Path, tests: list[str], limit: float) -> str | None:
    """Run tests against a source; return the first that failed, or None."""
    names = source.parent / "tests.txt"
    names.write_text("\n".join(tests))
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-m", TIER, "-p", "no:cacheprovider"]
    environment = {**os.environ, "PYTHONPATH": str(source), "PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1"}
    environment["TMPDIR"] = str(source.parent)
    try:
        done = subprocess.run(
            [*command, f"@{names}"], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=limit,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return f"it did not end within {limit:.0f} s"
    if done.returncode == PASSED:
        return None
    said = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    # A file that cannot be imported holds none of the tests that were asked for: 4, and an error of that file.
    if done.returncode in (FAILED, COLLECTION_BROKEN) or (done.returncode == NOT_COLLECTED and said):
        return next(iter(said), "while it was imported")
    if done.returncode < 0 or "Traceback" in done.stderr:
        return "while it was imported"
    raise RuntimeError(f"pytest left with {done.returncode}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
