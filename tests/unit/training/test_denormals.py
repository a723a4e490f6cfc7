"""Numbers below the least normal one: zero while a model learns, and as they were afterwards."""

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

import programs
from orrery.recipes.config import Recipe
from orrery.recipes.parallel import ParallelSettings
from orrery.runs import execute as executing
from orrery.training.denormals import are_zero, denormals_as_zero
from orrery.training.progress import Silent
from stand_ins import stand_in

PROGRAM = """
import torch
from orrery.recipes.config import Recipe
from orrery.recipes.parallel import ParallelSettings
from orrery.training.denormals import denormals_as_zero
torch.set_num_threads(2)
with denormals_as_zero():
    many = torch.full((1_000_000,), 1e-30)
    products = many * 1e-10
print(int(torch.count_nonzero(products.view(torch.int32))), int(torch.count_nonzero(many)))
"""


def test_they_are_zero_inside_and_as_before_behind_it() -> None:
    assert not are_zero()
    with denormals_as_zero():
        assert are_zero()
        assert (torch.tensor([1e-30]) * 1e-10).view(torch.int32).item() == 0
        assert (torch.tensor([1e-37]) * 0.5).item() > 0
        with denormals_as_zero():
            pass
        assert are_zero()
    assert not are_zero()
    assert (torch.tensor([1e-30]) * 1e-10).item() != 0


def test_a_setting_of_the_callers_own_stays() -> None:
    torch.set_flush_denormal(True)
    try:
        with denormals_as_zero():
            assert are_zero()
        assert are_zero()
    finally:
        torch.set_flush_denormal(False)


def test_threads_that_are_started_inside_have_it_too() -> None:
    told = programs.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True)
    assert told.stdout.split() == ["0", "1000000"], told


def test_a_run_is_executed_with_them_as_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def ranks(device: str, degrees: ParallelSettings) -> None:
        seen.append(are_zero())
        raise InterruptedError

    monkeypatch.setattr(executing, "find_ranks", ranks)
    recipe = stand_in(
        Recipe,
        training=SimpleNamespace(device="cpu"),
        parallel=ParallelSettings(),
        batches=SimpleNamespace(size=1),
    )
    reporter = Silent()
    with pytest.raises(InterruptedError):
        executing.execute(recipe, Path("run"), reporter, resume=False, overwrite=False)
    assert seen == [True]
    assert not are_zero()
