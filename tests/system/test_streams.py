"""Encodings, widths and closed streams, each in a process of its own; the slow battery has more of them."""

import os
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

import programs
from orrery.text.train import train_tokenizer
from programs import CLOSED, ORRERY, PIPE

SHOW = ("tokenizer", "show", "tokenizer", "äöü 日本 🙂")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    train_tokenizer("byte_bpe", ["äöü 日本 🙂 low"] * 3, 270).save(tmp_path / "tokenizer")
    return tmp_path


def start(folder: Path, words: tuple[str, ...], out: Any = PIPE, **environment: str) -> CompletedProcess:
    given = {"cwd": folder, "env": {**os.environ, **environment}, "text": True, "errors": "replace"}
    return programs.run([*ORRERY, *words], stdout=out, stderr=PIPE, **given)


@pytest.mark.parametrize("encoding", ["ascii", "ascii:strict", "latin-1"])
def test_an_encoding_that_lacks_characters_gets_them_escaped(encoding: str, folder: Path) -> None:
    done = start(folder, SHOW, PYTHONIOENCODING=encoding)
    assert (done.returncode, done.stderr) == (0, "")
    assert "12 characters" in done.stdout or "8 characters" in done.stdout


def test_a_terminal_without_columns(folder: Path) -> None:
    done = start(folder, ("generate", "--help"), COLUMNS="0", FORCE_COLOR="1")
    assert (done.returncode, done.stderr) == (0, "")
    assert "--max-new-tokens" in done.stdout


def test_output_that_is_closed_is_named(folder: Path) -> None:
    done = start(folder, SHOW, CLOSED)
    assert done.returncode == 5
    assert done.stderr.splitlines()[0] == "error: standard output is closed"
    assert done.stderr.splitlines()[1].startswith("hint: ")


def test_a_runs_folder_that_is_a_file(folder: Path) -> None:
    (folder / "runs").write_text("mine")
    done = start(folder, ("lab", "bottleneck", "--quick", "--seeds", "0"), ORRERY_RUNS="runs")
    assert done.returncode in (2, 5)
    assert "runs" in done.stderr.splitlines()[0]
    assert (folder / "runs").read_text() == "mine"
