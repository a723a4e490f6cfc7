"""Parity with a reference: every way through a model gives the reference's numbers, or the first wrong tap is named."""

from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from orrery.checkpoints.rules import to_ours, to_theirs
from orrery.families import load_family
from orrery.models.decoder import Decoder
from orrery.nn.attention.kernels import KERNELS
from tests.parity import oracle


@dataclass(frozen=True)
class Pair:
    """A reference and our model with its weights."""

    kind: str
    theirs: Any
    ours: Decoder
    wide: bool

    def reference(self, ids: Tensor, **kwargs: Any) -> Any:
        """Run the reference, widened where the pair is."""
        with oracle.widened(oracle.modelling(self.kind)) if self.wide else nullcontext():
            return self.theirs(ids, **kwargs)


def pair(kind: str, *, seed: int = 0, dtype: torch.dtype = torch.float64, wide: bool = True, **config: Any) -> Pair:
    """Return a random reference and our model loaded from its configuration and weights."""
    with oracle.widened(oracle.modelling(kind)) if wide else nullcontext():
        theirs = oracle.reference(kind, seed, dtype, **config)
    family = load_family(kind)
    ours = family.spec(theirs.config.to_dict()).build(0).to(dtype).eval()
    ours.load_state_dict(converted(kind, theirs, ours))
    return Pair(kind, theirs, ours, wide)


def weights_of(model: nn.Module) -> dict[str, Tensor]:
    """Return a model's tensors, each storage once under its first name: what a file holds."""
    return {name: parameter.detach() for name, parameter in model.named_parameters()}


def converted(kind: str, theirs: nn.Module, ours: nn.Module) -> dict[str, Tensor]:
    """Return our tensors from the reference's, the tied head included."""
    shapes = {name: tensor.shape for name, tensor in weights_of(ours).items()}
    tensors = to_ours(weights_of(theirs), load_family(kind).WEIGHTS, shapes)
    if "head.vocabulary.weight" not in shapes:
        tensors["head.vocabulary.weight"] = tensors["embed.token.weight"]
    return tensors


def error(a: Tensor, b: Tensor, where: Tensor | None = None) -> float:
    """Return max|a - b| / max(1, max|b|) over the places in ``where``."""
    if where is not None:
        a, b = a[where], b[where]
    return float((a - b).abs().max() / b.abs().max().clamp(min=1))


def assert_close(name: str, pair: Pair, ids: Tensor, a: Tensor, b: Tensor, bound: float, where: Any = None) -> None:
    """Fail with the error and the first tap that differs."""
    found = error(a, b, where)
    assert found <= bound, f"{pair.kind}: {name} differs by {found:.2e} > {bound:.0e}; {first_difference(pair, ids)}"


def first_difference(pair: Pair, ids: Tensor, bound: float = 1e-7) -> str:
    """Name the first tap, in the order of computation, at which the two models part."""
    seen: dict[str, Tensor] = {}

    def record(key: str, value: Tensor) -> Tensor:
        seen[key] = value
        return value

    with torch.no_grad():
        pair.ours(ids, taps=record)
        theirs = _reference_taps(pair, ids)
    for key, value in seen.items():
        if key in theirs and error(value, theirs[key]) > bound:
            return f"first at {key}: {error(value, theirs[key]):.2e}"
    return "no tap of the plain forward differs"


_PARTS = {
    "gpt2": ("transformer.h", "attn", "mlp", "transformer.drop"),
    "llama": ("model.layers", "self_attn", "mlp", "model.embed_tokens"),
}


def _reference_taps(pair: Pair, ids: Tensor) -> Mapping[str, Tensor]:
    """Return what the reference's modules put out, under our tap keys."""
    layers, attention, feed_forward, embedded = _PARTS[pair.kind]
    found: dict[str, Tensor] = {}

    def keep(key: str) -> Any:
        def hook(module: nn.Module, inputs: Any, output: Any) -> None:
            found[key] = output[0] if isinstance(output, tuple) else output

        return hook

    modules = dict(pair.theirs.named_modules())
    handles = [modules[embedded].register_forward_hook(keep("embedded"))]
    for i in range(len(modules[layers])):
        for name, role in ((attention, "attention"), (feed_forward, "feed_forward")):
            hook = keep(f"blocks.{i}.{role}.added")
            handles.append(modules[f"{layers}.{i}.{name}"].register_forward_hook(hook))
        handles.append(modules[f"{layers}.{i}"].register_forward_hook(keep(f"blocks.{i}.resid_post")))
    pair.reference(ids)
    for handle in handles:
        handle.remove()
    return found


