"""Break the program on purpose, one small change at a time, and list the changes that no test notices.

    make mutants                                        every mutation of the seed, about an hour on two cores
    .venv/bin/python tests/mutation/run.py --share 0.1  a tenth of them

A mutation is caught when a test fails, the program cannot be imported, or a test takes far longer than it should. What
survives is listed with the tests that were asked; a mutation that changes no behaviour stands with its reason in
``explained.json`` and is counted as a survivor all the same. Exit code 1: something survived without an explanation,
or less than 97 % was caught.
"""

import argparse
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import Queue

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from mutation.named import named
from mutation.operators import Mutation
from mutation.selection import QUOTA, Trace, batches, drawn
from mutation.trial import FAILED, PASSED, ROOT, TIER, Verdict, attempt, copied_source

EXPLAINED = Path(__file__).with_name("explained.json")
TRACED = ("tests/unit", "tests/properties", "tests/parity", "tests/gradients")
LEAST_CAUGHT = 0.97
MOST_FAILED = 5


def main() -> int:
    """Trace a sound run, try every mutation, print and write what became of them."""
    words = _arguments()
    # In the background of a shell Ctrl-C is ignored, and so it would be by the programs that tests interrupt.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    started = time.perf_counter()
    trace = Trace.read(_traced(words.work, words.workers))
    print(f"{len(trace.seconds):,} tests traced after {time.perf_counter() - started:.0f} s", flush=True)
    source = ROOT / "src" / "orrery"
    chosen = [*named(source), *drawn(source, words.seed, words.share)]
    chosen = [m for m in chosen if words.only in m.name]
    verdicts = _attempts(chosen, trace, words.workers)
    explained = json.loads(EXPLAINED.read_text(encoding="utf-8"))
    survivors = [verdict for verdict in verdicts if verdict.caught_by is None]
    _write(words.output, verdicts, explained, time.perf_counter() - started)
    return _report(verdicts, survivors, explained, time.perf_counter() - started)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1337, help="of the draw")
    parser.add_argument("--share", type=float, default=1.0, help="of the mutations that are drawn")
    parser.add_argument("--only", default="", help="only mutations with this text in their name")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--work", type=Path, default=ROOT / ".mutants", help="where traces are kept")
    parser.add_argument("--output", type=Path, default=ROOT / ".mutants" / "verdicts.json")
    return parser.parse_args()


def _traced(work: Path, workers: int) -> Path:
    """Return the folder with the trace of the present source and tests, made now where there is none."""
    digest, own = hashlib.sha256(), Path(__file__).parent
    for path in sorted(path for top in ("src", "tests") for path in (ROOT / top).rglob("*.py")):
        if path.parent != own or path.stem == "tracing":  # what is asked of a trace does not change it
            digest.update(path.read_bytes())
    folder = work / f"trace-{digest.hexdigest()[:12]}"
    if not (folder / "done").exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        print("running every test once, to see which lines each goes through", flush=True)
        command = [sys.executable, "-m", "pytest", "-q", "-n", str(workers), "-p", "mutation.tracing", *TRACED]
        environment = {**os.environ, "ORRERY_MUTATION_TRACE": str(folder), "OMP_NUM_THREADS": "1"}
        environment["PYTHONPATH"] = os.pathsep.join([str(ROOT / "src"), str(ROOT / "tests")])
        log = (folder / "log.txt").open("w")
        done = subprocess.run([*command, "-m", TIER], cwd=ROOT, env=environment, stdout=log)
        failed = [line for line in (folder / "log.txt").read_text().splitlines() if line.startswith("FAILED")]
        if done.returncode not in (PASSED, FAILED) or len(failed) > MOST_FAILED:
            raise SystemExit(f"error: the tests fail without any mutation: see {folder / 'log.txt'}")
        for line in failed:  # what measures seconds is slower under the tracer
            print(f"left out, for it fails under the tracer without any mutation: {line}", flush=True)
        (folder / "done").touch()
    return folder


def _attempts(chosen: list[Mutation], trace: Trace, workers: int) -> list[Verdict]:
    """Try mutations, one worker and one copy of the source each, and print each verdict as it comes."""
    copies: Queue[Path] = Queue()
    count = iter(range(1, len(chosen) + 1))

    def one(mutation: Mutation) -> Verdict:
        copy = copies.get()
        try:
            verdict = attempt(copy, mutation, batches(mutation, trace), trace.seconds)
        finally:
            copies.put(copy)
        outcome = f"caught by {verdict.caught_by}" if verdict.caught_by else f"SURVIVED {verdict.asked} tests"
        print(f"[{next(count)}/{len(chosen)}] {mutation.name[:150]}: {outcome[:150]}", flush=True)
        return verdict

    with ThreadPoolExecutor(workers) as pool:
        from contextlib import ExitStack

        with ExitStack() as stack:
            for _ in range(workers):
                copies.put(stack.enter_context(copied_source()))
            return list(pool.map(one, chosen))


def _report(verdicts: list[Verdict], survivors: list[Verdict], explained: dict[str, str], seconds: float) -> int:
    """Print the table by package, the survivors, and whether the bar is met."""
    for package in (*QUOTA, "evaluation"):
        of = [v for v in verdicts if v.mutation.file.startswith(f"{package}/")]
        if of:
            print(f"{package:<12} {len(of):4} mutations, {sum(v.caught_by is not None for v in of):4} caught")
    kinds = Counter(v.mutation.kind for v in verdicts)
    print("kinds: " + ", ".join(f"{kind} {count}" for kind, count in kinds.most_common()))
    for verdict in survivors:
        place = f"{verdict.mutation.file}:{verdict.mutation.line}"
        print(f"survivor {place} {verdict.mutation.name}\n    {explained.get(verdict.mutation.name, 'UNEXPLAINED')}")
    share = 1 - len(survivors) / max(1, len(verdicts))
    unexplained = sum(v.mutation.name not in explained for v in survivors)
    print(f"{len(verdicts)} mutations, {share:.1%} caught, {unexplained} survivors unexplained, {seconds / 60:.0f} min")
    return int(share < LEAST_CAUGHT or unexplained > 0)


def _write(path: Path, verdicts: list[Verdict], explained: dict[str, str], seconds: float) -> None:
    rows = [
        {
            "mutation": v.mutation.name,
            "line": v.mutation.line,
            "kind": v.mutation.kind,
            "caught_by": v.caught_by,
            "asked": v.asked,
            "explained": explained.get(v.mutation.name),
        }
        for v in verdicts
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"seconds": round(seconds), "verdicts": rows}, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    sys.exit(main())
