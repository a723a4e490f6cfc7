"""The time-delay layer and Bengio's language model against the formula in numpy, and its memory against whole rows."""

import numpy as np
import pytest
import torch

from orrery.errors import UsageError
from orrery.families import load_family
from orrery.inspection.trace import trace
from orrery.nn.time_delay import TimeDelay


def built(**config):
    family = load_family("nplm")
    torch.manual_seed(0)
    return family.spec({**family.TINY, **config}).build(0).double().eval()


def by_hand(weights, ids, order):
    """y = b + U (tanh(d + H x) + K x + k), x the vectors of the last order - 1 words, the newest first."""
    C, U, b = (weights[name] for name in ("embed.token.weight", "head.vocabulary.weight", "head.vocabulary.bias"))
    mixes = "stack.blocks.0.words.branch.matrices"
    H, d, K, k = (weights.get(f"{mixes}.{name}") for name in HIDDEN)
    logits = []
    for t in range(len(ids)):
        before = [C[ids[t - ago]] if t >= ago else np.zeros(C.shape[1]) for ago in range(order - 1)]
        x = np.concatenate(before)
        logits.append(b + U @ (np.tanh(d + H @ x) + (0 if K is None else K @ x + k)))
    return np.stack(logits)


HIDDEN = ("hidden.weight", "hidden.bias", "direct.weight", "direct.bias")


@pytest.mark.parametrize("direct", [True, False])
@pytest.mark.parametrize("order", [2, 3, 5])
def test_the_model_is_the_formula_of_the_paper(order, direct):
    model, ids = built(order=order, direct=direct), torch.randint(61, (1, 9))
    weights = {name: value.numpy() for name, value in model.state_dict().items()}
    expected = torch.from_numpy(by_hand(weights, ids[0].tolist(), order))
    with torch.no_grad():
        torch.testing.assert_close(model.logits(ids)[0], expected, rtol=0, atol=1e-12)


def test_nothing_before_the_window_counts_and_everything_in_it_does():
    model, ids = built(order=4), torch.randint(61, (1, 10))
    with torch.no_grad():
        plain = model.logits(ids)
        for place in range(10):
            other = ids.clone()
            other[0, place] = (ids[0, place] + 1) % 61
            changed = (model.logits(other) != plain).any(-1)[0].nonzero()[:, 0].tolist()
            assert changed == list(range(place, min(10, place + 3)))


def test_padding_inside_a_row_is_passed_over():
    model, ids = built(), torch.randint(61, (1, 9))
    real = torch.tensor([[False, True, True, False, False, True, True, True, False]])
    with torch.no_grad():
        torch.testing.assert_close(
            model.logits(ids, real=real)[real], model.logits(ids[real][None])[0], rtol=0, atol=1e-12
        )


def test_the_memory_is_the_last_vectors_and_has_one_size():
    model, ids = built(order=5), torch.randint(61, (2, 3))
    _, state = model.start(ids, 40)
    size = state.bytes()
    (kept_BKD,) = state.cache.load_state("past", (0, "words"))
    assert torch.equal(kept_BKD, model.embed(ids))
    more = torch.randint(61, (2, 20))
    model.step(more, state)
    assert torch.equal(state.cache.load_state("past", (0, "words"))[0], model.embed(more[:, -3:]))
    assert state.bytes() == size == 2 * 3 * 16 * 8


def test_a_bigram_model_keeps_nothing():
    model = built(order=2)
    logits, state = model.start(torch.tensor([[5, 7], [9, 7]]), 8)
    assert torch.equal(logits[0], logits[1])
    assert state.bytes() == 0


def test_a_trace_shows_the_hidden_layer():
    model, ids = built(), torch.randint(61, (2, 7))
    seen = trace(model, ids)
    assert all(check.passed for check in seen.checks)
    assert seen["blocks.0.words.hidden"].shape == (2, 7, 16)


def test_a_window_of_no_place_is_refused():
    with pytest.raises(UsageError, match="window of 0 tokens"):
        TimeDelay.Spec(length=0, activations={"hidden": "tanh"}).build(4)
