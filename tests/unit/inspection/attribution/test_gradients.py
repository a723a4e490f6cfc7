"""Gradients of a prediction: finite differences, completeness, edits, both sides of a pair, a broken integral."""

import pytest
import torch

from cover import kinds
from orrery.errors import UsageError
from orrery.families import names
from orrery.inspection.attribution.rerun import Rerun
from orrery.inspection.trace import trace
from tiny_models import inputs_for, randomised, smallest

FAMILIES = [
    "gpt2",
    "llama",
    "gemma2",
    "bert",
    "modernbert",
    "t5",
    "bart",
    "rnnsearch",
    "luong",
    "lstm",
    "nplm",
    "vit",
    "vision_encoder_decoder",
]


def looked(family, dtype=torch.float64, **call):
    model = smallest(family, dtype)
    return trace(model, *inputs_for(model, rows=1 if model.spec.compares else 2), **call)


def score(traced, vectors, token, position=-1):
    """Return the logit with the given vectors looked up, through the plain edits of a trace."""
    edit = {key: lambda value, name, x=x: x for key, x in vectors.items()}
    logits = trace(traced.model, *traced.inputs, keep=["logits"], edit=edit, **traced.call.how).logits
    return logits[:, token] if logits.dim() == 2 else logits[:, position, token]


@pytest.mark.parametrize("family", FAMILIES)
def test_gradient_times_input_is_the_slope(family):
    traced = looked(family)
    keys = (["encoder.looked_up"] if len(traced.inputs) > 1 else []) + ["looked_up"]
    attribution = traced.gradient_times_input(1)
    sides = ([attribution.source_BS] if len(keys) > 1 else []) + [attribution.value_BL]
    torch.testing.assert_close(attribution.score_B, score(traced, {}, 1))
    for key, value in zip(keys, sides, strict=True):
        x = traced[key]
        assert value.shape == x.shape[:2]
        for token in (0, x.shape[1] - 1):
            moved = [x.clone(), x.clone()]
            for sign, one in zip((1, -1), moved, strict=True):
                one[:, token] *= 1 + sign * 1e-5
            above, below = (score(traced, {key: one}, 1) for one in moved)
            torch.testing.assert_close(value[:, token], (above - below) / 2e-5, rtol=1e-5, atol=1e-7)


def test_saliency_is_the_length_of_the_gradient():
    traced = looked("gpt2")
    x = traced["looked_up"].clone().requires_grad_()
    logits = traced.model.logits(traced.ids)  # the same numbers by torch alone, through the table
    (rows,) = torch.autograd.grad(logits[0, -1, 3], traced.model.embed.token.weight)
    ids = traced.ids[0].tolist()
    saliency = traced.saliency(3)
    for token, id in enumerate(ids):
        if ids.count(id) == 1 and not traced.model.spec.head.tied:
            assert float(saliency.value_BL[0, token]) == pytest.approx(float(rows[id].norm()), rel=1e-9)
    assert saliency.source_BS is None
    difference = traced.saliency(3, against=5).score_B
    torch.testing.assert_close(difference, traced.logits[:, -1, 3] - traced.logits[:, -1, 5])
    assert x.grad is None


def test_a_log_probability_has_the_slope_of_the_softmax():
    traced = looked("llama")
    logits = [traced.gradient_times_input(v, position=2).value_BL for v in range(61)]
    p_BV = traced.logits[:, 2].softmax(-1)
    mean_BL = torch.einsum("vbl,bv->bl", torch.stack(logits), p_BV)
    attribution = traced.gradient_times_input(7, position=2, measure="log_probability")
    torch.testing.assert_close(attribution.value_BL, logits[7] - mean_BL, rtol=0, atol=1e-12)
    torch.testing.assert_close(attribution.score_B, traced.logits[:, 2].log_softmax(-1)[:, 7])


ROUTED = {name for name in names() if any(".routers." in kind for kind in kinds()[name])}
JUMPING = {"gla", *ROUTED}
"""Families whose score may jump on the way from the baseline, which no slope knows.

A router sends a token elsewhere; GLA's norm of a head turns around where the head's first sum passes through zero.
"""
SEEN_TO_JUMP = {"gla", "nemotron_h", "phimoe", "deepseek_v2", "gpt_oss", "mixtral"}
"""Those of which the random numbers of these tests do."""
KINKED = {
    "segformer",
    "arcee",
    "gated_deltanet",
    "m2m_100",
    "nanochat",
    "nemotron",
    "olmo",
    "opt",
    "retnet",
    "rnnenc",
    "rnnsearch",
    "t5",
    "transformer",
    "falcon_mamba",
}
"""Families with ReLU, maxout, or a clamp, and one whose smallest norms, over two numbers, turn as sharply."""