def assert_parity(
    kind: str, bound: float, *, dtype: torch.dtype = torch.float64, wide: bool = True, **config: Any
) -> Pair:
    """Check forward, masks, positions, cache, gradients, greedy tokens and the round trip against the reference."""
    both = pair(kind, dtype=dtype, wide=wide, **config)
    ids = torch.randint(3, 97, (3, 14), generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        expected = both.reference(ids).logits
        for name, kernel in KERNELS.items():
            assert_close(f"forward ({name})", both, ids, both.ours(ids, kernel=kernel), expected, bound)
        _check_padding(both, ids, bound)
        _check_positions(both, ids, bound)
        _check_cache(both, ids, expected, bound)
        _check_greedy(both, ids)
    _check_gradients(both, ids, bound)
    _check_round_trip(both)
    return both


def _check_padding(both: Pair, ids: Tensor, bound: float) -> None:
    sides = [("right", False), ("left", True)]
    if not both.wide and _reference_overflows(both):
        sides.pop()
    for side, flip in sides:
        real = torch.arange(14) < torch.tensor([[14], [9], [3]])
        real = real.flip(1) if flip else real
        positions = (real.long().cumsum(1) - 1).clamp(min=0)
        expected = both.reference(ids, attention_mask=real.long(), position_ids=positions).logits
        for name, kernel in KERNELS.items():
            found = both.ours(ids, real=real, kernel=kernel)
            assert_close(f"{side} padding ({name})", both, ids, found, expected, bound, real)


def _reference_overflows(both: Pair) -> bool:
    """Say whether the reference is NaN under left padding: its float64 mask overflows in its float32 softmax."""
    return next(both.theirs.parameters()).dtype == torch.float64


def _check_positions(both: Pair, ids: Tensor, bound: float) -> None:
    positions = torch.arange(14)[None] + torch.tensor([[0], [5], [11]])
    expected = both.reference(ids, position_ids=positions).logits
    assert_close("explicit positions", both, ids, both.ours(ids, positions=positions), expected, bound)


def _check_cache(both: Pair, ids: Tensor, expected: Tensor, bound: float) -> None:
    logits, state = both.ours.start(ids[:, :4], capacity=14)
    steps = [logits]
    for t in range(4, 14):
        logits, state = both.ours.step(ids[:, t : t + 1], state)
        steps.append(logits[:, 0])
    assert_close("cache, step by step", both, ids, torch.stack(steps, 1), expected[:, 3:], bound)


def _check_greedy(both: Pair, ids: Tensor) -> None:
    theirs = ours = ids[:, :4]
    logits, state = both.ours.start(ours, capacity=20)
    for _ in range(16):
        theirs = torch.cat([theirs, both.reference(theirs).logits[:, -1].argmax(-1, keepdim=True)], 1)
        token = logits.argmax(-1, keepdim=True)
        ours = torch.cat([ours, token], 1)
        if ours.shape[1] < 20:
            stepped, state = both.ours.step(token, state)
            logits = stepped[:, -1]
    assert torch.equal(ours, theirs), f"{both.kind}: greedy tokens differ"


def _check_gradients(both: Pair, ids: Tensor, bound: float) -> None:
    weight = torch.randn(3, 14, 97, generator=torch.Generator().manual_seed(2)).to(next(both.ours.parameters()).dtype)
    (both.reference(ids).logits * weight).sum().backward()
    (both.ours(ids) * weight).sum().backward()
    rules = load_family(both.kind).WEIGHTS
    shapes = {name: tensor.shape for name, tensor in weights_of(both.ours).items()}
    theirs = to_ours({n: p.grad for n, p in both.theirs.named_parameters()}, rules, shapes)
    for name, parameter in both.ours.named_parameters():
        assert_close(f"gradient of {name}", both, ids, parameter.grad, theirs[name], bound)


def _check_round_trip(both: Pair) -> None:
    theirs = weights_of(both.theirs)
    back = to_theirs(weights_of(both.ours), load_family(both.kind).WEIGHTS)
    assert back.keys() == theirs.keys()
    assert all(torch.equal(back[name], theirs[name]) for name in theirs)
