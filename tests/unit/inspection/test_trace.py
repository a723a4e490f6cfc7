import dataclasses
import inspect
from collections.abc import Mapping

import pytest
import torch

from orrery.errors import UsageError
from orrery.inspection.attribution.edges import edge_shares
from orrery.inspection.attribution.gradients import gradient_times_input, integrated_gradients, saliency
from orrery.inspection.attribution.head_roles import roles_of
from orrery.inspection.attribution.lens import logit_lens
from orrery.inspection.attribution.logit_attribution import attribute_logit
from orrery.inspection.attribution.neurons import top_neurons
from orrery.inspection.attribution.parts import parts_of
from orrery.inspection.checks import Check
from orrery.inspection.recorder import Recorder
from orrery.inspection.trace import Trace, trace
from orrery.nn.attention.kernels import eager
from tiny_models import tiny

IDS = torch.randint(0, 250, (2, 11), generator=torch.Generator().manual_seed(0))


@pytest.fixture(scope="module", params=["gpt2", "llama"])
def model(request):
    return tiny(request.param)


def nothing(value, key):
    return value * 0


def checks(traced):
    return {check.name: check for check in traced.checks}


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("family", ["gpt2", "llama"])
def test_every_check_holds(family, dtype):
    traced = trace(tiny(family, dtype), IDS)
    assert len(traced.checks) == 3
    assert all(check.passed for check in traced.checks), traced.checks


def test_derived_patterns_are_those_of_the_eager_kernel(model):
    recorder = Recorder()
    model.logits(IDS, kernel=eager, taps=recorder)
    traced = trace(model, IDS)
    assert list(traced) == list(recorder.values)
    for key, value in recorder.values.items():
        torch.testing.assert_close(traced[key], value.detach(), rtol=0, atol=1e-9)


def test_patterns_under_padding(model):
    real = torch.arange(11) < torch.tensor([[11], [6]])
    traced = trace(model, IDS, real=real)
    pattern = traced["blocks.1.attention.pattern"]
    assert pattern[1, :, :, 6:].abs().max() == 0
    assert traced.checks[0].passed


def test_an_edit_acts_and_the_rest_of_the_stream_follows(model):
    plain = trace(model, IDS)
    traced = trace(model, IDS, edit={"blocks.1.feed_forward.added": nothing})
    assert torch.equal(traced["blocks.1.resid_post"], plain["blocks.1.attention.resid"])
    assert torch.equal(traced["blocks.0.resid_post"], plain["blocks.0.resid_post"])
    assert not torch.equal(traced.logits, plain.logits)
    assert traced.notes == []


def test_an_edit_of_a_pattern_runs_the_eager_kernel_and_says_so(model):
    traced = trace(model, IDS, edit={"blocks.*.attention.pattern": nothing})
    assert "eager" in traced.notes[0]
    assert all(traced[f"blocks.{i}.attention.mixed"].abs().max() == 0 for i in range(2))
    assert all(check.passed for check in traced.checks)


def test_an_edit_that_changes_nothing_changes_nothing(model):
    traced = trace(model, IDS, edit={"blocks.0.attention.scores": lambda x, key: x})
    torch.testing.assert_close(traced.logits, trace(model, IDS).logits, rtol=0, atol=1e-9)


def test_an_edited_stream_has_no_sum_of_parts(model):
    traced = trace(model, IDS, edit={"blocks.0.resid_post": lambda x, key: 2 * x})
    assert "stream" in traced.notes[0]
    assert "embeddings and additions sum to the stream" not in checks(traced)


def test_a_broken_kernel_is_caught(model, monkeypatch):
    from orrery.inspection import trace as module

    right = module.sdpa
    monkeypatch.setattr(module, "sdpa", lambda *args, **kwargs: right(*args, **kwargs) * 1.001)
    assert not checks(trace(model, IDS))["patterns times values are the kernel's output"].passed


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"keep": ["blocks.9.*"]}, "nothing is called 'blocks.9"),
        ({"edit": {"blocks.*.attention.patern": lambda x, key: x}}, "nothing is called .*patern"),
        ({"edit": {"embedded": lambda x, key: x[:1]}}, "edit of embedded returned"),
        ({"edit": {"embedded": lambda x, key: x.half()}}, "edit of embedded returned"),
    ],
)
def test_patterns_without_a_tensor_and_edits_that_do_not_fit_are_refused(model, arguments, says):
    with pytest.raises(UsageError, match=says):
        trace(model, IDS, **arguments)


def test_a_key_that_is_not_there_names_its_neighbours(model):
    with pytest.raises(UsageError, match=r"nothing is called 'blocks\.0\.attention\.patern'") as error:
        trace(model, IDS)["blocks.0.attention.patern"]
    assert "blocks.0.attention.pattern" in error.value.hint


def test_a_recorder_serves_one_call(model):
    recorder = Recorder(keep=("*.q",))
    model.logits(IDS, taps=recorder)
    assert list(recorder.values) == ["blocks.0.attention.q", "blocks.1.attention.q"]
    with pytest.raises(UsageError, match="twice"):
        model.logits(IDS, taps=recorder)


DELEGATED = {
    "lens": (logit_lens, ()),
    "parts": (parts_of, ()),
    "logit_attribution": (attribute_logit, ()),
    "head_roles": (roles_of, ()),
    "neurons": (top_neurons, (0,)),
    "edge_shares": (edge_shares, ("blocks.0.attention",)),
    "saliency": (saliency, ()),
    "gradient_times_input": (gradient_times_input, ()),
    "integrated_gradients": (integrated_gradients, ()),
}


def alike(one, other):
    """Say whether two results hold the same, part by part."""
    if isinstance(one, torch.Tensor):
        return torch.equal(one.nan_to_num(), other.nan_to_num())
    if dataclasses.is_dataclass(one):
        return all(alike(value, getattr(other, name)) for name, value in vars(one).items())
    if isinstance(one, Mapping):
        return one.keys() == other.keys() and all(alike(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(alike, one, other))
    return one == other or type(one).__module__.startswith("orrery.")


@pytest.mark.parametrize("method", DELEGATED)
def test_a_method_and_the_function_behind_it_have_the_same_defaults(method):
    def defaults(function):
        parameters = inspect.signature(function).parameters.values()
        return {p.name: p.default for p in parameters if p.default is not p.empty}

    behind, needed = DELEGATED[method]
    assert defaults(getattr(Trace, method)) == defaults(behind)
    traced = trace(tiny("gpt2"), IDS[:1, :6])
    assert alike(getattr(traced, method)(*needed), behind(traced, *needed))


def test_a_model_in_training_mode_is_refused(model):
    model.train()
    with pytest.raises(UsageError, match="training mode"):
        trace(model, IDS)
    model.eval()


def test_a_check_of_nan_does_not_pass():
    assert not Check("x", float("nan"), 1.0).passed
    assert Check("x", 0.0, 0.0).passed
