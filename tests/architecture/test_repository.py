"""The repository keeps its promises: pinned dependencies, no path of one machine, layers that hold."""

import re
import subprocess
import sys
import tomllib
from importlib import metadata
from itertools import chain
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PINS = (ROOT / "constraints.txt").read_text().splitlines()
MACHINE_PATH = re.compile(r"(?<![\w.])/(work|root|home|tmp|opt|Users)(/|\b)")


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def test_pins_are_plain() -> None:
    assert [pin for pin in PINS if not re.fullmatch(r"[A-Za-z0-9._-]+==[0-9][A-Za-z0-9.]*", pin)] == []


def test_every_dependency_is_pinned() -> None:
    extras = PROJECT["project"]["optional-dependencies"].values()
    wanted = [*PROJECT["build-system"]["requires"], *PROJECT["project"]["dependencies"], *chain(*extras)]
    pinned = {_normal(pin.split("==")[0]) for pin in PINS}
    assert {_normal(re.split(r"[\[<>=~! ]", line)[0]) for line in wanted} - pinned == set()


def test_torch_is_the_pinned_one_and_brings_no_cuda_by_accident() -> None:
    installed = {_normal(name) for d in metadata.distributions() if (name := d.metadata["Name"])}
    assert f"torch=={torch.__version__.split('+')[0]}" in PINS
    assert torch.version.cuda or not [name for name in installed if name.startswith("nvidia-")]


def _tracked() -> list[Path]:
    listing = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True)
    if listing.returncode:
        pytest.skip("not a git checkout")
    return [ROOT / name for name in listing.stdout.split("\0") if name and (ROOT / name).is_file()]


def test_no_file_names_a_place_of_one_machine() -> None:
    named_places = []
    for path in _tracked():
        text = path.read_bytes().decode("utf-8", errors="ignore")
        shared = path.name != "Makefile" and ".." + "/shared" in text
        if shared or MACHINE_PATH.search(text):
            named_places.append(path.relative_to(ROOT).as_posix())
    assert named_places == []


def test_the_first_folder_holds_only_what_belongs_there() -> None:
    expected = {".gitignore", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "Makefile", "README.md"}
    assert {path.name for path in _tracked() if path.parent == ROOT} == expected | {"constraints.txt", "pyproject.toml"}


@pytest.mark.parametrize("place", ["work/x", "root", "tmp/run.txt", "home/me"])
def test_a_machine_path_is_recognised(place: str) -> None:
    assert MACHINE_PATH.search(f"open('/{place}')")
    assert not MACHINE_PATH.search(f"docs/{place}")


def test_layers_hold() -> None:
    command = [sys.executable, "-c", "from importlinter.cli import lint_imports_command as run; run()"]
    result = subprocess.run([*command, "--no-cache"], cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout


@pytest.mark.parametrize("page", ["faults.md", "where-a-new-part-goes.md"])
def test_every_file_that_a_page_names_exists(page: str) -> None:
    named = set(re.findall(r"`([a-z_/]+/[a-z_0-9]+\.py)`", (ROOT / "docs" / page).read_text()))
    assert [
        name for name in sorted(named) if not any((ROOT / at / name).exists() for at in ("src/orrery", "tests", "."))
    ] == []


RARE = re.compile(r"\b(whence|anew|debris|contenders?|heavens)\b", re.IGNORECASE)
"""Words that many readers would have to look up, and that a plain one can stand for."""
KEYS = ("benchmarks/", "docs/_benchmark_tables.py", "tests/architecture/test_repository.py")
"""Where one is a key of records that programs have written, or stands to be looked for."""


def test_prose_has_no_rare_words() -> None:
    rare = []
    for path in _tracked():
        name = path.relative_to(ROOT).as_posix()
        if path.suffix in (".md", ".py", ".js", ".yaml") and not name.startswith(KEYS):
            rare += [f"{name}: {word}" for word in RARE.findall(path.read_text(encoding="utf-8"))]
    assert rare == []
