import pytest
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from orrery.training.machine_rates import matmul_rate, timings
from orrery.training.operations import matmul_parameters, training_operations_per_token
from training_toy import ToySource, toy_model


def test_six_operations_a_weight_is_what_torch_counts() -> None:
    model, batch = toy_model(), ToySource().batch(0)
    with FlopCounterMode(display=False) as counter:
        model.logits(batch["ids"]).sum().backward()
    tokens = batch["ids"].numel()
    expected = training_operations_per_token(matmul_parameters(model), (), 0, 8) * tokens
    assert counter.get_total_flops() == expected


def test_a_table_that_is_only_looked_up_is_not_counted() -> None:
    model = nn.Sequential(nn.Embedding(100, 8), nn.Linear(8, 5))
    assert matmul_parameters(model) == 40
    assert matmul_parameters(toy_model()) == 17 * 16 + 16 * 16


def test_the_matmul_rate_is_a_rate() -> None:
    assert matmul_rate(torch.float32, size=64, seconds=0.01) > 1e6


@pytest.mark.parametrize(("seconds", "best"), [(0.0, 4.0), (3.0, 4.0), (7.0, 2.0), (100.0, 1.0)])
def test_the_matmul_rate_is_that_of_the_best_product_within_the_seconds(monkeypatch, seconds: float, best: float):
    taken, now, calls = iter((4.0, 2.0, 3.0, 1.0, *(5.0 for _ in range(100)))), [10.0], [0]

    def clock() -> float:
        """Read for the start and for the end of each product, which takes time."""
        calls[0] += 1
        if calls[0] % 2 == 0:
            now[0] += next(taken)
        return now[0]

    monkeypatch.setattr("orrery.training.machine_rates.perf_counter", clock)
    assert matmul_rate(torch.float32, size=4, seconds=seconds) == 2 * 4**3 / best


def test_several_calls_are_timed_as_one_as_often_and_as_long_as_is_asked():
    ran, times = [], iter((0.0, 6.0, 10.0, 12.0, 20.0, 23.0, 30.0, 39.0))
    assert timings(lambda: ran.append(1), least=2, calls=3, clock=times.__next__) == [2.0, 2 / 3]
    assert len(ran) == 6
    assert timings(lambda: ran.append(1), seconds=4.0, clock=times.__next__) == [3.0, 9.0]
    assert len(ran) == 8
