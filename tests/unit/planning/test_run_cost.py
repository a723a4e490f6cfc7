"""Out of memory, said before it happens: by the plan of a run with what fits, and before a first step."""

from dataclasses import replace

import pytest
import torch
from torch import nn

from orrery.errors import RunError
from orrery.planning.run_cost import RunCost
from orrery.planning.whole_step import GAPS
from orrery.training import memory
from orrery.training.memory import learnt_bytes, refuse_too_large

COST = RunCost(step=1e9, all=1e12, at_once=8, fixed=4_000, lasting=3_000, kept=8_000, free=10**9)


def test_what_fits_says_how_much_is_taken():
    assert COST.needed == 3_000 + (1 + GAPS) * 8_000
    assert COST.fitting_rows == 8
    assert [name for name, _ in COST.free_lines()] == ["free memory"]


def test_what_does_not_fit_names_the_rows_that_do():
    tight = replace(COST, free=3_000 + round((1 + GAPS) * 3_500))
    assert tight.fitting_rows == 3
    assert tight.free_lines()[1] == ("too large", "training.micro_batch 3 fits, with the same result")
    assert replace(tight, at_once=3, kept=3_000).needed <= tight.free


def test_where_no_row_fits_the_model_must_shrink():
    name, value = replace(COST, free=2_000).free_lines()[1]
    assert name == "too large"
    assert "smaller model" in value


def test_a_system_that_does_not_say_prints_nothing():
    assert replace(COST, free=None).free_lines() == []
    assert replace(COST, free=None).fitting_rows == 8


def test_a_run_is_refused_before_its_first_step(monkeypatch):
    model = nn.Sequential(nn.Linear(10, 10, bias=False), nn.Linear(10, 10, bias=False))
    model[0].weight.requires_grad_(False)
    assert learnt_bytes(model) == 400
    monkeypatch.setattr(memory, "free_bytes", lambda device: 1_200)
    refuse_too_large(model, "adamw", "cpu")  # gradient and two numbers of each weight that learns
    monkeypatch.setattr(memory, "free_bytes", lambda device: 1_199)
    refuse_too_large(model, "sgd", "cpu")
    with pytest.raises(RunError, match="before the first step: gradients and adamw need"):
        refuse_too_large(model, "adamw", "cpu")


def test_free_memory_is_that_of_the_system():
    free = memory.free_bytes()
    assert free is None or 0 < free < 2**50
    assert torch.cuda.is_available() or memory.MEMINFO.exists() == (free is not None)


def test_a_container_may_have_less_than_the_machine(monkeypatch, tmp_path):
    machine = "MemTotal: 9000 kB\nMemAvailable: 4000 kB\n"
    (tmp_path / "meminfo").write_text(machine)
    monkeypatch.setattr(memory, "MEMINFO", tmp_path / "meminfo")
    monkeypatch.setattr(memory, "CONTAINER", tmp_path)
    assert memory.free_bytes() == 4000 * 1024
    for name, text in (
        ("max", "max\n"),
        ("current", "1000000\n"),
        ("stat", "anon 600000\ninactive_file 300000\nactive_file 100000\n"),
    ):
        (tmp_path / f"memory.{name}").write_text(text)
    assert memory.free_bytes() == 4000 * 1024
    (tmp_path / "memory.max").write_text("2000000\n")
    assert memory.free_bytes() == 1_400_000
    (tmp_path / "memory.max").write_text("90000000\n")
    assert memory.free_bytes() == 4000 * 1024
