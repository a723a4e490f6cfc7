"""Every number of a pass follows from others by its formula, down to weights and tokens."""

import random
from dataclasses import replace

import pytest
import torch

from orrery.errors import UsageError
from orrery.inspection.explain.explain import Explainer
from orrery.inspection.explain.formula import Operand, sum_of, term
from orrery.inspection.explain.node import GivenTensor
from orrery.inspection.trace import trace
from orrery.tuning.lora import LoRA
from tiny_models import smallest

FAST = ("gpt2", "llama", "bert", "t5", "bart", "deepseek_v3", "gemma2", "gpt_neox")
RECURRENT = ("elman_rnn", "lstm", "gru", "rnnsearch", "luong", "rnnenc", "sutskever")
"""Biases and LayerNorm, rotation and GQA, post-norm, relative biases, cross-attention, latents, caps, parallel."""
OTHERS = ("bloom", "cohere", "falcon", "gpt_oss", "qwen3", "stablelm", "deberta_v2", "albert", "m2m_100")


def ids(length, seed=0):
    return torch.randint(3, 40, (1, length), generator=torch.Generator().manual_seed(seed))


def looked_into(family, **change):
    model = smallest(family, **change)
    rows = [ids(7), ids(5, 1)] if model.spec.reads_source else [ids(7)]
    traced = trace(model, *rows)
    return Explainer(model, traced, rows[-1], rows[0] if len(rows) > 1 else None), traced


def places(explainer, traced, count):
    """Return random numbers of every tensor of a pass, recorded and derived."""
    rng = random.Random(0)
    for key in dict.fromkeys([*traced, *explainer.numbers.nodes]):
        shape = explainer.numbers[key].shape
        if not key.endswith((".router_logits", ".load")):
            yield from ((key, tuple(rng.randrange(size) for size in shape[1:])) for _ in range(count))


def every_number_follows(family, count):
    explainer, traced = looked_into(family)
    for key, index in places(explainer, traced, count):
        explained = explainer.explain(key, index)
        assert explained.check.value <= 1e-12, (key, index, explained)
    return explainer


@pytest.mark.parametrize("family", FAST)
def test_every_number_follows_from_its_formula(family):
    every_number_follows(family, 3)


