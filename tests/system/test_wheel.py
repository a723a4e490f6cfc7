"""What is installed from a wheel is the whole program: it holds every file, and reads what earlier sources saved."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "orrery"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    """The built wheel, by the backend that pip would call."""
    folder = tmp_path_factory.mktemp("wheel")
    code = f"from hatchling.build import build_wheel; print(build_wheel({str(folder)!r}))"
    built = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    return folder / built.stdout.split()[-1]


@pytest.fixture(scope="module")
def installed(wheel: Path) -> Path:
    """A folder that holds the wheel's files and nothing of the checkout."""
    folder = wheel.parent / "installed"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder


def files(folder: Path) -> set[str]:
    paths = (path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {path.relative_to(folder).as_posix() for path in paths}


@pytest.mark.slow
def test_the_wheel_holds_every_file_of_the_package(installed: Path) -> None:
    assert files(installed / "orrery") == files(SOURCE)
    assert all((installed / package / "py.typed").is_file() for package in ("orrery", "orrery_course"))
    (facts,) = installed.glob("*.dist-info")
    assert "orrery = orrery.cli:main" in (facts / "entry_points.txt").read_text()
    assert list(facts.rglob("LICENSE"))


@pytest.mark.slow
def test_the_wheel_loads_and_resumes_what_earlier_sources_saved(installed: Path, tmp_path: Path) -> None:
    """The tests of saved runs, on the wheel's files; only the tests come from the checkout."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(installed), str(ROOT / "tests")])}
    where = subprocess.run(
        [sys.executable, "-c", "import orrery; print(orrery.__file__)"],
        cwd=tmp_path, env=environment, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert Path(where.stdout.strip()).is_relative_to(installed)
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "tests/system/test_saved_before.py"]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:]
    assert " passed" in done.stdout
