"""What every test shares: warnings are errors, examples are repeatable, data sets are found or named."""

import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import settings

from orrery.settings import data_folder
from registries import forget_made_up
from seeds import pytest_fixture_setup, pytest_runtest_setup
from tiers import (
    pytest_addoption,
    pytest_collection_modifyitems,
    pytest_configure,
    pytest_ignore_collect,
    pytest_make_collect_report,
    pytest_runtest_protocol,
    pytest_unconfigure,
)

__all__ = [
    "data_set",
    "pytest_addoption",
    "pytest_collection_modifyitems",
    "pytest_configure",
    "pytest_fixture_setup",
    "pytest_ignore_collect",
    "pytest_make_collect_report",
    "pytest_runtest_protocol",
    "pytest_runtest_setup",
    "pytest_unconfigure",
]

# Derandomised: a failure on one machine is a failure on every machine. The slow tier asks for more examples.
settings.register_profile(
    "orrery",
    derandomize=True,
    deadline=None,
    max_examples=int(os.environ.get("ORRERY_TEST_EXAMPLES", "20")),
)
settings.load_profile("orrery")

# Tests of the compiled step ask for it; no other test starts a compiler beside itself, or depends on what it made.
os.environ.setdefault("ORRERY_KERNEL", "eager")

# In the background of a shell Ctrl-C is ignored, and so it would be by the programs that tests interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def data_set() -> Callable[[str], Path]:
    """Return the path of a named data set, or of a file in it; a test whose set is missing is skipped."""

    def find(name: str) -> Path:
        path = data_folder() / name
        if not path.exists():
            pytest.skip(f"needs {path}: set ORRERY_DATA to the folder of the data sets")
        return path

    return find


@pytest.fixture(autouse=True)
def _hints_that_work(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Try every hint that the program shows during a test: its flags are those of the verb, its commands are parsed."""
    program = sys.modules.get("orrery.cli.program")
    shown: list[tuple[Sequence[str], str]] = []
    if program is not None:
        usual = program.report

        def report(error: BaseException, debug: bool = False, words: Sequence[str] = ()) -> int:
            shown.append((words, sys.modules["orrery.cli.console"].judge(error, words).hint))
            return usual(error, debug=debug, words=words)

        monkeypatch.setattr(program, "report", report)
    yield
    if shown:
        from hints import shown_faults

        assert [fault for words, hint in shown for fault in shown_faults(words, hint)] == []


@pytest.fixture(autouse=True)
def _made_up_parts() -> Iterator[None]:
    """Forget the parts and families that a test made known: another test asks the registries what there is."""
    families = sys.modules.get("orrery.families._registry")
    before = {} if families is None else dict(families._registered)
    yield
    forget_made_up()
    if families is not None and before != families._registered:
        families._registered.clear()
        families._registered.update(before)


@pytest.fixture(autouse=True)
def _threads_of_torch() -> Iterator[None]:
    """Keep torch's number of threads: numba's, as they start, set it to all cores, and sums have other last bits then.

    The program sets it back (`orrery.kernels.compiled.set_threads`); a test of a compiled function alone does not.
    """
    torch = sys.modules.get("torch")
    before = 0 if torch is None else torch.get_num_threads()
    yield
    if torch is not None and torch.get_num_threads() != before:
        torch.set_num_threads(before)