def test_every_number_of_a_layer_scale_is_a_product():
    model = smallest("dinov2")
    images = torch.randn(1, 3, 12, 12, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    explainer = Explainer(model, trace(model, images), images)
    for block in (0, 1):
        added = explainer.explain(f"blocks.{block}.attention.added", (2, 5))
        assert added.check.value <= 1e-12
        (one,) = added.formula.terms
        gain_D = model.stack.blocks[block].attention.post[0].gain.tolist()
        assert gain_D[5] in [factor.value for factor in one.factors]


@pytest.mark.parametrize("family", RECURRENT)
def test_every_number_of_a_recurrence_follows_from_its_formula(family):
    """Gates, cells, states, scores of the source: each from the input, the step before, weights and biases."""
    explainer = every_number_follows(family, 6)
    given_keys = [key for key, node in explainer.numbers.nodes.items() if isinstance(node, GivenTensor)]
    assert set(given_keys) <= {"encoder.memory"}
    first = explainer.explain(next(key for key in explainer.numbers.nodes if ".before" in key), (0, 1))
    assert first.check.passed


@pytest.mark.slow
@pytest.mark.parametrize("family", OTHERS)
def test_every_number_of_further_families_follows_from_its_formula(family):
    every_number_follows(family, 6)


def test_an_explanation_leads_from_a_logit_to_weights_and_the_token():
    explainer, _ = looked_into("gpt2")
    seen, waiting, weights = set(), [("logits", (6, 11))], set()
    while waiting:
        key, index = waiting.pop()
        if (key, index) in seen or len(seen) > 400:
            continue
        seen.add((key, index))
        for one in explainer.explain(key, index, most=3).formula.terms:
            weights |= {factor.parameter for factor in one.factors if factor.parameter}
            waiting += [(factor.key, factor.index) for factor in one.factors if factor.key]
    kinds = {key.split(".")[-1] for key, _ in seen}
    assert {"final", "resid_post", "added", "mixed", "pattern", "scores", "q", "hidden", "word"} <= kinds
    assert {"embed.token.weight", "blocks.0.attention.branch.q.weight"} <= {
        path.removeprefix("stack.") for path in weights
    }


def test_derived_tensors_are_those_of_the_modules():
    explainer, traced = looked_into("llama")
    block = smallest("llama").stack.blocks[1]
    x = block.attention.pre(traced["blocks.1.resid_pre"])
    assert torch.equal(explainer.numbers["blocks.1.attention.input"], x)
    torch.testing.assert_close(explainer.numbers["blocks.1.attention.q_in"], block.attention.branch.q(x))
    products = explainer.numbers["blocks.1.attention.products"] * block.attention.branch.scale
    seen = traced["blocks.1.attention.scores"] > float("-inf")
    torch.testing.assert_close(products[seen], traced["blocks.1.attention.scores"][seen])


@pytest.mark.parametrize(
    "key",
    ["embedded", "blocks.0.attention.q", "blocks.1.attention.mixed", "blocks.1.feed_forward.hidden", "final", "logits"],
)
def test_a_number_that_is_not_what_its_formula_says_fails_its_check(key):
    model, rows = smallest("llama"), ids(7)
    traced = trace(model, rows)
    broken = replace(traced, values={**traced.values, key: traced[key] * 1.001})
    index = tuple(size // 2 for size in traced[key].shape[1:])
    assert Explainer(model, traced, rows).explain(key, index).check.passed
    assert not Explainer(model, broken, rows).explain(key, index).check.passed


def test_a_wrong_rotation_is_seen(monkeypatch):
    from orrery.inspection.explain import attention

    right = attention.rotation_of
    monkeypatch.setattr(attention, "rotation_of", lambda *given: right(*given).roll(1))
    explainer, _ = looked_into("llama")
    assert not explainer.explain("blocks.0.attention.q", (1, 5, 0)).check.passed


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_numbers_of_narrow_formats_pass_within_their_rounding(dtype):
    explainer, traced = looked_into("llama", dtype=dtype)
    for key, index in places(explainer, traced, 2):
        explained = explainer.explain(key, index)
        assert explained.check.passed, (key, index, explained)


def test_an_adapted_matrix_is_the_one_that_acts():
    model, rows = smallest("llama"), ids(7)
    LoRA(rank=2, targets=("*.q",)).apply(model)
    for name, parameter in model.named_parameters():
        if name.endswith("lora_b"):
            torch.nn.init.normal_(parameter, generator=torch.Generator().manual_seed(0))
    model.eval()
    traced = trace(model, rows)
    assert Explainer(model, traced, rows).explain("blocks.0.attention.q", (0, 3, 1)).check.value <= 1e-12


def test_a_hidden_pair_is_explained_by_the_mask():
    explainer, _ = looked_into("gpt2")
    explained = explainer.explain("blocks.0.attention.scores", (0, 2, 5))
    assert explained.formula.kind == "given"
    assert "mask" in explained.formula.text
    assert explained.check.passed


def test_a_long_sum_names_its_largest_terms_and_counts_the_others():
    terms = [term(Operand("x", value)) for value in (3.0, -5.0, 0.5, 0.25)]
    total = sum_of("x", 2, more=terms)
    assert [one.value for one in total.terms] == [-5.0, 3.0]
    assert (total.others, total.others_sum, total.value, total.size) == (2, 0.75, -1.25, 8.75)


@pytest.mark.parametrize(
    ("key", "index", "says"),
    [
        ("blocks.0.attention.qq", (0,), "nothing is called 'blocks.0.attention.qq'"),
        ("blocks.0.attention.q", (0, 7, 0), r"no number at \[0, 7, 0\]"),
        ("blocks.0.attention.q", (0, 1), r"no number at \[0, 1\]"),
        ("final", (-8, 0), r"no number at \[-8, 0\]"),
    ],
)
def test_what_is_not_there_is_refused(key, index, says):
    explainer, _ = looked_into("gpt2")
    with pytest.raises(UsageError, match=says):
        explainer.explain(key, index)


@pytest.mark.parametrize("family", ["gpt2", "lstm", "luong"])
def test_a_trace_explains_its_numbers_down_to_weights_and_tokens(family):
    """Recursively: every operand with a key is a number of the pass, and the leaves are weights and the token's row."""
    model = smallest(family)
    rows = [ids(7), ids(5, 1)] if model.spec.reads_source else [ids(7)]
    traced = trace(model, *rows)
    parameters = dict(model.named_parameters(remove_duplicate=False))
    seen, weights = set(), set()
    waiting = [("logits", (-1, 3))]
    while waiting and len(seen) < 300:
        key, index = waiting.pop()
        explained = traced.explain(key, index, most=2)
        assert explained.check.value <= 1e-12, explained
        seen.add((explained.key, explained.index))
        for factor in (factor for one in explained.formula.terms for factor in one.factors):
            if factor.parameter:
                weights.add(factor.parameter)
                assert float(parameters[factor.parameter].detach()[factor.index]) == factor.value
            elif factor.key and (factor.key, factor.index) not in seen:
                waiting.append((factor.key, factor.index))
    assert any("embed" in path or "target" in path for path in weights), weights
    assert any("blocks.0" in path for path in weights), weights


def test_a_number_whose_operands_were_not_kept_is_refused_by_name():
    traced = trace(smallest("gpt2"), ids(7), keep=["logits"])
    with pytest.raises(UsageError, match=r"nothing is called .blocks.0.attention.pattern"):
        traced.explain("blocks.0.attention.mixed", (0, 0, 0))
