"""Muon: its matrices beside torch's own and a singular value decomposition, and AdamW for all other parameters."""

import pytest
import torch

from orrery.errors import UsageError
from orrery.training.muon import Muon, orthogonal
from orrery.training.optimizers import build_optimizer, optimizer_tensors, restore_optimizer
from tiny_models import tiny
from training_toy import toy_model, toy_recipe


def settings(kind="muon"):
    given = {"kind": kind, "rate": 0.02, "weight_decay": 0.1, "betas": [0.8, 0.9]}
    return toy_recipe(training__optimizer=given).training.optimizer


def draw(parameters, rng):
    for parameter in parameters:
        parameter.grad = torch.randn(parameter.shape, generator=rng, dtype=parameter.dtype)


@pytest.mark.parametrize("shape", [(3, 8, 8), (2, 6, 20), (2, 20, 6), (1, 1, 5), (1, 7, 1)])
def test_every_singular_value_ends_near_one_and_the_vectors_stay(shape):
    given = torch.randn(shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    u, values, v = torch.linalg.svd(given, full_matrices=False)
    kept = values > values.amax(-1, keepdim=True) / 100
    turned = u.mT @ orthogonal(given) @ v.mT
    diagonal = turned.diagonal(dim1=-2, dim2=-1)
    assert (turned - torch.diag_embed(diagonal)).abs().max() < 1e-12
    assert ((diagonal > 0.65) & (diagonal < 1.25))[kept].all()


def test_in_the_precision_of_a_bfloat16_run_the_products_are_narrow_and_the_weights_stay_wide():
    given = torch.randn(2, 16, 40, generator=torch.Generator().manual_seed(4))
    weight = torch.nn.Parameter(given[0].clone())
    optimizer = Muon([{"params": [weight], "orthogonal": True, "weight_decay": 0.0}], lr=0.1)
    weight.grad = given[1].clone()
    with torch.autocast("cpu", torch.bfloat16):
        turned = orthogonal(given)
        optimizer.step()
    assert turned.dtype == torch.bfloat16
    assert weight.dtype == torch.float32
    values = torch.linalg.svdvals(turned.float())
    assert ((values > 0.6) & (values < 1.3)).all()
    torch.testing.assert_close(turned.float(), orthogonal(given), atol=0.05, rtol=0)


def test_the_size_of_a_gradient_does_not_count_and_nothing_stays_nothing():
    given = torch.randn(2, 5, 9, dtype=torch.float64)
    torch.testing.assert_close(orthogonal(given), orthogonal(1e4 * given), rtol=1e-12, atol=1e-12)
    assert orthogonal(torch.zeros(1, 4, 4)).eq(0).all()


def test_matrices_step_as_those_of_torch(monkeypatch):
    """torch casts to bfloat16 before it orthogonalises; here it is kept from that, so that both compute alike."""
    monkeypatch.setattr(torch.Tensor, "bfloat16", lambda tensor: tensor)
    rng = torch.Generator().manual_seed(2)
    shapes = ((12, 30), (30, 12), (12, 30), (16, 16))
    ours = [torch.nn.Parameter(torch.randn(shape, generator=rng, dtype=torch.float64)) for shape in shapes]
    theirs = [torch.nn.Parameter(parameter.detach().clone()) for parameter in ours]
    one = Muon([{"params": ours, "orthogonal": True, "weight_decay": 0.1}], lr=0.05, momentum=0.9)
    other = torch.optim.Muon(theirs, lr=0.05, weight_decay=0.1, momentum=0.9, adjust_lr_fn="match_rms_adamw")
    for _ in range(4):
        draw(ours, rng)
        for parameter, same in zip(ours, theirs, strict=True):
            same.grad = parameter.grad.clone()
        one.step()
        other.step()
    for parameter, same in zip(ours, theirs, strict=True):
        torch.testing.assert_close(parameter, same, rtol=1e-10, atol=1e-12)


def test_only_matrices_of_blocks_are_made_orthogonal_and_the_rest_is_adamw_to_the_byte():
    ours, theirs = tiny("gpt2", torch.float32), tiny("gpt2", torch.float32)
    optimizer, adamw = build_optimizer(ours, settings()), build_optimizer(theirs, settings(kind="adamw"))
    chosen = {
        id(parameter) for group in optimizer.param_groups if group.get("orthogonal") for parameter in group["params"]
    }
    names = {name for name, parameter in ours.named_parameters() if id(parameter) in chosen}
    assert names == {name for name, parameter in ours.named_parameters() if parameter.ndim == 2 and ".blocks." in name}
    rng = torch.Generator().manual_seed(3)
    for _ in range(3):
        draw(ours.parameters(), rng)
        for one, other in zip(ours.parameters(), theirs.parameters(), strict=True):
            other.grad = one.grad.clone()
        optimizer.step()
        adamw.step()
    for (name, one), other in zip(ours.named_parameters(), theirs.parameters(), strict=True):
        assert torch.equal(one, other) == (name not in names)


def test_a_model_without_blocks_is_refused():
    with pytest.raises(UsageError, match="muon: no block has a matrix to learn"):
        build_optimizer(toy_model(), settings())


def test_it_goes_on_byte_for_byte_from_its_saved_state():
    first, second = tiny("gpt2", torch.float32), tiny("gpt2", torch.float32)
    rng = torch.Generator().manual_seed(4)
    optimizer = build_optimizer(first, settings())
    draw(first.parameters(), rng)
    optimizer.step()
    second.load_state_dict(first.state_dict())
    other = build_optimizer(second, settings())
    restore_optimizer(second, other, {key: x.clone() for key, x in optimizer_tensors(first, optimizer).items()})
    draw(first.parameters(), rng)
    for one, two in zip(first.parameters(), second.parameters(), strict=True):
        two.grad = one.grad.clone()
    optimizer.step()
    other.step()
    assert all(torch.equal(one, two) for one, two in zip(first.parameters(), second.parameters(), strict=True))
