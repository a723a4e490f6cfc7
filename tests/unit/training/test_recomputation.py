"""What is computed again in the backward pass changes no bit of a gradient, and keeps less."""

import copy
from itertools import product

import pytest
import torch
from torch import nn

from orrery.errors import UsageError
from orrery.families import load_family, spec_of
from orrery.models.dropout import with_dropout
from orrery.objectives import OBJECTIVES
from orrery.training.distributed import Alone
from orrery.training.parallel.recomputation import recompute
from orrery.training.precision import Precision
from orrery.training.step import accumulate

FAMILIES = ("gpt2", "llama", "t5", "mixtral", "albert")
PLAIN = Precision("float32", "plain", "cpu", 1)


def built(family: str) -> nn.Module:
    torch.manual_seed(0)
    return with_dropout(spec_of(rules := load_family(family), rules.TINY), 0.2).build().train()


def learned(family: str, model: nn.Module, precision: Precision = PLAIN) -> tuple[dict[str, torch.Tensor], int]:
    """Return the gradients of a step, and the bytes that its forward passes keep."""
    name = {"t5": "seq2seq", "albert": "masked"}.get(family, "causal")
    ids = torch.randint(1, 20, (4, 24), generator=torch.Generator().manual_seed(1))
    batch = {"ids": ids, "targets": ids.roll(-1, 1), "source": ids.flip(0), "token_types": ids % 2}
    objective = OBJECTIVES.find(name)()
    kept: dict[int, int] = {}

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        kept[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        alive.append(tensor)
        return tensor

    alive: list[torch.Tensor] = []
    read = {each: batch[each] for each in {*model.spec.inputs, "targets"}}
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        accumulate(model, objective, read, micro_batch=2, seed=(0, 0), ranks=Alone(), precision=precision)
    return {name: each.grad for name, each in model.named_parameters() if each.grad is not None}, sum(kept.values())


@pytest.mark.parametrize(("family", "what"), [*product(FAMILIES, ["selective", "full"]), ("mamba", "full")])
def test_gradients_are_the_same_bits_and_less_is_kept(family: str, what: str) -> None:
    whole, kept = learned(family, built(family))
    model = built(family)
    recompute(model, what)
    again, fewer = learned(family, model)
    assert whole.keys() == again.keys()
    assert all(torch.equal(whole[name], again[name]) for name in whole)
    assert fewer < kept


def test_a_copy_computes_with_its_own_weights() -> None:
    model = built("llama")
    recompute(model, "full")
    other = copy.deepcopy(model)
    with torch.no_grad():
        for parameter in other.parameters():
            parameter.mul_(0)
    other.train()
    assert learned("llama", other)[0].keys() == learned("llama", built("llama"))[0].keys()
    assert all(not each.grad.any() for name, each in other.named_parameters() if "blocks" in name)


def test_nothing_is_done_where_nothing_is_asked_for() -> None:
    model = built("llama")
    before = model.kernel
    recompute(model, "none")
    assert model.kernel is before
    assert "forward" not in vars(model.stack.blocks[0])


def test_a_model_without_such_a_part_is_refused() -> None:
    for what in ("full", "selective"):
        with pytest.raises(UsageError, match=f"parallel.recompute {what}: the model has no blocks"):
            recompute(nn.Linear(2, 2), what)
    with pytest.raises(UsageError, match=r"parallel.recompute selective: the model has no attention"):
        recompute(built("mamba"), "selective")


@pytest.mark.parametrize("what", ["selective", "full"])
@pytest.mark.parametrize("path", ["plain", "onednn", "autocast"])
def test_it_is_computed_again_by_the_products_of_the_precision(path: str, what: str) -> None:
    precision = Precision("bfloat16" if path == "autocast" else "float32", path, "cpu", 1)
    model = built("llama")
    other = copy.deepcopy(model)
    recompute(other, what, lambda: precision.context())
    expected, found = learned("llama", model, precision)[0], learned("llama", other, precision)[0]
    assert all(torch.equal(expected[name], found[name]) for name in expected)
