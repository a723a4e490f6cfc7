"""What one step of training costs a model of any size: operations, and the activations that it keeps."""

import sys
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from orrery.errors import UsageError
from orrery.models.distinct_blocks import shortened
from orrery.models.inputs import Batch
from orrery.models.model import Answer, ModelSpec
from orrery.nn.cross_entropy import head_cross_entropy
from orrery.nn.heads import LanguageModelHead
from orrery.nn.inputs import Images
from orrery.planning.rehearsal import RehearsedCost, rehearsed

MOST_TOKENS, MOST_SCORES = 2**32, 2**52
"""Tokens of a step, and its pairs of tokens for a head: beyond these torch cannot count the bytes of a tensor."""


@dataclass(frozen=True)
class StepCost:
    """What a step costs.

    Attributes:
        forward: operations of the forward pass.
        training: those of the forward and the backward pass together.
        kept: bytes of activations that lie in memory when the backward pass begins.
    """

    forward: RehearsedCost
    training: RehearsedCost
    kept: int

    def __add__(self, other: "StepCost") -> "StepCost":
        """Return the sum."""
        return StepCost(self.forward + other.forward, self.training + other.training, self.kept + other.kept)

    def __rmul__(self, times: int) -> "StepCost":
        """Return several times as much."""
        return StepCost(times * self.forward, times * self.training, times * self.kept)


def cross_entropy(head: nn.Module, x_BLD: Tensor, real_BL: Tensor | None, *, most: int | None = None) -> Any:
    """Return the loss of all tokens, or what a head gives that scores no tokens."""
    if not isinstance(head, LanguageModelHead):
        return head(x_BLD, real_BL)
    targets_N = torch.zeros(x_BLD.shape[:2].numel(), dtype=torch.long)
    return head_cross_entropy(head, x_BLD.flatten(0, 1), targets_N, 0.0, most)


def at_once(head: nn.Module, x_BLD: Tensor, real_BL: Tensor | None) -> Any:
    """Return what `cross_entropy` does, all logits in one piece.

    A rehearsal holds none of them. The pieces of a long row, thousands alike, would cost it seconds, and neither the
    operations nor what is kept depends on their size: only the peak does, which is no part of `StepCost`.
    """
    return cross_entropy(head, x_BLD, real_BL, most=sys.maxsize)


def as_it_is(model: nn.Module) -> None:
    """Change nothing."""


def step_cost(
    spec: ModelSpec,
    rows: int,
    length: int,
    dtype: torch.dtype = torch.bfloat16,
    answer: Answer = at_once,
    prepare: Callable[[nn.Module], None] = as_it_is,
) -> StepCost:
    """Return the cost of a step on rows without padding, of any number of blocks: equal ones cost the same.

    Short models are rehearsed, in which every distinct block stands once, or one of them twice: the difference is the
    cost of that block.

    Args:
        spec: the architecture.
        rows: of the batch.
        length: tokens of each row; of the source and of the target where the model reads one.
        dtype: of products; weights, norms and sums stay float32.
        answer: what is done with each head; all that comes out is summed to the loss.
        prepare: what is done with the model first, such as ``recompute_blocks``.

    Raises:
        UsageError: rows or tokens of nothing, more tokens than the model has places for, or than torch can count.
    """
    if rows < 1 or length < 1:
        raise UsageError(f"a step on {rows} rows of {length} tokens", "give one row and one token at least")
    if (tokens := rows * length) > MOST_TOKENS or tokens * length > MOST_SCORES:
        message = f"a step on {rows:,} rows of {length:,} tokens is more than can be planned"
        raise UsageError(message, "give fewer or shorter rows: what a step costs grows in proportion to its rows")
    short, groups = shortened(spec)
    total = once = _rehearse(short, rows, length, dtype, answer, prepare)
    for stack, members in groups.items():
        for number, group in enumerate(members):
            if len(group.depths) > 1:
                twice = _rehearse(shortened(spec, (stack, number))[0], rows, length, dtype, answer, prepare)
                total = total + (len(group.depths) - 1) * (twice + -1 * once)
    return total


def example_batch(spec: ModelSpec, rows: int, length: int) -> Batch:
    """Return a batch of what a model reads: zeros, or nothing but shapes inside a rehearsal."""
    batch = dict[str, Tensor]()
    for name, read in spec.inputs.items():
        shape = read.shape if isinstance(read, Images) else (length,)
        batch[name] = torch.zeros(rows, *shape, dtype=torch.float32 if isinstance(read, Images) else torch.long)
    return batch


def _rehearse(
    spec: ModelSpec, rows: int, length: int, dtype: torch.dtype, answer: Answer, prepare: Callable[[nn.Module], None]
) -> StepCost:
    with rehearsed() as noted:
        model, batch = spec.build().train(), example_batch(spec, rows, length)
        prepare(model)
        narrow = torch.autocast("cpu", dtype) if dtype != torch.float32 else nullcontext()
        heads = dict.fromkeys(spec.head_names, answer) or None
        with noted.part("forward"), narrow, torch.no_grad():
            model(batch)
        before = noted.live
        with noted.part("training"):
            with narrow:
                out = model(batch, heads)
                loss = sum((part.float().sum() for part in out.values() if isinstance(part, Tensor)), torch.zeros(()))
            kept = noted.live - before
            loss.backward()
    return StepCost(noted.work["forward"], noted.work["training"], kept)
