import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from orrery.accounting.flops import matmul_parameters, matmul_rate, training_operations_per_token
from training_toy import ToySource, toy_model


def test_six_operations_a_weight_is_what_torch_counts() -> None:
    model, batch = toy_model(), ToySource().batch(0)
    with FlopCounterMode(display=False) as counter:
        model.logits(batch["ids"]).sum().backward()
    tokens = batch["ids"].numel()
    expected = training_operations_per_token(matmul_parameters(model), 0, 0, 8) * tokens
    assert counter.get_total_flops() == expected


def test_a_table_that_is_only_looked_up_is_not_counted() -> None:
    model = nn.Sequential(nn.Embedding(100, 8), nn.Linear(8, 5))
    assert matmul_parameters(model) == 40
    assert matmul_parameters(toy_model()) == 17 * 16 + 16 * 16


def test_the_matmul_rate_is_a_rate() -> None:
    assert matmul_rate(torch.float32, size=64, seconds=0.01) > 1e6
