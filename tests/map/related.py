"""Run the tests that are worth running after a change of some files of the program, in under a minute.

    make test-for src/orrery/nn/norms.py            or a folder, or several

The tests come from ``by_file.json``: first those that caught a mutation of the file, then those that run its lines.
``.venv/bin/python tests/mutation/run.py --write-map`` writes it. A file that it does not know has the tests of its own
name under ``tests/unit``, or those of its folder there.
"""

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MAP = Path(__file__).with_name("by_file.json")
SECONDS = 40.0
ASKED, GONE = "ORRERY_ASKED_TESTS", "ORRERY_GONE_TESTS"
_NO_TEST_LEFT = 5


@dataclass(frozen=True)
class Map:
    """The tests worth running for each source file, and processor seconds: of a test, and of its file for all."""

    tests: dict[str, list[str]]
    seconds: dict[str, float]
    file_seconds: dict[str, float]

    @classmethod
    def read(cls, path: Path = MAP) -> "Map":
        content = json.loads(path.read_text(encoding="utf-8"))
        seconds = {f"{file}::{name}": s for file, times in content["tests"].items() for name, s in times.items()}
        names = list(seconds)
        tests = {file: [names[n] for n in numbers] for file, numbers in content["files"].items()}
        return cls(tests, seconds, content["file_seconds"])


@dataclass(frozen=True)
class Chosen:
    """What is run: single tests, whole files or folders of tests, and what had to be said."""

    tests: list[str]
    whole: list[str]
    said: list[str]


def chosen(paths: list[str], known: Map, root: Path = ROOT, most: float = SECONDS) -> Chosen:
    """Choose for all paths together, in turn for each of their files, as many tests as the seconds allow."""
    whole, said, lists = [], [], []
    for file in _files(paths, root):
        name = os.path.relpath(file, "src/orrery") if file.startswith("src/") else file
        if file.startswith("tests/"):
            whole.append(file)
        elif name in known.tests:
            lists.append(known.tests[name])
        elif mirrored := _mirrored(name, root, file in paths):
            whole += mirrored
            said.append(f"{file} is not in the map: {', '.join(mirrored)} is run")
        else:
            said.append(f"{file} is not in the map, and no tests of its name are in tests/unit")
    tests, used, files = [], 0.0, set()
    for test in _in_turn(lists):
        file = test.partition("::")[0]
        cost = known.seconds[test] + (0.0 if file in files else known.file_seconds.get(file, 0.0))
        if not (root / file).exists():
            said.append(f"left out, for its file is gone: {test}")
        elif used + cost <= most:
            used += cost
            files.add(file)
            tests.append(test)
    return Chosen(tests, list(dict.fromkeys(whole)), said)


def _files(paths: list[str], root: Path) -> list[str]:
    """Return the files of the paths, by their names from the root on; what does not exist is kept."""
    named = []
    for path in paths:
        whole = root / path
        is_source = whole.is_dir() and not whole.is_relative_to(root / "tests")
        files = sorted(whole.rglob("*.py")) if is_source else [whole]
        named += [os.path.relpath(file, root) for file in files if not (is_source and file.stat().st_size == 0)]
    return list(dict.fromkeys(named))


def _mirrored(name: str, root: Path, is_named: bool) -> list[str]:
    """Return the unit tests of a file's name; where the file itself was named, else the folder that mirrors its own.

    A folder that was named has the tests of its other files, and all of ``tests/unit`` would be none of a file's.
    """
    for folder in list(Path(name).parents)[:-1]:
        place = root / "tests/unit" / folder
        if place.is_dir():
            own = sorted(place.rglob(f"test_{Path(name).stem.strip('_')}*.py"))
            return [path.relative_to(root).as_posix() for path in own or [place] * is_named]
    return []


def _in_turn(lists: list[list[str]]) -> list[str]:
    """Return the first of each list, then the second of each, and so on, each test once."""
    longest = max(map(len, lists), default=0)
    return list(dict.fromkeys(each[n] for n in range(longest) for each in lists if n < len(each)))


def main(paths: list[str]) -> int:
    """Run what is chosen with one call of pytest, two workers, without checks of types at run time."""
    if not paths:
        print("error: no file is named\nhint: make test-for src/orrery/nn/norms.py", file=sys.stderr)
        return 2
    choice = chosen(paths, Map.read())
    print("\n".join(choice.said), end="\n" * bool(choice.said), flush=True)
    files = list(dict.fromkeys(test.partition("::")[0] for test in choice.tests))
    if not files and not choice.whole:
        print("no test is known for it: make test runs all", file=sys.stderr)
        return 1
    print(
        f"{len(choice.tests)} tests of {len(files)} files" + "".join(f", {name}" for name in choice.whole), flush=True
    )
    with tempfile.TemporaryDirectory() as folder:
        asked, gone = Path(folder) / "asked.json", Path(folder) / "gone"
        asked.write_text(json.dumps({"tests": choice.tests, "whole": choice.whole}))
        environment = {
            **os.environ,
            "OMP_NUM_THREADS": "1",
            ASKED: str(asked),
            GONE: str(gone),
        }
        environment["PYTHONPATH"] = os.pathsep.join([str(ROOT / "tests"), os.environ.get("PYTHONPATH", "")])
        # Files and no ids: one id that no longer exists would end the run.
        words = ["-q", "-n", "2", "-p", "map.selected", "-m", "not slow and not long and not alone"]
        files = [file for file in files if not any(_is_in(file, name) for name in choice.whole)]
        done = subprocess.run(
            [sys.executable, "-m", "pytest", *words, *files, *choice.whole], cwd=ROOT, env=environment
        )
        for test in sorted(set(gone.read_text().split("\n")) - {""}) if gone.exists() else ():
            print(f"left out, for it does not exist any more: {test}")
    return done.returncode


def _is_in(file: str, folder: str) -> bool:
    return Path(file).is_relative_to(folder)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
