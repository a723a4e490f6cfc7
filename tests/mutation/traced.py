"""The trace of a sound run, made file of tests by file of tests, and made again only where something has changed."""

import shutil
from pathlib import Path

from mutation.records import ROOT, is_fresh, keep, part_of
from mutation.server import Server
from mutation.trial import WORDS, lines_of

TRACED = ("unit", "properties", "parity", "gradients", "architecture", "learning", "system")
_START, _UNKNOWN = 900.0, 100.0  # seconds: before the first test, and expected of any test


def files_of_tests(wanted: list[str], root: Path = ROOT) -> list[str]:
    """Return the files of tests under some paths, or under all folders that are traced; the largest first."""
    tops = [root / path for path in wanted] or [
        root / "tests" / name for name in TRACED if (root / "tests" / name).is_dir()
    ]
    files = [file for top in tops for file in (top.rglob("test_*.py") if top.is_dir() else [top])]
    files = [file for file in dict.fromkeys(files) if file.relative_to(root / "tests").parts[0] in TRACED]
    return [file.relative_to(root).as_posix() for file in sorted(files, key=lambda f: (-f.stat().st_size, f))]


def stale(files: list[str], folder: Path, root: Path = ROOT) -> list[str]:
    """Return the files of tests whose trace is missing or of another state; forget files that are gone."""
    known = {part_of(folder, file) for file in files_of_tests([], root)}
    for path in folder.glob("*.part.json"):
        if path not in known:
            path.unlink()
    return [file for file in files if not is_fresh(part_of(folder, file), file, root)]


def trace(server: Server, file: str, folder: Path, root: Path = ROOT) -> list[str]:
    """Run one file of tests and keep its part; return the tests that fail under the tracer, or the file.

    Where a test fails, the file is run once more: it may have measured seconds on a busy machine.
    """
    return _trace(server, file, folder, root) and _trace(server, file, folder, root)


def _trace(server: Server, file: str, folder: Path, root: Path) -> list[str]:
    work = server.folder / "traced"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    request = {
        "words": [*WORDS, f"--basetemp={work / 'tests'}", file],
        "said": str(work / "said.jsonl"),
        "log": str(work / "log.txt"),
        "environment": {"TMPDIR": str(work)},
        "trace": str(work / "lines.json"),
    }
    ended = server.run(request, {}, _START, _UNKNOWN)
    if not (work / "lines.json").exists():
        where = folder / f"{part_of(folder, file).name.removesuffix('.part.json')}.log"
        shutil.copy2(work / "log.txt", where)
        return [f"{file} (ended with {ended.code}{' hung in ' * bool(ended.hung_in)}{ended.hung_in}; see {where})"]
    keep(work / "lines.json", file, part_of(folder, file), root)
    return [name for word, name, *_ in lines_of(work / "said.jsonl") if word in ("failed", "broken")]
