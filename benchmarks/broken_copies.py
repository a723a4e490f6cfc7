"""How many faults in the mathematics `orrery verify` sees, with no other library installed to compare with.

.venv/bin/python benchmarks/broken_copies.py [--only WORDS] [--limit SECONDS] [--output FILE]

Every fault of benchmarks/breaks.py goes alone into a copy of the source, and the checks of `orrery verify` run on the
copy in their order until one fails; transformers cannot be imported there. A fault is seen when a check fails, or when
verify itself raises. A copy that does not answer in time is no catch, and is counted apart. The control is a copy with
no fault in it: it must pass, within the same time. Exits with 1 if it does not, or if more than one fault in twenty is
not seen.
"""

import argparse
import collections
import multiprocessing
import shutil
import sys
import tempfile
import time
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import torch._dynamo  # noqa: F401 - imported here once, not in every process: an optimizer brings it
from _record import Record, parsed, parser
from breaks import BREAKS, Break

SOURCE = Path(__file__).parents[1] / "src"
SEEN = 0.95
LIMIT = 600
ORACLES = ("transformers", "peft", "trl", "gensim", "sentencepiece")
CAUGHT, RAISED, PASSED, LATE, DIED = "a check failed", "verify raised", "passed", "no answer in time", "died"
"""What can come of a copy; the first two are a fault that is seen."""


def main() -> int:
    options = parse()
    chosen = [fault for fault in BREAKS if options.only in fault.name]
    if "orrery" in sys.modules:
        raise SystemExit("Orrery is loaded already, and a copy would not be what is checked")
    record = Record(options)
    numbers: dict[str, Any] = {"limit_seconds": options.limit}
    if not options.without_control:
        numbers["control"] = tried(None, options.limit)
    numbers["faults"] = [tried(fault, options.limit) for fault in chosen]
    numbers["outcomes"] = collections.Counter(one["outcome"] for one in numbers["faults"])
    numbers["seen"] = sum(one["seen"] for one in numbers["faults"])
    missed = [f"{one['break']} ({one['outcome']})" for one in numbers["faults"] if not one["seen"]]
    print(f"{numbers['seen']} of {len(chosen)} faults are seen; not seen: {', '.join(missed) or 'none'}")
    record.write(numbers)
    return int(not passes(numbers))


def passes(numbers: dict[str, Any]) -> bool:
    """Say whether the copy without a fault passed and enough of the others were seen."""
    sound = numbers.get("control", {"outcome": PASSED})["outcome"] == PASSED
    return sound and numbers["seen"] >= SEEN * len(numbers["faults"])


def parse() -> argparse.Namespace:
    made = parser(__doc__)
    made.add_argument("--only", default="", help="breaks whose name has these words")
    made.add_argument("--limit", type=float, default=LIMIT, help="seconds in which a copy must answer")
    made.add_argument("--without-control", action="store_true", help="do not run the copy that has no fault")
    return parsed(made, {"only": "slopes between", "without_control": True})


def tried(fault: Break | None, limit: float) -> dict[str, Any]:
    """Run the checks on a copy, in a process that has torch already but nothing of Orrery; no fault is the control."""
    started = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        copy = broken_copy(fault, Path(folder))
        ours, theirs = multiprocessing.get_context("fork").Pipe(duplex=False)
        child = multiprocessing.get_context("fork").Process(target=checked, args=(copy, theirs))
        child.start()
        theirs.close()
        outcome, said = answer(ours, limit)
        child.kill()
        child.join()
    seconds, name = time.perf_counter() - started, "the copy without a fault" if fault is None else fault.name
    seen = outcome in (CAUGHT, RAISED)
    print(f"{outcome:17} {seconds:5.1f} s  {name}: {said}", flush=True)
    return {"break": name, "outcome": outcome, "seen": seen, "by": said, "seconds": round(seconds, 1)}


def answer(pipe: Connection, limit: float) -> tuple[str, str]:
    """Return what came of a copy, and what it said."""
    if not pipe.poll(limit):
        return LATE, f"nothing within {limit:g} seconds"
    try:
        outcome, said = pipe.recv()
    except EOFError:
        return DIED, "the process ended without an answer"
    return outcome, said


def checked(copy: Path, answer: Connection) -> None:
    """Send what fails first; no other library than the core's can be imported."""
    sys.path.insert(0, str(copy))
    sys.dont_write_bytecode = True
    sys.modules.update(dict.fromkeys(ORACLES))
    try:
        from orrery.laws import registry

        assert Path(registry.__file__).is_relative_to(copy), "the copy is not what is checked"
        failure = registry.first_failure()
        answer.send((PASSED, "") if failure is None else (CAUGHT, failure))
    except BaseException as error:
        answer.send((RAISED, f"{type(error).__name__}: {error}"))


def broken_copy(fault: Break | None, folder: Path) -> Path:
    """Copy the source and put the fault in, where there is one."""
    copy = folder / "src"
    shutil.copytree(SOURCE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    if fault is None:
        return copy
    file = copy / "orrery" / fault.file
    text = file.read_text(encoding="utf-8")
    if text.count(fault.right) != 1:
        raise SystemExit(f"{fault.name}: its text stands {text.count(fault.right)} times in {fault.file}, not once")
    file.write_text(text.replace(fault.right, fault.wrong), encoding="utf-8")
    return copy


if __name__ == "__main__":
    sys.exit(main())
