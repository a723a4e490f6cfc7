"""Variables, streams and terminals that a program may find itself in: each a process of its own."""

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path

import programs
from battery.case import Answer, Case, judged
from programs import CLOSED, DEVNULL, ORRERY, PIPE

GENERATE = ("generate", "llama", "the cat", "--max-new-tokens=8")
SHOW = ("data", "show", "umlauts.txt")
VERBS: tuple[Sequence[str], ...] = (
    GENERATE,
    SHOW,
    ("score", "llama", "äöü 日本 🙂"),
    ("tokenizer", "show", "tokenizer", "äöü 日本 🙂"),
    ("tokenizer", "compare", "äöü 🙂", "--tokenizer=tokenizer"),
    ("info",),
    ("show", "./llama"),
    ("translate", "rnnsearch", "äöü", "--max-new-tokens=4"),
    ("neighbours", "vectors.txt", "cat"),
    ("train", "recipe.yaml"),
    ("--help",),
    ("generate", "--help"),
)


@dataclass(frozen=True)
class Place:
    """The surroundings of a process: variables, and its streams, which may be closed."""

    name: str
    environment: Mapping[str, str] = field(default_factory=dict)
    stdin: int = DEVNULL
    stdout: int | Path = PIPE
    stderr: int = PIPE
    wants: str = "ok"
    cold: bool = False
    """Whether Python must start in it: what a fork cannot become."""


PLACES = (
    Place("ascii", {"PYTHONIOENCODING": "ascii"}),
    Place("ascii strict", {"PYTHONIOENCODING": "ascii:strict"}),
    Place("latin-1", {"PYTHONIOENCODING": "latin-1"}),
    Place(
        "locale C", {"LC_ALL": "C", "LANG": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}, wants="any", cold=True
    ),
    Place("no columns", {"COLUMNS": "0", "LINES": "0", "FORCE_COLOR": "1", "TTY_COMPATIBLE": "1"}),
    Place("one column", {"COLUMNS": "1", "FORCE_COLOR": "1", "TTY_COMPATIBLE": "1"}),
    Place("columns that are none", {"COLUMNS": "-5", "TERM": "dumb"}),
    Place("stdout closed", stdout=CLOSED, wants="any"),
    Place("stderr closed", stderr=CLOSED),
    Place("stdin closed", stdin=CLOSED, wants="any"),
    Place("all closed", stdin=CLOSED, stdout=CLOSED, stderr=CLOSED, wants="any"),
    Place("stdout full", stdout=Path("/dev/full"), wants="error"),
    Place("runs is a file", {"ORRERY_RUNS": "text.txt"}, wants="any"),
    Place("runs is /dev/null", {"ORRERY_RUNS": "/dev/null"}, wants="any"),
    Place("runs is too long", {"ORRERY_RUNS": "x" * 300}, wants="any"),
    Place("no home", {"HOME": "/nowhere", "XDG_CACHE_HOME": "/proc/nowhere"}),
    Place("home is a file", {"HOME": "text.txt", "XDG_CACHE_HOME": "text.txt"}),
    Place("data is a file", {"ORRERY_DATA": "text.txt"}, wants="any"),
)
ONLY: Mapping[str, Sequence[Sequence[str]]] = {
    "runs": (("train", "recipe.yaml"), ("lab", "bottleneck", "--quick", "--seeds=0"), ("info",)),
    "data is": (("data", "show"), ("info",), ("data", "show", "multi30k-en-de")),
    "no home": (GENERATE, ("train", "words.yaml")),
    "home is": (GENERATE, ("train", "words.yaml")),
    "stdin": (("chat", "llama", "--template=plain.jinja"), ("translate", "rnnsearch", "-"), GENERATE),
    "all closed": (GENERATE, ("train", "recipe.yaml"), ("info",)),
}
"""The verbs of some places; the others get them in turn."""


def pairs() -> list[tuple[Place, Sequence[str]]]:
    """Return each place with the verbs that run in it."""
    pairs_tried = []
    for number, place in enumerate(PLACES):
        chosen = next((verbs for name, verbs in ONLY.items() if place.name.startswith(name)), None)
        pairs_tried += [(place, verb) for verb in chosen or [VERBS[(number + i * 5) % len(VERBS)] for i in range(2)]]
    return pairs_tried


def faults(place: Place, words: Sequence[str], folder: Path) -> list[str]:
    """Run a command in a place, and return what is wrong with the answer."""
    start, dropped = (subprocess.run, ("LC_", "LANG", "COLUMNS")) if place.cold else (programs.run, "COLUMNS")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(dropped)}
    with open(place.stdout, "wb") if isinstance(place.stdout, Path) else nullcontext(place.stdout) as out:
        done = start(
            [*ORRERY, *words], cwd=folder, env={**environment, **place.environment}, timeout=100,
            stdin=place.stdin, stdout=out, stderr=place.stderr,
        )  # fmt: skip
    code = done.returncode
    answer = Answer(code, *((said or b"").decode(errors="replace") for said in (done.stdout, done.stderr)), 0.0)
    wants = "any" if place.wants == "error" and words[0] == "train" else place.wants
    if place.stderr == CLOSED and code:
        return [] if place.wants == "any" else [f"exit code {code}"]
    return judged(Case(place.name, words, wants), answer)  # type: ignore[arg-type]


def copied(world: Path, folder: Path) -> Path:
    """Return a copy of the world."""
    return Path(shutil.copytree(world, folder, symlinks=True))
