"""Griffin's recurrence: every form equals the paper's equations; its first token has no past; its root has a slope."""

import pytest
import torch

from mixer_forms import apart, everything, inputs, randomised
from orrery.errors import UsageError
from orrery.nn.linear import scan
from orrery.nn.linear.block_diagonal import BlockDiagonal
from orrery.nn.linear.rg_lru import RGLRU

WIDTH = 5
SPEC = RGLRU.Spec(hidden=6, parts=2, length=3)


def by_the_paper(mixer, u, before):
    """De et al. 2024, equations 1 to 4, one token after the other, with whole matrices for the gates."""
    seen, h, begun = before
    p = dict(mixer.named_parameters())
    blocks = {name: torch.block_diag(*p[f"{name}.weight"]) for name in ("write", "forget")}
    said = []
    for t in range(u.shape[1]):
        x, gate = (u[:, t] @ p[f"{name}.weight"].T + p[f"{name}.bias"] for name in ("x", "gate"))
        seen = torch.cat([seen, x[:, None]], 1)
        x = torch.einsum("bwd,dw->bd", seen, p["convolution.weight"][:, 0]) + p["convolution.bias"]
        seen = seen[:, 1:]
        i, r = (torch.sigmoid(x @ blocks[name] + p[f"{name}.bias"].flatten()) for name in ("write", "forget"))
        a = torch.exp(-8 * r * torch.log1p(p["pace"].exp()))
        h = a * h + torch.where(begun > 0, (1 - a * a).sqrt(), torch.ones_like(a)) * i * x
        begun = torch.ones_like(begun)
        gelu = 0.5 * gate * (1 + torch.tanh((2 / torch.pi) ** 0.5 * (gate + 0.044715 * gate**3)))
        said.append((h * gelu) @ p["out.weight"].T + p["out.bias"])
    return torch.stack(said, 1), (seen, h, begun)


@pytest.mark.parametrize("form", ["step", "parallel", "chunked"])
@pytest.mark.parametrize("length", [1, 3, 4, 9])
def test_every_form_is_the_papers(monkeypatch, form, length):
    monkeypatch.setattr(scan.chunked, "__defaults__", (4,))
    for dtype, bound in ((torch.float64, 1e-9), (torch.float32, 1e-4)):
        mixer = randomised(SPEC.build(WIDTH), dtype)
        x, (seen, h, _) = inputs(mixer, WIDTH, length)
        begun = torch.tensor([[0.0], [1.0]], dtype=dtype)  # the first row's first token is the first of all

        def run(x, before, mixer=mixer, begun=begun):
            y, after = mixer.compute(form, x, None, (*before, begun))
            return y, after[:2]

        def by_definition(x, before, mixer=mixer, begun=begun):
            y, after = by_the_paper(mixer, x, (*before, begun))
            return y, after[:2]

        numbers, expected = (everything(mixer, way, x, (seen, h)) for way in (run, by_definition))
        assert {name: error for name, error in apart(numbers, expected).items() if not error <= bound} == {}


@pytest.mark.parametrize("form", ["step", "parallel", "chunked"])
def test_behind_any_token_none_is_the_first(form):
    mixer = randomised(SPEC.build(WIDTH))
    x = torch.randn(2, 3, WIDTH, dtype=torch.float64)
    assert torch.equal(mixer.begin(x)[2], torch.zeros(2, 1, dtype=torch.float64))
    assert torch.equal(mixer.compute(form, x, None, mixer.begin(x))[1][2], torch.ones(2, 1, dtype=torch.float64))


def test_a_map_of_blocks_is_the_map_of_the_whole_matrix():
    gate = randomised(BlockDiagonal(3, 12))
    x = torch.randn(2, 4, 12, dtype=torch.float64)
    expected = x @ torch.block_diag(*gate.weight) + gate.bias.flatten()
    torch.testing.assert_close(gate(x), expected, rtol=0, atol=1e-12)


def test_what_keeps_everything_has_a_gradient_that_is_a_number():
    """With a gate that forgets nothing there is no room for what is new, where the root's own slope has no end."""
    mixer = randomised(SPEC.build(WIDTH))
    with torch.no_grad():
        mixer.pace.fill_(-800.0)
    x = torch.randn(1, 4, WIDTH, dtype=torch.float64, requires_grad=True)
    y, _ = mixer.compute("parallel", x, None, mixer.begin(x))
    gradients = torch.autograd.grad(y.sum(), [x, *mixer.parameters()])
    assert all(bool(one.isfinite().all()) for one in gradients)


def test_channels_that_make_no_equal_parts_are_refused():
    with pytest.raises(UsageError, match="6 channels in 4 parts"):
        RGLRU.Spec(hidden=6, parts=4).build(WIDTH)