@pytest.mark.parametrize("family", names())
def test_integrated_gradients_are_complete(family):
    attribution = looked(family).integrated_gradients(batch_size=64)
    assert attribution.check.bound == 0.01
    assert attribution.check.passed or family in JUMPING
    assert not (attribution.check.passed and family in SEEN_TO_JUMP)
    assert attribution.check.value < (1 if family in JUMPING else 0.01 if family in KINKED else 1e-4)


@pytest.mark.parametrize("family", names())
@pytest.mark.parametrize("way", ["saliency", "gradient_times_input"])
def test_the_score_moves_as_the_gradient_says(family, way):
    """In float32 too, where a short step is rounded away."""
    for dtype in (torch.float64, torch.float32):
        attribution = getattr(looked(family, dtype), way)()
        assert attribution.check.bound == 0.05  # ReLU has kinks
        assert attribution.check.passed, (dtype, attribution.check)


def test_the_size_of_the_batch_does_not_matter():
    traced = looked("gpt2")
    one, some = (traced.integrated_gradients(3, steps=10, batch_size=size) for size in (1, 7))
    torch.testing.assert_close(one.value_BL, some.value_BL)


def test_a_baseline_is_a_token():
    traced = looked("gpt2")
    attribution = traced.integrated_gradients(3, baseline=4)
    row = traced.model.embed.token.weight[4].detach()
    start = score(traced, {"looked_up": row.expand_as(traced["looked_up"])}, 3)
    torch.testing.assert_close(attribution.value_BL.sum(-1), score(traced, {}, 3) - start)
    own = trace(traced.model, torch.full((1, 5), 4)).integrated_gradients(3, baseline=4)
    assert own.value_BL.abs().max() == 0


def test_padding_has_no_gradient():
    model = smallest("gpt2")
    real = torch.arange(7) < torch.tensor([[7], [4]])
    traced = trace(model, *inputs_for(model), real=real)
    attribution = traced.integrated_gradients(3, position=3)
    assert attribution.value_BL[1, 4:].abs().max() == 0
    assert attribution.check.passed


def test_the_edits_of_the_run_are_made_again():
    edit = {"blocks.*.added": lambda value, key: value * 0}
    traced = looked("gpt2", edit=edit)
    attribution = traced.integrated_gradients(3, steps=32)
    assert attribution.check.value < 1e-6
    torch.testing.assert_close(attribution.score_B, traced.logits[:, -1, 3])
    assert attribution.value_BL[:, :-1].abs().max() == 0  # without attention only the last token counts


def test_rows_that_are_compared_have_no_slopes_of_their_own():
    model = smallest("clip")
    for way in ("saliency", "gradient_times_input", "integrated_gradients"):
        with pytest.raises(UsageError, match=r"2 rows at once.*trace one picture and one text"):
            getattr(trace(model, *inputs_for(model)), way)()


def test_a_broken_integral_is_seen(monkeypatch):
    right = Rerun.gradients
    monkeypatch.setattr(Rerun, "gradients", lambda run, at: tuple(1.5 * one for one in right(run, at)))
    traced = looked("gpt2")
    assert not traced.integrated_gradients(3).check.passed
    assert not traced.gradient_times_input(3).check.passed
    assert not traced.saliency(3).check.passed


def test_gradients_work_where_nothing_learns():
    model = randomised(smallest("gpt2")).requires_grad_(False)
    with torch.no_grad():
        assert trace(model, *inputs_for(model)).saliency(3).value_BL.abs().max() > 0
    assert all(parameter.grad is None for parameter in model.parameters())


def test_what_cannot_be_meant_is_refused():
    traced = looked("gpt2")
    with pytest.raises(UsageError, match="position 7 of 7"):
        traced.saliency(3, position=7)
    with pytest.raises(UsageError, match="token 61 of a vocabulary"):
        traced.saliency(61)
    with pytest.raises(UsageError, match="no measure 'odds'"):
        traced.saliency(3, measure="odds")
    with pytest.raises(UsageError, match="token 99 of a vocabulary"):
        traced.integrated_gradients(3, baseline=99)
