import pytest
import torch
from torch import nn

from orrery.data.batches.seeds import derive_seed
from orrery.errors import ModelFileError
from orrery.objectives.causal import CausalLanguageModel
from orrery.training.optimizers import build_optimizer, optimizer_tensors, restore_optimizer
from orrery.training.randomness import restore_rng, rng_state
from orrery.training.state import load_model_tensors, model_tensors
from training_toy import ToySource, toy_model, toy_recipe

KINDS = [
    {"kind": "sgd", "rate": 0.1},
    {"kind": "sgd", "rate": 0.1, "momentum": 0.9, "weight_decay": 0.01},
    {"kind": "adam", "rate": 0.01},
    {"kind": "adamw", "rate": 0.01, "weight_decay": 0.2},
]


def step(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    optimizer.zero_grad()
    CausalLanguageModel().loss(model, ToySource().batch(0))["next_token"].sum.backward()
    optimizer.step()


@pytest.mark.parametrize("settings", KINDS)
def test_a_restored_optimizer_goes_on_byte_for_byte(settings: dict) -> None:
    recipe = toy_recipe(training__optimizer=settings).training.optimizer
    first, second = toy_model(dropout=0.0), toy_model(seed=1, dropout=0.0)
    optimizer = build_optimizer(first, recipe)
    step(first, optimizer)
    load_model_tensors(second, model_tensors(first))
    other = build_optimizer(second, recipe)
    saved = {name: tensor.clone() for name, tensor in optimizer_tensors(first, optimizer).items()}
    restore_optimizer(second, other, saved)
    step(first, optimizer)
    step(second, other)
    assert all(torch.equal(a, b) for a, b in zip(first.parameters(), second.parameters(), strict=True))


def test_weight_decay_reaches_matrices_only() -> None:
    model = toy_model()
    optimizer = build_optimizer(model, toy_recipe(training__optimizer=KINDS[3]).training.optimizer)
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    before = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}
    optimizer.step()
    for name, parameter in model.named_parameters():
        expected = before[name] * (1 - 0.01 * 0.2) if parameter.ndim == 2 else before[name]
        torch.testing.assert_close(parameter.detach(), expected)


def test_foreign_state_and_weights_are_named() -> None:
    model = toy_model()
    optimizer = build_optimizer(model, toy_recipe().training.optimizer)
    with pytest.raises(ModelFileError, match=r"other\.weight"):
        restore_optimizer(model, optimizer, {"exp_avg/other.weight": torch.zeros(1)})
    tensors = model_tensors(model)
    del tensors["mix.bias"]
    with pytest.raises(ModelFileError, match=r"1 missing: mix\.bias; 1 of another shape or dtype: norm\.weight"):
        load_model_tensors(model, {**tensors, "norm.weight": torch.zeros(3)})


def test_tied_weights_are_kept_once() -> None:
    assert "embedding.weight" in model_tensors(toy_model())
    assert "head.weight" not in model_tensors(toy_model())


def test_generators_continue_from_their_saved_state() -> None:
    import json
    import random

    import numpy as np

    state = json.loads(json.dumps(rng_state()))
    draw = lambda: (torch.rand(3).tolist(), random.random(), np.random.rand(2).tolist())  # noqa: E731
    first = draw()
    restore_rng(state)
    assert draw() == first


def test_seeds_of_places_differ() -> None:
    places = [(seed, "dropout", step, row) for seed in range(3) for step in range(20) for row in range(5)]
    assert len({derive_seed(*place) for place in places}) == len(places)
