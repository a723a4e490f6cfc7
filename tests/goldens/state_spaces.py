"""Golden outputs of models that convolve with the kernel of a linear system: one channel and one token at a time."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from tests.goldens.matrix_memories import CONFIG, WIDTH, language_model
from tests.goldens.weights import Formula, Weights

WAVES, PLACES = 3, 4
Kernels = Callable[[Weights, str, int], Tensor]


def pairs(x: Tensor) -> Tensor:
    """Return numbers that stand as real and imaginary parts side by side."""
    return torch.view_as_complex(x.unflatten(-1, (-1, 2)))


def diagonal(w: Weights, name: str, length: int) -> Tensor:
    """Gu et al. 2022b, equation 3 and 5: the kernel of each channel, held for a step."""
    a = torch.complex(-w.take(f"{name}.fading_log", WIDTH, WAVES).exp(), w.take(f"{name}.frequency", WIDTH, WAVES))
    dt = w.take(f"{name}.step_log", WIDTH).exp()[:, None]
    c = pairs(w.take(f"{name}.read", WIDTH, 2 * WAVES)) * ((dt * a).exp() - 1) / a
    return torch.stack([2 * (c * (dt * a * t).exp()).real.sum(-1) for t in range(length)])


def nearly_diagonal(w: Weights, name: str, length: int) -> Tensor:
    """Gu, Goel and Re 2022, equation 3 to 5: a whole matrix, discretised by the trapezoidal rule, and its powers."""
    both = lambda x: torch.cat([x, x.conj()], -1)  # noqa: E731
    a = torch.complex(-w.take(f"{name}.fading_log", WAVES).exp(), w.take(f"{name}.frequency", WAVES))
    low, b = (both(pairs(w.take(f"{name}.{part}", 2 * WAVES))) for part in ("low_rank", "write"))
    matrix, one = torch.diag(both(a)) - torch.outer(low, low.conj()), torch.eye(2 * WAVES, dtype=low.dtype)
    c, dt = both(pairs(w.take(f"{name}.read", WIDTH, 2 * WAVES))), w.take(f"{name}.step_log", WIDTH).exp()
    kernels = []
    for channel in range(WIDTH):
        left = torch.linalg.inv(one - dt[channel] / 2 * matrix)
        state, kernel = dt[channel] * left @ b, []
        for _ in range(length):
            kernel.append((c[channel] @ state).real)
            state = left @ (one + dt[channel] / 2 * matrix) @ state
        kernels.append(torch.stack(kernel))
    return torch.stack(kernels, 1)


def waves(w: Weights, name: str, length: int) -> Tensor:
    """Massaroli et al. 2023, section 3: a filter as a sum of modes."""
    a = torch.complex(-w.take(f"{name}.fading_log", WIDTH, WAVES).exp(), w.take(f"{name}.frequency", WIDTH, WAVES))
    c = pairs(w.take(f"{name}.read", WIDTH, 2 * WAVES))
    return torch.stack([2 * (c * (a * t).exp()).real.sum(-1) for t in range(length)])


def convolved(w: Weights, name: str, us: list[Tensor], kernels: Kernels) -> list[Tensor]:
    """Return ``sum_s K_s u_{t-s} + D u_t``."""
    kernel, skip = kernels(w, name, len(us)), w.take(f"{name}.skip", WIDTH)
    return [skip * u + sum(kernel[t - s] * us[s] for s in range(t + 1)) for t, u in enumerate(us)]


def state_space(kernels: Kernels) -> Callable[[Weights, str, list[Tensor]], list[Tensor]]:
    """Return a mixer: systems side by side, a GELU, and a gated linear unit."""

    def run(w: Weights, name: str, xs: list[Tensor]) -> list[Tensor]:
        said = []
        for y in convolved(w, name, xs, kernels):
            active = y / 2 * (1 + torch.erf(y / 2**0.5))
            out, gate = (w.linear(f"{name}.mix.{part}", active, WIDTH) for part in ("out", "gate"))
            said.append(out * torch.sigmoid(gate))
        return said

    return run


def hyena(w: Weights, name: str, xs: list[Tensor]) -> list[Tensor]:
    """Poli et al. 2023, definition 3.1 for order two."""
    inputs = [torch.cat([w.linear(f"{name}.{part}", x, WIDTH) for part in "qkv"]) for x in xs]
    short = w.take(f"{name}.convolution.weight", 3 * WIDTH, 1, PLACES)[:, 0]
    bias = w.take(f"{name}.convolution.bias", 3 * WIDTH)
    mixed = [
        bias + sum(short[:, PLACES - 1 - ago] * inputs[t - ago] for ago in range(PLACES) if t >= ago)
        for t in range(len(xs))
    ]
    q, k, v = zip(*(x.chunk(3) for x in mixed), strict=True)
    read = convolved(w, name, [a * b for a, b in zip(k, v, strict=True)], waves)
    return [w.linear(f"{name}.out", a * y, WIDTH) for a, y in zip(q, read, strict=True)]


SMALL = {key: value for key, value in CONFIG.items() if key != "num_heads"}
FORMULAS: dict[str, list[tuple[str, dict[str, Any], Formula]]] = {
    "s4d": [
        ("section 3", {**SMALL, "state_size": 2 * WAVES}, language_model([("mixer", state_space(diagonal))] * 2)),
    ],
    "s4": [
        (
            "equations 3 to 5",
            {**SMALL, "state_size": 2 * WAVES},
            language_model([("mixer", state_space(nearly_diagonal))] * 2),
        )
    ],
    "hyena": [
        ("order two", {**SMALL, "waves": WAVES, "conv_kernel": PLACES}, language_model([("mixer", hyena)] * 2)),
    ],
}
ARCHITECTURES = {"s4d": "S4DLanguageModel", "s4": "S4LanguageModel", "hyena": "HyenaLanguageModel"}
