"""The command line and the record that all programs of this folder share: what was found, and what it was found on.

A record is a JSON file with two keys: ``header`` (program, command, date, commit, machine, load, threads, versions) and
``found``, what the program measured. Without ``--output`` a program prints and writes nothing; nothing is written over
a committed record by default. ``--small`` is a form that ends in seconds, to see that the program runs: its numbers
mean nothing, and its record says so.
"""

import argparse
import hashlib
import importlib.metadata
import json
import os
import platform
import shlex
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
HEADER = (
    *("program", "command", "small", "date", "commit", "changed", "machine"),
    *("load_before", "load_after", "threads", "versions", "sha256"),
)
"""What the header of a record holds."""
FEATURES = (
    *("f16c", "fma", "avx2", "avx512f", "avx512_vnni", "avx512_bf16", "avx512_fp16", "avx_vnni"),
    *("amx_tile", "amx_int8", "amx_bf16", "asimd", "asimddp", "i8mm", "bf16", "sve"),
)
"""The instruction sets that decide which kernels run, as Linux names them."""
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


def parser(doc: str | None) -> argparse.ArgumentParser:
    """Return a parser with what every program takes: ``--output`` and ``--small``."""
    made = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--output", type=Path, metavar="FILE", help="where the record goes; without it nothing is kept")
    made.add_argument("--small", action="store_true", help="a form of seconds that shows that the program runs")
    return made


def parsed(made: argparse.ArgumentParser, small: Mapping[str, Any], needs: Iterable[str] = ()) -> argparse.Namespace:
    """Return what was asked: with ``--small`` the small values stand for those that are not given.

    ``needs`` are the options that the program cannot do without, but in its small form.
    """
    if made.parse_known_args()[0].small:
        made.set_defaults(**small)
        return made.parse_args()
    given = made.parse_args()
    missing = [name for name in needs if getattr(given, name) is None]
    if missing:
        made.error(f"what is needed is not given: {', '.join(missing)}; --small does without")
    return given


def add_recipes(made: argparse.ArgumentParser, recipes: Sequence[str]) -> None:
    """Add what a program takes that trains recipes with several seeds, beside the runs of an earlier record."""
    made.add_argument("--recipes", nargs="+", choices=recipes, default=list(recipes))
    made.add_argument("--beside", type=Path, help="a record whose runs are kept")
    made.add_argument("--seeds", type=int, nargs="*", default=[1, 2, 3])


def runs_beside(options: argparse.Namespace) -> list[dict[str, Any]]:
    """Return the runs that ``--beside`` keeps: all but those of a recipe and a seed that are measured again."""
    if options.beside is None:
        return []
    kept: list[dict[str, Any]] = json.loads(options.beside.read_text(encoding="utf-8"))["found"]["runs"]
    return [run for run in kept if run["recipe"] not in options.recipes or run["seed"] not in options.seeds]


class Record:
    """What one run of a program found, with the facts that a reader needs to judge it; made before it measures."""

    def __init__(
        self, options: argparse.Namespace, peers: Iterable[str] = (), elsewhere: Mapping[str, Any] | None = None
    ) -> None:
        """Note the date, the load, the commit; ``elsewhere`` has versions that this interpreter cannot see."""
        self._options, self._peers, self._elsewhere = options, tuple(peers), dict(elsewhere or {})
        self._date, self._load = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"), load()
        self._commit, self._changed = commit()

    def header(self, content: Any) -> dict[str, Any]:
        """Return the header of what was found."""
        program = Path(sys.argv[0]).resolve()
        named = f"benchmarks/{program.name}"
        return {
            "program": named,
            "command": f"python {named} {shown(sys.argv[1:])}".strip(),
            "small": self._options.small,
            "date": self._date,
            "commit": self._commit,
            "changed": self._changed,
            "machine": machine(),
            "load_before": self._load,
            "load_after": load(),
            "threads": threads(),
            "versions": versions(self._peers) | self._elsewhere,
            "sha256": digest(content),
        }

    def write(self, content: Any) -> None:
        """Write what was found so far, where that was asked for."""
        if self._options.output is not None:
            made = {"header": self.header(content), "found": content}
            self._options.output.write_text(json.dumps(made, indent=1) + "\n", encoding="utf-8")


def digest(content: Any) -> str:
    """Return a sum over what was found, so that a number that is changed by hand is noticed."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def shown(words: list[str]) -> str:
    """Return the words of a command line without ``--output``; of an absolute path the last part."""
    kept, left = [], iter(words)
    for word in left:
        if word == "--output":
            next(left, None)
        elif not word.startswith("--output="):
            kept.append(Path(word).name if word.startswith("/") else word)
    return shlex.join(kept)


def commit() -> tuple[str | None, bool | None]:
    """Return the commit of the checkout and whether files differ from it, other records aside; None without git."""

    def git(*words: str) -> str:
        return subprocess.run(["git", "-C", str(ROOT), *words], capture_output=True, text=True, check=True).stdout

    try:
        changed = git("status", "--porcelain", "--untracked-files=no").splitlines()
        return git("rev-parse", "HEAD").strip(), any(not line.endswith(".json") for line in changed)
    except (OSError, subprocess.CalledProcessError):
        return None, None


def machine() -> dict[str, Any]:
    """Return what the system says of the machine; the name of the host is no part of it."""
    facts = cpuinfo()
    flags = set((facts.get("flags") or facts.get("Features", "")).split())
    return {
        "processor": facts.get("model name") or platform.processor() or platform.machine(),
        "vendor": facts.get("vendor_id", ""),
        "family_model": f"{facts.get('cpu family', '')}/{facts.get('model', '')}",
        "features": [name for name in FEATURES if name in flags],
        "cores": os.cpu_count(),
        "memory_bytes": memory_bytes(),
        "system": f"{platform.system()} {platform.machine()}",
    }


def cpuinfo() -> dict[str, str]:
    """Return the lines of the last processor in ``/proc/cpuinfo``; nothing where there is none."""
    file = Path("/proc/cpuinfo")
    lines = file.read_text(encoding="utf-8").splitlines() if file.is_file() else []
    return {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in lines)}


def memory_bytes() -> int | None:
    """Return the bytes of the machine's memory, where the system tells."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError):
        return None


def load() -> list[float]:
    """Return the load of the last minute, five, and fifteen."""
    return [round(one, 2) for one in os.getloadavg()]


def threads() -> dict[str, Any]:
    """Return how many threads torch has, if it is loaded, and what the environment says."""
    torch = sys.modules.get("torch")
    said = {name: os.environ[name] for name in THREADS if name in os.environ}
    return {"torch": torch.get_num_threads() if torch is not None else None, **said}


def versions(peers: Iterable[str], python: Path | str | None = None) -> dict[str, str | None]:
    """Return the versions of Python, Orrery, torch, numpy and peers, or of peers alone in another interpreter."""
    if python is not None:
        code = "import importlib.metadata as m, json, sys; found = {}\nfor n in sys.argv[1:]:\n"
        code += (
            " try: found[n] = m.version(n)\n except m.PackageNotFoundError: found[n] = None\nprint(json.dumps(found))"
        )
        done = subprocess.run([str(python), "-c", code, *peers], capture_output=True, text=True, check=True)
        return dict(json.loads(done.stdout))
    by_name: dict[str, str | None] = {"python": platform.python_version()}
    for name in ("orrery", "torch", "numpy", *peers):
        try:
            by_name[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            by_name[name] = None
    return by_name
