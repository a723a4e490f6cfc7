"""The law of sight: looking never changes a number, and what is shown accounts for what comes out."""

from collections.abc import Iterator
from functools import partial

import torch
from torch import Tensor

from orrery.laws.evidence import FLOAT32, FLOAT64, Evidence, deviation, within
from orrery.laws.models import KERNELS, random_ids, tiny
from orrery.models.decoder import Decoder
from orrery.nn.attention.kernels import Kernel, eager, sdpa
from orrery.nn.attention.multihead import MultiHeadAttention

COMPONENTS = 1e-4
PRECISIONS = {"float64": (torch.float64, FLOAT64), "float32": (torch.float32, FLOAT32)}


def check(family: str) -> Iterator[Evidence]:
    """Run with and without a recorder, and rebuild patterns and the stream from what it saw."""
    evidence = partial(within, law="sight", family=family)
    for name, kernel in KERNELS.items():
        changed = changed_by_looking(tiny(family, torch.float32), kernel)
        yield evidence(f"numbers that a recorder changes, {name}", value=changed, bound=0)
    for precision, (dtype, bound) in PRECISIONS.items():
        value = derived(tiny(family, dtype))
        yield evidence(f"softmax(q k) v == what the kernel gave, {precision}", value=value, bound=bound)
    yield evidence("derived pattern == eager pattern", value=patterns(tiny(family)), bound=FLOAT64)
    yield evidence("embedded + all that was added == stream", value=streams(tiny(family)), bound=FLOAT64)
    value = components(tiny(family, torch.float32))
    yield evidence("head(final(embedded + added)) == logits, float32", value=value, bound=COMPONENTS)


@torch.no_grad()
def looked_into(model: Decoder, kernel: Kernel = sdpa) -> tuple[Tensor, dict[str, Tensor]]:
    """Return logits and everything tapped."""
    seen: dict[str, Tensor] = {}

    def record(key: str, value: Tensor) -> Tensor:
        seen[key] = value
        return value

    return model(random_ids(2, 13), kernel=kernel, taps=record), seen


@torch.no_grad()
def changed_by_looking(model: Decoder, kernel: Kernel) -> int:
    """Count the logits that differ in any bit."""
    return int((looked_into(model, kernel)[0] != model(random_ids(2, 13), kernel=kernel)).sum())


def pattern_of(model: Decoder, seen: dict[str, Tensor], depth: int) -> Tensor:
    """Return ``softmax(scale q k^T)`` under the causal mask, from the tapped queries and keys alone."""
    attention = model.stack.blocks[depth].get_submodule("attention.branch")
    assert isinstance(attention, MultiHeadAttention)
    q_BHLC, k_BKLC = (seen[f"blocks.{depth}.attention.{x}"] for x in "qk")
    k_BHLC = k_BKLC.repeat_interleave(q_BHLC.shape[1] // k_BKLC.shape[1], dim=1)
    scores_BHLL = attention.scale * q_BHLC @ k_BHLC.mT
    later = torch.ones_like(scores_BHLL, dtype=torch.bool).triu(1)
    return scores_BHLL.masked_fill(later, float("-inf")).softmax(-1)


@torch.no_grad()
def derived(model: Decoder) -> float:
    """Compare derived pattern times values with the fused kernel's output, at every depth."""
    _, seen = looked_into(model)
    worst = 0.0
    for depth in range(len(model.stack.blocks)):
        pattern_BHLL = pattern_of(model, seen, depth)
        v_BKLC = seen[f"blocks.{depth}.attention.v"]
        v_BHLC = v_BKLC.repeat_interleave(pattern_BHLL.shape[1] // v_BKLC.shape[1], dim=1)
        worst = max(worst, deviation(pattern_BHLL @ v_BHLC, seen[f"blocks.{depth}.attention.mixed"]))
    return worst


@torch.no_grad()
def patterns(model: Decoder) -> float:
    """Compare derived patterns with those that the eager kernel shows."""
    _, seen = looked_into(model, eager)
    depths = range(len(model.stack.blocks))
    return max(deviation(pattern_of(model, seen, d), seen[f"blocks.{d}.attention.pattern"]) for d in depths)


def rebuilt_stream(seen: dict[str, Tensor]) -> Tensor:
    """Return the embeddings plus everything that was added (pre-norm families)."""
    return seen["embedded"] + sum(value for key, value in seen.items() if key.endswith(".added"))


@torch.no_grad()
def streams(model: Decoder) -> float:
    """Compare the rebuilt stream with the last block's."""
    _, seen = looked_into(model)
    return deviation(rebuilt_stream(seen), seen[f"blocks.{len(model.stack.blocks) - 1}.resid_post"])


@torch.no_grad()
def components(model: Decoder) -> float:
    """Compare the logits of the rebuilt stream with the model's."""
    logits, seen = looked_into(model)
    return deviation(model.head(model.stack.final(rebuilt_stream(seen))), logits)
