"""A layer that nobody has described is taken apart by its operations, and costs what they cost."""

import random
from dataclasses import replace

import pytest
import torch
from torch import nn

from orrery.inspection.explain.explain import Explainer
from orrery.inspection.explain.recorded_layer import RecordedOperation, _offset, _place_in
from orrery.inspection.operations import OperationWatch
from orrery.inspection.trace import trace
from orrery.planning.rehearsal import operations_of
from tiny_models import smallest

ROW = torch.tensor([[4, 8, 15, 16, 23, 12]])
AT = "blocks.0.feed_forward.added"


class Own(nn.Module):
    """Products, a softmax, a mean, a running sum, moved and repeated channels, a kink, a table and a constant."""

    def __init__(self, width):
        super().__init__()
        self.into, self.out = nn.Linear(width, 6), nn.Linear(12, width, bias=False)
        self.mixing = nn.Parameter(torch.randn(3, 2, 2))
        self.register_buffer("table", torch.rand(6))

    def forward(self, x, ctx):
        h = self.into(x)
        turned = torch.cat([-h[..., 3:], h[..., :3]], -1) * self.table
        mixed = torch.einsum("blhc,hcd->blhd", h.unflatten(-1, (3, 2)), self.mixing).flatten(2)
        weights = torch.softmax(turned.cumsum(1), -1) / (1 + mixed.square().mean(-1, keepdim=True)).sqrt()
        wide = torch.stack([mixed.relu(), weights.roll(1, -1)], -1).transpose(-1, -2).flatten(2)
        return self.out(torch.where(wide > 0.5, wide, 2 * wide))


class WritesOver(nn.Module):
    def forward(self, x, ctx):
        return (x * 2).add_(1)


class Long(nn.Module):
    def forward(self, x, ctx):
        for _ in range(300):
            x = x + 1
        return x


def with_layer(layer):
    model = smallest("gpt2")
    model.stack.blocks[0].feed_forward.branch = layer.double()
    model.eval()
    found = trace(model, ROW)
    return model, found, Explainer(model, found, ROW)


@pytest.fixture(scope="module")
def own():
    torch.manual_seed(0)
    return with_layer(Own(smallest("gpt2").spec.width))


def test_every_number_of_every_operation_follows_from_its_formula(own):
    _, _, explainer = own
    explainer.explain(AT, (0, 0))
    keys = [key for key, node in explainer.numbers.nodes.items() if isinstance(node, RecordedOperation)]
    assert len(keys) > 20
    rng, kinds = random.Random(0), set()
    for key in [AT, *keys]:
        shape = explainer.numbers[key].shape[1:]
        for _ in range(4):
            explained = explainer.explain(key, tuple(rng.randrange(size) for size in shape))
            assert explained.check.value <= 1e-12, explained
            kinds.add(explained.formula.kind)
    assert kinds == {"sum", "function"}


def test_it_leads_to_what_the_layer_reads_and_to_its_weights(own):
    model, found, _ = own
    explainer = Explainer(model, found, ROW)  # a fresh one: keys of operations are known before their layer is asked
    parameters, seen, weights, waiting = dict(model.named_parameters()), set(), set(), [(AT, (4, 3))]
    while waiting:
        key, index = waiting.pop()
        for factor in (one for each in explainer.explain(key, index).formula.terms for one in each.factors):
            if factor.parameter:
                weights.add(factor.parameter.rpartition("branch.")[2])
                assert float(parameters[factor.parameter].detach()[factor.index]) == factor.value
            elif factor.key is not None:
                assert float(explainer.numbers[factor.key][0][factor.index]) == factor.value
                if (factor.key, factor.index) not in seen and factor.key.startswith(AT):
                    waiting.append((factor.key, factor.index))
                seen.add((factor.key, factor.index))
    assert weights == {"into.weight", "into.bias", "out.weight", "mixing"}
    assert "blocks.0.feed_forward.input" in {key for key, _ in seen}
    key, index = next(each for each in seen if each[0].startswith(f"{AT}."))
    again = Explainer(model, found, ROW).explain(key, index)
    assert again.check.value <= 1e-12


def test_terms_of_a_product_are_its_input_times_its_weights(own):
    model, _, explainer = own
    formula = explainer.explain(AT, (4, 3), most=12).formula
    assert (formula.kind, len(formula.terms), formula.others) == ("sum", 12, 0)
    assert formula.text.endswith("[i] · out.weight[i]")
    row = model.stack.blocks[0].feed_forward.branch.out.weight[3]
    for one in formula.terms:
        value, weight = one.factors
        assert weight.value == float(row[weight.index[1]].detach())
        assert one.value == value.value * weight.value


def test_a_number_that_is_not_what_the_layer_makes_fails_its_check(own):
    model, found, _ = own
    broken = replace(found, values={**found.values, AT: found[AT] * 1.001})
    assert not Explainer(model, broken, ROW).explain(AT, (4, 3)).check.passed


def test_its_costs_are_those_of_the_operations_that_explain_it(own):
    model, found, _ = own
    layer, counted = model.stack.blocks[0].feed_forward.branch, []
    with OperationWatch(lambda *each: counted.append(operations_of(*each))), torch.no_grad():
        layer(found["blocks.0.resid_pre"], None)
    tokens, width = ROW.numel(), model.spec.width
    assert sum(counted) == 2 * tokens * (6 * width + 12 * width + 3 * 2 * 2)


@pytest.mark.parametrize("layer", [WritesOver(), Long()], ids=["it writes over a tensor", "it is long"])
def test_what_is_not_taken_apart_is_shown_as_it_is(layer):
    _, found, explainer = with_layer(layer)
    explained = explainer.explain(AT, (4, 3))
    assert explained.formula.kind == "given"
    assert explained.formula.text == f"what {type(layer).__name__} makes of its input"
    assert explained.formula.value == float(found[AT][0, 4, 3])


def test_a_number_of_a_view_is_found_where_it_lies():
    whole = torch.arange(60).view(3, 4, 5)
    for view in (whole[1:, ::2].transpose(0, 2), whole[:, 1, None].expand(3, 7, 5), whole[2, 3]):
        for place in torch.ones(view.shape).nonzero().tolist():
            there = _place_in(whole, _offset(view, tuple(place)))
            assert whole[there] == view[tuple(place)]
    assert _place_in(whole[:, :2], _offset(whole, (0, 3, 0))) is None
