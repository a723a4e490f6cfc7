"""Routers against loops written from the papers' formulas, and the statistics of what they decide."""

import math

import pytest
import torch

from orrery.errors import UsageError
from orrery.nn.feedforward.routers import (
    AtLeast,
    CorrectedSoftmaxRouter,
    GroupLimited,
    Normalised,
    RawScores,
    SigmoidRouter,
    SoftmaxRouter,
    SparseMixerRouter,
    TopK,
)
from orrery.nn.feedforward.routing import Routing, balance

WIDTH, EXPERTS = 6, 8
X = torch.randn(11, WIDTH, dtype=torch.float64, generator=torch.Generator().manual_seed(0))


def built(spec):
    router = spec.build(WIDTH).double()
    rng = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in router.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=rng, dtype=torch.float64))
    return router


def logits_of(router, x):
    weight, bias = router.linear.weight.tolist(), router.linear.bias
    bias = [0.0] * len(weight) if bias is None else bias.tolist()
    return [sum(a * b for a, b in zip(row, x.tolist(), strict=True)) + bias[e] for e, row in enumerate(weight)]


def best(scores, chosen):
    return sorted(sorted(scores, key=scores.get, reverse=True)[:chosen])


def assert_decides(router, expected):
    """Compare with one dictionary {expert: weight} a token."""
    routing = router(X)
    for chosen, weights, wanted in zip(routing.chosen_NE, routing.weights_NE, expected, strict=True):
        weights_chosen = dict(zip(chosen.tolist(), weights.tolist(), strict=True))
        assert sorted(weights_chosen) == sorted(wanted)
        assert all(math.isclose(weights_chosen[e], wanted[e], rel_tol=1e-12) for e in wanted)


def softmax(logits):
    total = sum(math.exp(z) for z in logits)
    return {e: math.exp(z) / total for e, z in enumerate(logits)}


@pytest.mark.parametrize("bias", [False, True])
def test_mixtral_is_a_softmax_over_the_chosen_logits(bias):
    """Jiang et al. 2024, section 2.1: G(x) = softmax(TopK(x W_g)), where what is not chosen is minus infinity."""
    router = built(SoftmaxRouter.Spec(experts=EXPERTS, choice=TopK(chosen=3), weighing=Normalised(), bias=bias))
    expected = []
    for x in X:
        logits = dict(enumerate(logits_of(router, x)))
        kept = best(logits, 3)
        probabilities = softmax([logits[e] for e in kept])
        expected.append({e: probabilities[i] for i, e in enumerate(kept)})
    assert_decides(router, expected)


