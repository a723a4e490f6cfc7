"""Gradients of a prediction: saliency, gradient times input, and integrated gradients, for every token that is read."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Unpack

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from orrery.inspection.attribution.asked import AttributionRequest
from orrery.inspection.attribution.rerun import ExplainedScore, Rerun
from orrery.inspection.checks import Check, bound, error
from orrery.inspection.recorded import RecordedPass

COMPLETE = 0.01
"""How far the sum of integrated gradients may be from the difference, as a share of all that they move, either way."""
SLOPE = 0.05
"""How far a gradient may be from the slope that two scores beside it show, as a share of the gradient.

Measured over all families, five seeds each, in float64 and float32: at most 0.006, and 0.02 at the kinks of ReLU.
"""
STEPS = (1e-2, 1e-3, 1e-4)
"""How far beside, as a share of the length of the vectors: a long step meets bends, a short one is rounded away."""


@dataclass(frozen=True)
class Saliency:
    """What each token that was read has to do with a prediction.

    Attributes:
        value_BL: for each token of the row that the answer belongs to.
        source_BS: for each token of the source, where there is one.
        score_B: the logit, the difference of two, or the log probability.
        token_B: the token.
        check: of integrated gradients how far their sum is from the difference to the baseline, of the others how far
            they are from the slope of the score, each as a share of what they move, either way; as a share of the
            difference it would say nothing where tokens cancel. In a format of 16 bits, whose scores are too coarse to
            have a slope, that what was differentiated has the score of the pass.
    """

    value_BL: Float[Tensor, "B L"]
    source_BS: Float[Tensor, "B S"] | None
    score_B: Float[Tensor, "B"]
    token_B: Int[Tensor, "B"]
    check: Check


def saliency(trace: RecordedPass, token: int | None = None, **asked: Unpack[AttributionRequest]) -> Saliency:
    """Return ``|d score / d x_t|``: the length of the gradient at each token's vector (Simonyan et al. 2014).

    The vectors are those from the table, before positions (``looked_up``). A log probability has the gradient of the
    logit less that of what all tokens have in common. The check walks along the gradient: its length is the slope.

    Args:
        trace: of any model; its edits are made again.
        token: an id, or a label of a classifier; by default the most probable.
        asked: ``against``, ``position`` and ``measure``.

    Raises:
        UsageError: no such token, position or measure.
    """
    run = Rerun(trace, ExplainedScore(trace, token, **asked))
    gradients = run.gradients(run.vectors)
    length_B = _sum([gradient.square() for gradient in gradients]).sqrt()
    unit = [gradient / _over(length_B, gradient) for gradient in gradients]
    check = _slope(run, unit, length_B, length_B)
    return _result(run, [gradient.norm(dim=-1) for gradient in gradients], check)


def gradient_times_input(
    trace: RecordedPass, token: int | None = None, **asked: Unpack[AttributionRequest]
) -> Saliency:
    """Return ``x_t . d score / d x_t``: the first-order guess of what a token's vector adds; see ``saliency``.

    The check makes the vectors of tokens with a positive value longer and the others shorter, where the slope is the
    sum of the absolute values.
    """
    run = Rerun(trace, ExplainedScore(trace, token, **asked))
    pairs = list(zip(run.gradients(run.vectors), run.vectors, strict=True))
    values = [(gradient * x).sum(-1) for gradient, x in pairs]
    length_B, slope_B = _sum([x.square() for x in run.vectors]).sqrt(), _sum([value.abs() for value in values])
    unit = [x * value.sign()[..., None] / _over(length_B, x) for x, value in zip(run.vectors, values, strict=True)]
    # All values are zero where a norm, which takes a vector's length away, is the first to read it.
    most_B = _sum([gradient.norm(dim=-1) * x.norm(dim=-1) for gradient, x in pairs])
    return _result(run, values, _slope(run, unit, slope_B / length_B, slope_B.maximum(most_B / 10) / length_B))


def integrated_gradients(
    trace: RecordedPass,
    token: int | None = None,
    *,
    baseline: int | None = None,
    steps: int = 256,
    batch_size: int = 32,
    **asked: Unpack[AttributionRequest],
) -> Saliency:
    """Return ``(x_t - b) . mean of d score / d x_t`` over the straight way from ``b`` to ``x``.

    Sundararajan et al. 2017. All tokens walk together, those of a source too. The sum over tokens is the difference of
    the scores at both ends, which the check compares. Differs from the paper: the baseline is not zero, where a
    norm has no direction to keep, but the mean of the table; the integral is Gauss and Legendre's.

    Args:
        trace: as in ``saliency``.
        token: as there.
        baseline: a token whose vector every token comes from, such as that of a mask; by default the mean of all.
        steps: of the integral.
        batch_size: steps that are computed at once, for every row.
        asked: as there.

    Raises:
        UsageError: as in ``saliency``, or no such baseline.
    """
    run = Rerun(trace, ExplainedScore(trace, token, **asked))
    starts = run.baselines(baseline)
    means = _mean_gradients(run, starts, steps, run.at_once(batch_size))
    values = [((x - start) * mean).sum(-1) for x, start, mean in zip(run.vectors, starts, means, strict=True)]
    gain_B = run.score(run.vectors) - run.score(starts)
    off = _share(_sum(values) - gain_B, _sum([value.abs() for value in values]))
    return _result(run, values, Check("integrated gradients sum to the difference", off, COMPLETE))


def _mean_gradients(run: Rerun, starts: Sequence[Tensor], steps: int, batch_size: int) -> list[Tensor]:
    """Return the mean gradient on the way from the starts to the vectors, for each side."""
    means = [torch.zeros_like(x) for x in run.vectors]
    for share_N, weight_N in _legendre(steps, batch_size):
        at = [_along(start, x - start, share_N) for start, x in zip(starts, run.vectors, strict=True)]
        for mean, gradient in zip(means, run.gradients(at), strict=True):
            mean += torch.einsum("n,nb...->b...", weight_N.to(mean), gradient.unflatten(0, (len(weight_N), -1)))
    return means


def _legendre(steps: int, batch_size: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield the places between 0 and 1 and their weights, some at a time."""
    nodes, weights = np.polynomial.legendre.leggauss(steps)
    for begin in range(0, steps, batch_size):
        some = slice(begin, begin + batch_size)
        yield torch.tensor((nodes[some] + 1) / 2), torch.tensor(weights[some] / 2)


