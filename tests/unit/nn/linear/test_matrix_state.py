"""The state of outer products: three forms, one result, however strongly it fades."""

import pytest
import torch

from orrery.errors import UsageError
from orrery.nn.linear import matrix_state

FORMS = {
    "parallel": matrix_state.parallel,
    "pieces of 8": lambda *given: matrix_state.chunked(*given, size=8),
    "pieces of 64": lambda *given: matrix_state.chunked(*given, size=64),
}
BOUNDS = {torch.float64: 1e-9, torch.float32: 1e-4}


def naive(q, k, v, decay, state):
    """The equations, one row, token and head at a time."""
    rows, tokens, heads, _ = q.shape
    said = torch.zeros_like(v)
    after = torch.zeros_like(state)
    for row in range(rows):
        for head in range(heads):
            state_ce = state[row, head]
            for t in range(tokens):
                kept = torch.exp(decay[row, t, head]).expand(q.shape[-1])
                state_ce = torch.diag(kept) @ state_ce + torch.outer(k[row, t, head], v[row, t, head])
                said = said.index_put(
                    (torch.tensor(row), torch.tensor(t), torch.tensor(head)), q[row, t, head] @ state_ce
                )
            after = after.index_put((torch.tensor(row), torch.tensor(head)), state_ce)
    return said, after


def stepwise(q, k, v, decay, state):
    said = []
    for one in zip(q.unbind(1), k.unbind(1), v.unbind(1), decay.unbind(1), strict=True):
        y, state = matrix_state.step(*one, state)
        said.append(y)
    return torch.stack(said, 1), state


def drawn(tokens, channels, strength, seed=0):
    rng = torch.Generator().manual_seed(seed)
    shapes = ((2, tokens, 2, 5), (2, tokens, 2, 5), (2, tokens, 2, 3), (2, tokens, 2, channels), (2, 2, 5, 3))
    q, k, v, decay, state = (torch.randn(shape, generator=rng, dtype=torch.float64) for shape in shapes)
    return q, k, v, -decay.abs() * strength, state


def everything(form, given, dtype):
    """Outputs, the state, and the gradients of all that goes in."""
    given = [x.to(dtype).detach().requires_grad_() for x in given]
    y, after = form(*given)
    return y.detach(), after.detach(), *torch.autograd.grad(y.pow(2).sum() + after.pow(2).sum(), given)


def deviation(numbers, expected):
    pairs = zip(numbers, expected, strict=True)
    return max(float((a - b).abs().max() / b.abs().max().clamp(min=1)) for a, b in pairs)


@pytest.mark.parametrize("strength", [0.1, 20.0])
@pytest.mark.parametrize("channels", [1, 5])
@pytest.mark.parametrize("tokens", [1, 3, 8, 21, 70])
def test_every_form_is_the_recurrence(tokens, channels, strength):
    given = drawn(tokens, channels, strength)
    expected = everything(naive, given, torch.float64)
    for form in (stepwise, *FORMS.values()):
        for dtype, bound in BOUNDS.items():
            assert deviation(everything(form, given, dtype), expected) <= bound


def test_the_comparison_finds_a_gradient_that_is_lost():
    given = drawn(9, 1, 0.1)

    def lost(q, k, v, decay, state):
        return matrix_state.chunked(q, k, v, decay.detach() + 0 * decay, state, size=64)

    numbers, expected = (everything(form, given, torch.float64) for form in (lost, naive))
    assert deviation(numbers[:2], expected[:2]) <= 1e-9
    assert deviation(numbers, expected) > 1e-3


@pytest.mark.parametrize("channels", [1, 5])
@pytest.mark.parametrize("form", FORMS)
def test_a_state_that_is_wiped_again_and_again_stays_exact_in_float32(form, channels):
    q, k, v, decay, state = drawn(64, channels, 0.01)
    decay[:, ::3] = -300.0
    expected = everything(naive, (q, k, v, decay, state), torch.float64)
    numbers = everything(FORMS[form], (q, k, v, decay, state), torch.float32)
    assert all(bool(x.isfinite().all()) for x in numbers)
    assert deviation(numbers, expected) < 5e-6  # sums of decays in float32 alone: 4e-4


@pytest.mark.parametrize("form", FORMS)
def test_tokens_that_write_nothing_and_do_not_fade_leave_the_state_alone(form):
    q, k, v, decay, state = drawn(13, 5, 1.0)
    _, after = FORMS[form](q[:, :6], k[:, :6], v[:, :6], decay[:, :6], state)
    k[:, 6:], decay[:, 6:] = 0, 0
    assert torch.allclose(FORMS[form](q, k, v, decay, state)[1], after, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("channels", [1, 5])
def test_the_state_is_wide_where_all_else_is_narrow(channels):
    given = [x.to(torch.bfloat16) for x in drawn(21, channels, 1.0)[:4]]
    empty = matrix_state.empty(given[0], 2, 5, 3)
    assert empty.dtype == torch.float32
    wide = matrix_state.parallel(*(x.double() for x in given), empty.double())
    for form in (stepwise, *FORMS.values()):
        for autocast in (False, True):
            with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
                y, after = form(*given, empty)
            assert (y.dtype, after.dtype) == (torch.bfloat16, torch.float32)
            assert deviation([after], wide[1:]) < 1e-5
            assert deviation([y], wide[:1]) < 1e-2


def test_second_derivatives_are_those_of_the_recurrence():
    q, k, v, decay, state = drawn(5, 1, 0.3)

    def curvature(form):
        at = decay.clone().requires_grad_()
        loss = form(q, k, v, at, state)[0].pow(2).sum()
        (first,) = torch.autograd.grad(loss, at, create_graph=True)
        return torch.autograd.grad(first.pow(2).sum(), at)

    assert deviation(curvature(FORMS["pieces of 64"]), curvature(naive)) < 1e-9


def test_pieces_that_cannot_be_halved_are_refused():
    with pytest.raises(UsageError, match="pieces of 24 tokens"):
        matrix_state.chunked(*drawn(5, 1, 1.0), size=24)
