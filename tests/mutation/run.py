"""Break the program on purpose, one small change at a time, and list the changes that no test notices.

    make mutants                                            about 530 mutations, from every package
    .venv/bin/python tests/mutation/run.py --share 0.1      a tenth of them
    .venv/bin/python tests/mutation/run.py --package nn     those of one package
    .venv/bin/python tests/mutation/run.py --tests IDS      ask only the tests that a file names, one a line
    .venv/bin/python tests/mutation/run.py --again VERDICTS the mutations of that file, with the tests of now
    .venv/bin/python tests/mutation/run.py --write-map      write tests/map/by_file.json from what is recorded

First every test is run once under a tracer, to see which lines each goes through; a file of tests is traced again only
when it or a function that it runs has changed. Each verdict is written at once: stopped at any moment, the same command
goes on where it was. A mutation is caught when a test fails, cannot be imported, crashes or hangs, and does not do so
without the mutation. All tests that fail are recorded, among those that the time of a mutation allows to ask.

What survives is listed; a mutation that changes no behaviour stands with its reason in ``explained.json`` and is
counted as a survivor all the same. Exit code 1: something survived without an explanation, or less than 97 % was
caught. Only Python is changed: the modules of the page, ``src/orrery/page/web``, are not.
"""

import argparse
import hashlib
import os
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from mutation.campaign import Campaign
from mutation.drawing import drawn, drawn_before, package_of, placed_again
from mutation.mapping import write_map
from mutation.named import named
from mutation.operators import Mutation
from mutation.records import ROOT, SOURCE, load, part_of, read_trace, rows_of
from mutation.report import report
from mutation.traced import files_of_tests
from mutation.trial import key_of

MAP = ROOT / "tests" / "map" / "by_file.json"


def main() -> int:
    """Trace a sound run, try every mutation, print and write what became of them."""
    words = _arguments()
    if words.write_map:
        complete = all(part_of(words.work / "trace", file).exists() for file in files_of_tests([]))
        print(write_map(MAP, load(words.work), SOURCE, complete))
        return 0
    campaign = Campaign(words.work, words.workers, enough=words.enough, most=words.most)
    if not words.stale:
        campaign.trace(words.traced)
    known = read_trace(words.work / "trace")
    if words.tests:
        known = known.only(words.tests.read_text(encoding="utf-8").split("\n"))
    print(f"{len(known.seconds):,} tests may be asked", flush=True)
    chosen = _chosen(words)
    path = words.verdicts or words.work / f"verdicts-{_digest(words)}.jsonl"
    campaign.attempt(chosen, known, path)
    wanted = {key_of(mutation) for mutation in chosen}
    return report([row for row in rows_of([path]) if row["key"] in wanted], len(chosen), path)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1337, help="of the draw")
    parser.add_argument("--share", type=float, default=1.0, help="of the mutations that are drawn")
    parser.add_argument("--only", default="", help="only mutations with this text in their name")
    parser.add_argument("--package", default="", help="only mutations of this package of src/orrery, or module in it")
    parser.add_argument("--before", action="store_true", help="draw as before: six packages, the kinds of operators")
    parser.add_argument("--again", type=Path, help="the mutations of this file of verdicts instead of a draw")
    parser.add_argument("--survivors", action="store_true", help="of --again, only those that nothing caught")
    parser.add_argument("--tests", type=Path, help="ask only these tests: ids, functions or files, one a line")
    parser.add_argument("--traced", nargs="*", default=[], help="trace only these folders or files of tests")
    parser.add_argument("--stale", action="store_true", help="take the trace as it is, although the source has changed")
    parser.add_argument("--enough", type=float, default=30.0, help="processor seconds once something has caught it")
    parser.add_argument("--most", type=float, default=150.0, help="processor seconds while nothing has")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--work", type=Path, default=ROOT / ".mutants", help="where everything is kept")
    parser.add_argument("--verdicts", type=Path, help="go on with this file, whatever has changed since")
    parser.add_argument("--write-map", action="store_true", help="write the map from source files to tests, and end")
    return parser.parse_args()


def _chosen(words: argparse.Namespace) -> list[Mutation]:
    if words.again:
        rows = [row for row in rows_of([words.again]) if not (words.survivors and row["caught_by"])]
        chosen = placed_again(SOURCE, [(row["name"], row["line"]) for row in rows])
        had = {row["name"]: row for row in rows if row["kind"] == "named"}
        chosen += [mutation for mutation in named(SOURCE) if mutation.name in had]
        print(f"{len(chosen)} of {len(rows)} mutations stand in the source of now", flush=True)
    elif words.before:
        chosen = [*named(SOURCE), *drawn_before(SOURCE, words.seed)]
    else:
        chosen = [*named(SOURCE), *drawn(SOURCE, words.seed, words.share, words.package)]
    packages = ("", *(package_of(m.file) for m in chosen)) if not words.package else (words.package,)
    return [m for m in chosen if words.only in m.name and package_of(m.file) in packages]


def _digest(words: argparse.Namespace) -> str:
    """Return what verdicts are kept under: the source, the tests, and which of them are asked."""
    digest = hashlib.sha256()
    for path in sorted(path for top in ("src", "tests") for path in (ROOT / top).rglob("*.py")):
        if path.parent.name not in ("mutation", "map", "programs"):  # how a question is asked is no part of the answer
            digest.update(path.read_bytes())
    digest.update(words.tests.read_bytes() if words.tests else b"")
    return digest.hexdigest()[:12]


if __name__ == "__main__":
    begun = time.perf_counter()
    try:
        code = main()
    except KeyboardInterrupt:
        print("interrupted: the same command goes on from here", flush=True)
        os._exit(130)  # without waiting for the trials that run; they end with this process
    print(f"{(time.perf_counter() - begun) / 60:.0f} min")
    sys.exit(code)