def test_deepseek_v2_chooses_within_the_best_groups_and_scales():
    """DeepSeek-V2, section 2.2.2: the groups with the best single expert, then the best experts among them."""
    choice = GroupLimited(chosen=3, groups=4, kept=2)
    router = built(SoftmaxRouter.Spec(experts=EXPERTS, choice=choice, weighing=RawScores(scale=16.0)))
    expected = []
    for x in X:
        scores = softmax(logits_of(router, x))
        groups = {g: max(scores[2 * g], scores[2 * g + 1]) for g in range(4)}
        kept = {e: s for e, s in scores.items() if e // 2 in best(groups, 2)}
        expected.append({e: 16.0 * scores[e] for e in best(kept, 3)})
    assert_decides(router, expected)


def test_deepseek_v3_chooses_by_corrected_scores_and_weighs_by_plain_ones():
    """DeepSeek-V3, equations 13 to 16: sigmoid affinities, a bias to choose by, gates normalised among the chosen."""
    choice = GroupLimited(chosen=3, groups=2, kept=1, best_per_group=2)
    weighing = Normalised(scale=2.5, eps=1e-20)
    router = built(SigmoidRouter.Spec(experts=EXPERTS, choice=choice, weighing=weighing))
    expected, without_correction = [], 0
    for x in X:
        scores = {e: 1 / (1 + math.exp(-z)) for e, z in enumerate(logits_of(router, x))}
        corrected = {e: s + router.correction[e].item() for e, s in scores.items()}
        groups = {g: sum(sorted((corrected[e] for e in range(4 * g, 4 * g + 4)), reverse=True)[:2]) for g in range(2)}
        kept = best({e: s for e, s in corrected.items() if e // 4 in best(groups, 1)}, 3)
        without_correction += kept != best(scores, 3)
        expected.append({e: 2.5 * scores[e] / sum(scores[k] for k in kept) for e in kept})
    assert without_correction, "the correction must change a choice for this test to mean anything"
    assert_decides(router, expected)


def test_the_correction_is_no_subject_of_a_gradient():
    router = built(SigmoidRouter.Spec(experts=EXPERTS, choice=TopK(chosen=2)))
    router(X).weights_NE.sum().backward()
    assert router.correction.grad is None
    assert not router.correction.requires_grad
    assert router.linear.weight.grad.abs().sum() > 0


def routing(scores, chosen):
    scores, chosen = torch.tensor(scores), torch.tensor(chosen)
    return Routing(scores.log(), scores, chosen, scores.gather(1, chosen))


def evenness(*routings, real=None):
    """Return the balance of some layers; all tokens are real unless it is said."""
    real = torch.ones(1, len(routings[0].chosen_NE)) if real is None else torch.tensor([real])
    return balance(routings, real.bool())


UNEVEN = routing([[0.9, 0.1], [0.8, 0.2], [0.7, 0.3], [0.4, 0.6]], [[0], [0], [0], [1]])


def test_load_and_balance_by_hand():
    """Fedus et al. 2021, equations 4 to 6: three of four tokens to expert 0, X sum f P = 2 (3/4 0.7 + 1/4 0.3)."""
    assert UNEVEN.counts().tolist() == [3, 1]
    assert UNEVEN.load().tolist() == [0.75, 0.25]
    torch.testing.assert_close(evenness(UNEVEN), torch.tensor(2 * (0.75 * 0.7 + 0.25 * 0.3)))
    torch.testing.assert_close(evenness(routing([[0.5, 0.5]] * 2, [[0], [1]])), torch.tensor(1.0))
    torch.testing.assert_close(evenness(routing([[1.0, 0.0, 0.0]] * 2, [[0], [0]])), torch.tensor(3.0))


def test_two_experts_a_token_are_balanced_at_two():
    torch.testing.assert_close(evenness(routing([[0.5, 0.5]] * 3, [[0, 1]] * 3)), torch.tensor(2.0))


def test_padding_is_not_balanced():
    torch.testing.assert_close(evenness(UNEVEN, real=[1, 0, 0, 1]), torch.tensor(2 * (0.5 * 0.65 + 0.5 * 0.35)))
    assert evenness(UNEVEN, real=[0, 0, 0, 0]) == 0


def test_the_means_are_over_all_layers():
    """Two layers that are each wholly uneven even each other out: the number of transformers, not of the paper."""
    first, second = routing([[1.0, 0.0]] * 2, [[0], [0]]), routing([[0.0, 1.0]] * 2, [[1], [1]])
    assert evenness(first) == evenness(second) == 2
    torch.testing.assert_close(evenness(first, second), torch.tensor(1.0))


def test_sigmoid_scores_are_brought_to_a_sum_of_one_before_they_are_balanced():
    scaled = routing([[1.8, 0.2], [0.9, 0.1]], [[0], [1]])
    torch.testing.assert_close(evenness(scaled), torch.tensor(2 * (0.5 * 0.9 + 0.5 * 0.1)))


def test_the_balance_loss_teaches_the_router():
    router = built(SoftmaxRouter.Spec(experts=EXPERTS, choice=TopK(chosen=2)))
    optimizer = torch.optim.SGD(router.parameters(), lr=1.0)
    before = evenness(router(X)).item()
    for _ in range(50):
        optimizer.zero_grad()
        evenness(router(X)).backward()
        optimizer.step()
    assert 2.0 <= evenness(router(X)).item() < before


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_scores_are_float32_whatever_the_model_is(dtype):
    router = built(SoftmaxRouter.Spec(experts=EXPERTS, choice=TopK(chosen=2))).to(dtype)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        routed = router(X.to(dtype))
    expected = (X.to(dtype).float() @ router.linear.weight.float().mT).softmax(-1)
    assert routed.scores_NX.dtype == routed.weights_NE.dtype == torch.float32
    torch.testing.assert_close(routed.scores_NX, expected)


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        (TopK(chosen=9), "9 of the 8 experts"),
        (TopK(chosen=0), "0 of the 8 experts"),
        (GroupLimited(chosen=3, groups=4, kept=1), "3 of the 2 experts"),
        (GroupLimited(chosen=1, groups=3, kept=1), "8 experts do not make 3 equal groups"),
        (GroupLimited(chosen=1, groups=8, kept=2, best_per_group=2), "at least 2"),
    ],
)
@pytest.mark.parametrize("kind", [SoftmaxRouter.Spec, SigmoidRouter.Spec])
def test_choices_that_cannot_be_made_are_refused(kind, choice, message):
    with pytest.raises(UsageError, match=message):
        kind(experts=EXPERTS, choice=choice).build(WIDTH)


def told(router, logits):
    """Return what a router with one channel decides whose weights are these logits."""
    with torch.no_grad():
        router.linear.weight.copy_(torch.tensor(logits)[:, None])
    routed = router(torch.ones(1, 1))
    return routed.chosen_NE[0].tolist(), routed.weights_NE[0].tolist()


def test_sparse_mixer_weighs_the_best_among_those_that_come_near_it():
    """By hand: 1.9 is within a tenth of 2, 1 is not; behind 2, 1.9 is alone."""
    router = SparseMixerRouter.Spec(experts=3, choice=TopK(chosen=2), jitter=0.05).build(1)
    chosen, weights = told(router, [1.0, 2.0, 1.9])
    assert chosen == [1, 2]
    assert weights == pytest.approx([1 / (1 + math.exp(-0.1)), 1.0])


def test_a_corrected_softmax_chooses_by_the_sum_and_weighs_by_the_probability():
    weighing = AtLeast(least=0.6)
    router = CorrectedSoftmaxRouter.Spec(experts=3, choice=TopK(chosen=1), weighing=weighing).build(1)
    router.correction.data[0] = 1.0
    chosen, weights = told(router, [math.log(0.2), math.log(0.5), math.log(0.3)])
    assert chosen == [0]
    assert weights == pytest.approx([0.2 / 0.6])