def _slope(run: Rerun, direction: Sequence[Tensor], slope_B: Tensor, moved_B: Tensor) -> Check:
    """Compare a slope with the scores on both sides of the vectors: ``(f(x + h d) - f(x - h d)) / 2h``.

    Of several steps the closest counts: a gradient that is wrong is so at all of them.
    """
    if torch.finfo(slope_B.dtype).bits == 16:
        own = error(run.score(run.vectors), run.wanted.of(run.trace.logits))
        return Check("what was differentiated has the score of the pass", own, bound(slope_B.dtype))
    length = float(_sum([x.square() for x in run.vectors]).sqrt().max())
    steps = [share * length for share in STEPS]
    sides_N = torch.tensor([side for step in steps for side in (step, -step)])
    scores = [
        run.score([_along(x, d, some_N) for x, d in zip(run.vectors, direction, strict=True)])
        for some_N in sides_N.split(run.at_once(len(sides_N)))
    ]
    ends = torch.cat(scores).view(len(steps), 2, -1)
    shares = [
        _share((after_B - before_B) / (2 * step) - slope_B, moved_B)
        for step, (after_B, before_B) in zip(steps, ends, strict=True)
    ]
    return Check("the score moves as the gradient says", min(shares), SLOPE)


def _along(from_BLD: Tensor, direction_BLD: Tensor, share_N: Tensor) -> Float[Tensor, "NB L D"]:
    """Return the vectors at some shares of the way, those of one share after those of another."""
    share_N111 = share_N.to(from_BLD)[:, None, None, None]
    return (from_BLD + share_N111 * direction_BLD).flatten(0, 1)


def _sum(values: Sequence[Tensor]) -> Float[Tensor, "B"]:
    """Return the sum of each row over all sides, tokens and channels."""
    return torch.stack([value.flatten(1).sum(-1) for value in values]).sum(0)


def _over(length_B: Tensor, x: Tensor) -> Tensor:
    return length_B.clamp(min=torch.finfo(length_B.dtype).tiny).view(-1, *[1] * (x.dim() - 1))


def _share(off_B: Tensor, moved_B: Tensor) -> float:
    return float((off_B.abs() / moved_B.clamp(min=torch.finfo(moved_B.dtype).tiny)).max())


def _result(run: Rerun, values: Sequence[Tensor], check: Check) -> Saliency:
    """Return the values by side, with what they explain."""
    source_BS = values[0] if len(values) > 1 else None
    return Saliency(values[-1], source_BS, run.wanted.of(run.trace.logits), run.wanted.token_B, check)
