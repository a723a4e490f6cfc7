"""Every form of a mixer with a state beside a loop that a test writes down itself: numbers, states and gradients."""

import copy

import torch


def randomised(mixer, dtype=torch.float64, seed=0, deviation=0.3):
    """Return the mixer with every parameter drawn again, around what it was built with."""
    rng = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in mixer.parameters():
            parameter += deviation * torch.randn(parameter.shape, generator=rng)
    return mixer.to(dtype)


def inputs(mixer, width, length, rows=2, seed=1):
    """Return random inputs and a random state before them."""
    rng = torch.Generator().manual_seed(seed)
    dtype = next(mixer.parameters()).dtype
    x = torch.randn(rows, length, width, generator=rng, dtype=torch.float64).to(dtype).requires_grad_()
    before = tuple(torch.randn(part.shape, generator=rng, dtype=torch.float64).to(dtype) for part in mixer.begin(x))
    return x, tuple(part.requires_grad_() for part in before)


def everything(mixer, run, x, before):
    """Return outputs, states and the gradients of input, state and every parameter, by name.

    The loss sees each number of outputs and states with a weight of its own.
    """
    y, after = run(x, before)
    rng = torch.Generator().manual_seed(2)
    seen = {"output": y, **{f"state {n}": part for n, part in enumerate(after)}}
    loss = sum((part * torch.randn(part.shape, generator=rng).to(part)).sum() for part in seen.values())
    needed = {
        "input": x,
        **{f"state {n} before": part for n, part in enumerate(before)},
        **dict(mixer.named_parameters()),
    }
    gradients = torch.autograd.grad(loss, list(needed.values()), allow_unused=True)
    assert [name for name, gradient in zip(needed, gradients, strict=True) if gradient is None] == []
    return {**seen, **{f"gradient of {name}": gradient for name, gradient in zip(needed, gradients, strict=True)}}


def apart(given, expected):
    """Return how far each is from what is expected, where that is not zero."""
    assert given.keys() == expected.keys()
    pairs = {name: (given[name].detach(), expected[name].detach()) for name in given}
    assert all(a.shape == b.shape and a.dtype == b.dtype for a, b in pairs.values())
    return {name: float((a - b).abs().max() / b.abs().max().clamp(min=1)) for name, (a, b) in pairs.items()}


def wrong(mixer, form, definition, x, before, bound):
    """Return what differs from a definition, ``definition(mixer, x, before) -> (y, after)``, in one form.

    The definition is computed in float64, whatever the form is computed in: over many steps its own rounding would be
    as large as what is looked for.
    """
    numbers = everything(mixer, lambda x, before: mixer.compute(form, x, None, before), x, before)
    assert all(part.dtype == x.dtype for part in numbers.values())
    exact = copy.deepcopy(mixer).double()
    expected = everything(
        exact, lambda x, before: definition(exact, x, before), in_float64(x), tuple(in_float64(part) for part in before)
    )
    given = {name: part.double() for name, part in numbers.items()}
    return {name: error for name, error in apart(given, expected).items() if not error <= bound}


def in_float64(part):
    return part.detach().double().requires_grad_()
