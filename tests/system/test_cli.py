"""Every failure looks the same: two lines on stderr, an exit code, no traceback unless asked for."""

import errno
import json
import os
import signal
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pydantic
import pytest

import orrery.cli
import programs
from orrery import errors
from orrery.cli import program, start
from orrery.cli.console import judge, report
from orrery.cli.overview import overview
from orrery.cli.verbs import summary
from programs import ORRERY, PIPE, Program


@pytest.mark.parametrize("words", [(), ("--help",), ("-h",), *((verb, "--help") for verb in program.VERBS)])
def test_help(words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert program.run(words) == 0
    assert "Usage: orrery" in capsys.readouterr().out


def test_help_lists_every_verb_with_its_line(capsys: pytest.CaptureFixture[str]) -> None:
    program.run(["--help"])
    text = capsys.readouterr().out
    assert [name for name in program.VERBS if name not in text or summary(name)[:20] not in text] == []
    titles = [line.strip("╭─╮ ") for line in text.splitlines() if line.startswith("╭─")]
    assert titles == [*dict.fromkeys(verb.group for verb in program.VERBS.values()), "Flags"]


@pytest.mark.parametrize("verb", program.VERBS)
def test_the_environment_is_told_once_a_page(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert program.run([verb, "--help"]) == 0
    page = " ".join(capsys.readouterr().out.split())
    assert "env var" not in page
    assert page.count(f"ORRERY_{verb.upper()}_SOME_FLAG") == page.count("_SOME_FLAG") == 1


@pytest.mark.parametrize("width", [20, 40, 80, 200])
def test_the_list_of_verbs_fits_any_terminal(width: int) -> None:
    rows = [(verb.group, name, summary(name)) for name, verb in program.VERBS.items()]
    assert {len(line) for line in overview(rows, width).splitlines() if line[:1] in "╭│╰" and line} == {
        min(max(width, 40), 120)
    }


def groups() -> dict[str, str]:
    """Return the verbs that have commands of their own: those whose target is called ``app``."""
    return {name: verb.target for name, verb in program.VERBS.items() if verb.target.endswith(":app")}


@pytest.mark.parametrize("name", groups())
def test_help_lists_every_command_of_a_group_with_its_line(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    module, _, attribute = groups()[name].partition(":")
    commands = [command for command in getattr(import_module(module), attribute) if not command.startswith("-")]
    assert commands
    program.run([name, "--help"])
    lines = capsys.readouterr().out.splitlines()
    for command in commands:
        (line,) = [line for line in lines if line.startswith(f"│ {command} ")]
        assert len(line.strip("│ ").removeprefix(command).strip()) > 10, f"{name} {command} has no summary"


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert program.run(["--version"]) == 0
    assert capsys.readouterr().out == "orrery 0.1.0\n"


@pytest.mark.parametrize(
    ("words", "message", "hint"),
    [
        (["inof"], 'Unknown command "inof". Did you mean "info"?', "'orrery --help'"),
        (["info", "--jsn"], "--jsn", "'orrery info --help'"),
        (["info", "surplus"], "surplus", "'orrery info --help'"),
        (["info", "--json=perhaps"], "perhaps", "'orrery info --help'"),
    ],
)
def test_usage_errors(words: list[str], message: str, hint: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert program.run(words) == 2
    error, advice = capsys.readouterr().err.splitlines()
    assert error.startswith("error: ")
    assert message in error
    assert advice.startswith("hint: ")
    assert hint in advice


def test_environment_stands_in_for_a_flag(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("ORRERY_INFO_JSON", "true")
    assert program.run(["info"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["versions"]["torch"]
    assert facts["memory"]["total_mib"]
    assert program.run(["info", "--no-json"]) == 0
    assert not capsys.readouterr().out.startswith("{")


class _Layers(pydantic.BaseModel):
    layers: int
    width: int


def _invalid() -> pydantic.ValidationError:
    with pytest.raises(pydantic.ValidationError) as caught:
        _Layers.model_validate({"layers": "many", "width": 8})
    return caught.value


class OutOfMemoryError(RuntimeError):
    """Stands for torch's, which the judge knows by name."""


FAILURES = [
    (errors.RunError("it broke", "mend it"), 1, "it broke", "mend it"),
    (errors.UsageError("no such recipe", "list them"), 2, "no such recipe", "list them"),
    (errors.DataError("no text", "give some"), 3, "no text", "give some"),
    (errors.ModelFileError("cut\nshort", "fetch\nagain"), 4, "cut short", "fetch again"),
    (errors.MachineError("locked", "wait"), 5, "locked", "wait"),
    (_invalid(), 2, "layers: Input should be a valid integer", "--help"),
    (OSError(errno.ENOSPC, "No space left on device", "runs/a"), 5, "runs/a", "make room"),
    (OSError(errno.EFBIG, "File too large"), 5, "File too large", "make room"),
    (PermissionError(errno.EACCES, "Permission denied", "runs"), 5, "Permission denied: runs", "rights"),
    (OSError(errno.EROFS, "Read-only file system", "runs"), 5, "Read-only", "rights"),
    (MemoryError(), 1, "out of memory", "smaller batch"),
    (OutOfMemoryError("CUDA out of memory"), 1, "out of memory", "smaller batch"),
    (RuntimeError("DefaultCPUAllocator: can't allocate memory"), 1, "out of memory", "smaller batch"),
    (ZeroDivisionError("x / 0"), 1, "unexpected ZeroDivisionError: x / 0", "--debug"),
]


@pytest.mark.parametrize(("error", "code", "message", "hint"), FAILURES, ids=lambda value: type(value).__name__)
def test_failures_are_two_lines_and_a_code(
    error: Exception, code: int, message: str, hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert report(error) == code
    first, second = capsys.readouterr().err.splitlines()
    assert first.startswith("error: ")
    assert message in first
    assert second.startswith("hint: ")
    assert hint in second


def test_an_interrupt_has_its_own_code() -> None:
    assert judge(KeyboardInterrupt()).code == 130


def test_a_real_allocation_failure_is_out_of_memory() -> None:
    import torch

    with pytest.raises(RuntimeError) as caught:
        torch.empty(2**60, dtype=torch.uint8)
    assert judge(caught.value).message.startswith("out of memory")


@pytest.mark.parametrize("words", [["--debug", "info", "--jsn"], ["info", "--jsn", "--debug"]])
def test_debug_anywhere_shows_the_traceback(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert program.run(words) == 2
    assert "Traceback" in capsys.readouterr().err


def test_debug_after_two_dashes_is_text(capsys: pytest.CaptureFixture[str]) -> None:
    assert program.run(["info", "--", "--debug"]) == 2
    assert "Traceback" not in capsys.readouterr().err


def test_a_reader_that_leaves_is_no_noise() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with open(writing, "w") as left:
        result = programs.run([*ORRERY, "info"], stdout=left, stderr=PIPE, text=True)
    assert (result.returncode, result.stderr) == (1, "")


@pytest.mark.parametrize("words", [["info"], ["generate", "--help"]], ids=["at the end", "in the middle"])
def test_a_full_disk_is_a_machine_error(words: list[str]) -> None:
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    with open("/dev/full", "w") as full:
        result = programs.run([*ORRERY, *words], stdout=full, stderr=PIPE, text=True, env=buffered)
    assert result.returncode == 5
    assert result.stderr.startswith("error: No space left on device\nhint: ")
    assert result.stderr.count("\n") == 2


WAITING = """
import time

def wait() -> None:
    print("ready", flush=True)
    time.sleep(60)
"""


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_signals_unwind_and_leave_with_their_code(number: signal.Signals, code: int, tmp_path: Path) -> None:
    (tmp_path / "waiting.py").write_text(WAITING)
    start = (
        f"import sys; sys.path.append({str(tmp_path)!r}); sys.argv = ['orrery', 'wait']\n"
        "from orrery.cli import program, start; program.VERBS['wait'] = program.Verb('waiting:wait', '', '')\n"
        "start.main()"
    )
    with Program([sys.executable, "-c", start], text=True, stdout=PIPE, stderr=PIPE) as process:
        assert process.stdout
        assert process.stdout.readline() == "ready\n"
        process.send_signal(number)
        _, noise = process.communicate(timeout=20)
    assert process.returncode == code
    assert "Traceback" not in noise


def test_module_and_entry_point_are_one_program() -> None:
    command = [sys.executable, "-m", "orrery", "--version"]
    assert subprocess.run(command, capture_output=True, text=True).stdout == "orrery 0.1.0\n"
    assert orrery.cli.main is start.main
