"""How many faults in the mathematics `orrery verify` sees, with no other library installed to compare with.

.venv/bin/python benchmarks/broken_copies.py [--only WORDS] [--json FILE]

Every fault of benchmarks/breaks.py goes alone into a copy of the source, and the checks of `orrery verify` run on the
copy in their order until one fails; transformers cannot be imported there. A fault is seen when a check fails. Exits
with 1 if more than one fault in twenty is not seen.
"""

import argparse
import json
import multiprocessing
import shutil
import sys
import tempfile
import time
from multiprocessing.connection import Connection
from pathlib import Path

import torch._dynamo  # noqa: F401 - imported here once, not in every process: an optimizer brings it
from breaks import BREAKS, Break

SOURCE = Path(__file__).parents[1] / "src"
SEEN = 0.95
LIMIT = 600
ORACLES = ("transformers", "peft", "trl", "gensim", "sentencepiece")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", default="", help="breaks whose name has these words")
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    chosen = [fault for fault in BREAKS if asked.only in fault.name]
    if "orrery" in sys.modules:
        raise SystemExit("Orrery is loaded already, and a copy would not be what is checked")
    results = [tried(fault) for fault in chosen]
    missed = [result["break"] for result in results if not result["seen"]]
    print(f"{len(results) - len(missed)} of {len(results)} faults are seen; not seen: {', '.join(missed) or 'none'}")
    if asked.json is not None:
        asked.json.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    return int(len(missed) > (1 - SEEN) * len(results))


def tried(fault: Break) -> dict[str, object]:
    """Run the checks on a copy with the fault in it, in a process that has torch already but nothing of Orrery."""
    started = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        copy = broken_copy(fault, Path(folder))
        ours, theirs = multiprocessing.get_context("fork").Pipe(duplex=False)
        child = multiprocessing.get_context("fork").Process(target=checked, args=(copy, theirs))
        child.start()
        theirs.close()
        where = ours.recv() if ours.poll(LIMIT) else f"no answer within {LIMIT} seconds"
        child.kill()
        child.join()
    seconds = time.perf_counter() - started
    print(f"{'seen' if where else 'NOT SEEN':8} {seconds:5.1f} s  {fault.name}: {where}", flush=True)
    return {"break": fault.name, "seen": bool(where), "by": where, "seconds": round(seconds, 1)}


def checked(copy: Path, answer: Connection) -> None:
    """Send what fails first; no other library than the core's can be imported."""
    sys.path.insert(0, str(copy))
    sys.dont_write_bytecode = True
    sys.modules.update(dict.fromkeys(ORACLES))
    try:
        from orrery.laws import registry

        assert Path(registry.__file__).is_relative_to(copy), "the copy is not what is checked"
        found = registry.first_failure()
    except BaseException as error:
        found = f"verify raised {type(error).__name__}: {error}"
    answer.send(found)


def broken_copy(fault: Break, folder: Path) -> Path:
    """Copy the source and put the fault in."""
    copy = folder / "src"
    shutil.copytree(SOURCE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    file = copy / "orrery" / fault.file
    text = file.read_text(encoding="utf-8")
    if text.count(fault.right) != 1:
        raise SystemExit(f"{fault.name}: its text stands {text.count(fault.right)} times in {fault.file}, not once")
    file.write_text(text.replace(fault.right, fault.wrong), encoding="utf-8")
    return copy


if __name__ == "__main__":
    sys.exit(main())
