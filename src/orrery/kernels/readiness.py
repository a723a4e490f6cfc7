"""Whether the compiled step can run here, and whether its machine code is at hand; nothing of numba is imported."""

import hashlib
import os
import platform
import subprocess
import sys
import time
from functools import lru_cache
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from orrery.kernels.compiled import has_openmp
from orrery.settings import cache_folder, install, step_kernel

READY, BUILDING = "ready", "building"
"""The files that stand in the folder of the machine code once all of it is there, and while a process makes it."""

PATIENCE = 600
"""Seconds after which a process that makes it is taken for dead."""

_STARTED: list["subprocess.Popen[bytes]"] = []
"""What builds it: nobody waits for it, and Python warns of a process that is let go while it runs."""


def why_not_here() -> str | None:
    """Return why no step can be compiled here, or nothing."""
    if find_spec("numba") is None:
        return f"numba is not installed: {install('fast')}"
    if not has_openmp():
        return "this build of numba has no OpenMP layer, the only one that several threads may enter"
    return None


@lru_cache(maxsize=1)
def machine_code_folder() -> Path:
    """Return the folder of the machine code of exactly these sources in this place, this compiler and this processor.

    numba looks at the file of a function alone, and not at those that it was compiled with.
    """
    digest = hashlib.sha256(" ".join((version("numba"), version("llvmlite"), platform.python_version())).encode())
    digest.update(_processor().encode())
    here = Path(__file__).parent
    digest.update(bytes(here))
    for source in (
        *sorted((here / "step").glob("*.py")),
        here / "quantised.py",
        here / "blocks.py",
        here / "block_kinds.py",
        here / "block_products.py",
        here / "prefetch.py",
        here / "compiled.py",
    ):
        digest.update(source.read_bytes())
    return cache_folder() / "numba" / f"step-{digest.hexdigest()[:16]}"


def _processor() -> str:
    """Return what the processor can do, where the system says so."""
    facts = Path("/proc/cpuinfo")
    if not facts.is_file():
        return platform.processor()
    lines = facts.read_text(encoding="utf-8", errors="replace").splitlines()
    return next((line for line in lines if line.startswith(("flags", "Features"))), platform.processor())


def ready() -> bool:
    """Return whether the step can be loaded without compiling anything."""
    return (machine_code_folder() / READY).is_file()


@lru_cache(maxsize=1)
def at_hand() -> bool:
    """Return whether compiled products may be used, decided once a program, so that all its numbers come in one way.

    As ``ORRERY_KERNEL`` says; by default where the machine code is there, so that nobody waits for a compiler. Where it
    is not, it is made for the next program.
    """
    kernel = step_kernel()
    if kernel == "eager" or why_not_here() is not None:
        return False
    if kernel == "compiled" or ready():
        return True
    build_beside()
    return False


def build_beside() -> None:
    """Compile all of it in a process of its own, of low priority, for the next program that asks."""
    folder = machine_code_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        mark = folder / BUILDING
        if mark.exists() and time.time() - mark.stat().st_mtime > PATIENCE:
            mark.unlink(missing_ok=True)
        os.close(os.open(mark, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
    except OSError:
        return  # another program builds it, or nothing can be kept here
    process = subprocess.Popen(
        [sys.executable, "-m", "orrery.kernels.step.build"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    _STARTED.append(process)
