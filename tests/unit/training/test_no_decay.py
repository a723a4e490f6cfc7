"""What weight decay and Muon must leave alone, though it has two axes: each brick says it beside itself."""

import re
from typing import Any

import pytest
import torch
from torch import nn

from orrery.errors import ModelFileError, UsageError
from orrery.families import load_family, names, spec_of
from orrery.models.meta_device import build_on_meta
from orrery.nn.linear.block_diagonal import BlockDiagonal
from orrery.recipes.config import AdamWSettings, MuonSettings, SgdSettings
from orrery.training.optimizers import build_optimizer, restore_optimizer, undecayed
from orrery.training.state import Learner
from orrery.tuning import from_json
from tiny_models import smallest

RATES = r"(a_log|skip|fading_log|frequency|low_rank|step_log|step_bias|step_up\.weight|step_size\.weight|forget.*)"
FILTERS = r"(read|write|convolution\.weight|short\.weight)"
STATE_SPACES = ("mamba", "mamba2", "falcon_mamba", "jamba", "bimamba", "s4", "s4d", "hyena", "gated_deltanet")
MATRICES = {
    nn.Linear: ("weight",),
    nn.Embedding: ("weight",),
    nn.Conv1d: ("weight",),
    nn.Conv2d: ("weight",),
    nn.RNN: (),
    nn.GRU: (),
    nn.LSTM: (),
    BlockDiagonal: ("weight",),
}
"""Whose parameters of two axes multiply vectors, and their names where these are not all."""
ADAPTERS = {
    "lora": ({"kind": "lora", "targets": ["*"], "leave": ["head.*", "*.router.*"]}, r"lora_[ab]$"),
    "prefix": ({"kind": "prefix", "tokens": 2}, r"prefix_[kv]$"),
}


def after_a_step_without_gradients(model: nn.Module, settings: Any) -> set[str]:
    """Return the names of the parameters that decay changed."""
    before = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}
    optimizer = build_optimizer(model, settings)
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter) if parameter.requires_grad else None
    optimizer.step()
    return {name for name, parameter in model.named_parameters() if not torch.equal(parameter.detach(), before[name])}


@pytest.mark.parametrize(
    "settings",
    [
        AdamWSettings(rate=0.1, weight_decay=0.5),
        MuonSettings(rate=0.1, weight_decay=0.5),
        SgdSettings(rate=0.1, weight_decay=0.5),
    ],
    ids=lambda settings: settings.kind,
)
@pytest.mark.parametrize("family", STATE_SPACES)
def test_nothing_pulls_the_rates_and_filters_of_a_state_space(family: str, settings: Any) -> None:
    model = smallest(family, torch.float32)
    kept = {name for name, parameter in model.named_parameters() if id(parameter) in undecayed(model)}
    every = [name for name, _ in model.named_parameters()]
    assert kept
    assert {
        name for name in every if re.search(r"\.(a_log|skip|fading_log|frequency|convolution\.weight)$", name)
    } <= kept
    assert all(re.search(rf"\.({RATES}|{FILTERS})", name) for name in kept)
    changed = after_a_step_without_gradients(model, settings)
    assert not changed & kept
    wide = {name for name, parameter in model.named_parameters() if parameter.ndim >= 2}
    assert changed == wide - kept


@pytest.mark.parametrize("family", STATE_SPACES)
def test_muon_makes_matrices_orthogonal_and_nothing_else(family: str) -> None:
    model = smallest(family, torch.float32)
    optimizer = build_optimizer(model, MuonSettings(rate=0.1))
    chosen = {id(one) for group in optimizer.param_groups if group.get("orthogonal") for one in group["params"]}
    assert chosen
    assert not chosen & undecayed(model)


@pytest.mark.parametrize(
    "settings", [AdamWSettings(rate=0.1, weight_decay=0.5), SgdSettings(rate=0.1, weight_decay=0.5)]
)
@pytest.mark.parametrize("adapter", ADAPTERS)
@pytest.mark.parametrize("family", ["llama", "gpt2", "gpt_neox", "bloom"])
def test_nothing_pulls_the_factors_of_an_adapter(family: str, adapter: str, settings: Any) -> None:
    values, own = ADAPTERS[adapter]
    (transform,) = from_json([values])
    model = transform.apply(smallest(family, torch.float32), 1)
    learned = [name for name, parameter in model.named_parameters() if parameter.requires_grad]
    assert learned
    assert all(re.search(own, name) for name in learned)
    assert after_a_step_without_gradients(model, settings) == set()
    with pytest.raises(UsageError, match="no block has a matrix to learn") as fault:
        build_optimizer(model, MuonSettings(rate=0.1))
    assert "adamw" in fault.value.hint


@pytest.mark.parametrize("family", names())
def test_every_parameter_of_two_axes_is_a_matrix_or_says_that_it_is_none(family: str) -> None:
    rules = load_family(family)
    model = build_on_meta(spec_of(rules, rules.TINY))
    kept = undecayed(model)
    for path, part in model.named_modules():
        for name, parameter in part.named_parameters(recurse=False):
            if parameter.ndim < 2 or not parameter.requires_grad or id(parameter) in kept:
                continue
            known = next((told for kind, told in MATRICES.items() if isinstance(part, kind)), None)
            assert known is not None, f"{path}.{name}: list it in {type(part).__name__}.no_decay, or here"
            assert not known or name in known


def test_a_model_and_what_its_objective_owns_are_one() -> None:
    model = smallest("mamba", torch.float32)
    learner = Learner(model, nn.ModuleDict({"value": nn.Linear(4, 1)}))
    assert undecayed(learner) == undecayed(model)


def test_a_state_that_was_learned_by_another_rule_is_refused() -> None:
    model = smallest("mamba", torch.float32)
    name = next(name for name, _ in model.named_parameters() if name.endswith("a_log"))
    optimizer = build_optimizer(model, MuonSettings(rate=0.1))
    old = {f"momentum_buffer/{name}": torch.zeros_like(model.get_parameter(name))}
    with pytest.raises(ModelFileError, match="by another rule: another version began the run") as fault:
        restore_optimizer(model, optimizer, old)
    assert "--output" in fault.value.hint


def test_a_part_that_lists_what_it_lacks_is_told() -> None:
    class Part(nn.Module):
        no_decay = ("nothing",)

    with pytest.raises(AttributeError, match="nothing"):
        undecayed(Part())
