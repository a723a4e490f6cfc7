"""Gradients of a prediction: saliency, gradient times input, and integrated gradients, for every token that is read."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from orrery.errors import UsageError
from orrery.inspection.attribution.vocabulary import checked
from orrery.inspection.checks import Check
from orrery.inspection.edits import Edit
from orrery.inspection.recorder import Recorder
from orrery.inspection.trace import Trace
from orrery.nn.attention.kernels import eager, sdpa

MEASURES = ("logit", "log_probability")
COMPLETE = 0.01
"""How far the sum of integrated gradients may be from the difference, as a share of all that they move, either way."""


@dataclass(frozen=True)
class Saliency:
    """What each token that was read has to do with a prediction.

    Attributes:
        value_BL: for each token of the row that the answer belongs to.
        source_BS: for each token of the source, where there is one.
        score_B: the logit, the difference of two, or the log probability.
        token_B: the token.
        check: of integrated gradients: how far their sum is from the difference to the baseline, as a share of the sum
            of their absolute values; as a share of the difference it would say nothing where tokens cancel.
    """

    value_BL: Float[Tensor, "B L"]
    source_BS: Float[Tensor, "B S"] | None
    score_B: Float[Tensor, "B"]
    token_B: Int[Tensor, "B"]
    check: Check | None = None


def saliency(
    trace: Trace,
    token: int | None = None,
    *,
    against: int | None = None,
    position: int = -1,
    measure: str = "logit",
) -> Saliency:
    """Return ``|d score / d x_t|``: the length of the gradient at each token's vector (Simonyan et al. 2014).

    The vectors are those from the table, before positions (``looked_up``). A log probability has the gradient of the
    logit less that of what all tokens have in common.

    Args:
        trace: of any model; its edits are made again.
        token: an id, or a label of a classifier; by default the most probable.
        against: another id, whose logit is subtracted.
        position: of the prediction, a negative one from the right.
        measure: ``logit`` or ``log_probability``, in nats.

    Raises:
        UsageError: no such token or position.
    """
    run = _Run(trace, _Score(trace, token, against, position, measure))
    return run.result([gradient.norm(dim=-1) for gradient in run.gradients(run.vectors)])


def gradient_times_input(
    trace: Trace,
    token: int | None = None,
    *,
    against: int | None = None,
    position: int = -1,
    measure: str = "logit",
) -> Saliency:
    """Return ``x_t . d score / d x_t``: the first-order guess of what a token's vector adds; see ``saliency``."""
    run = _Run(trace, _Score(trace, token, against, position, measure))
    pairs = zip(run.gradients(run.vectors), run.vectors, strict=True)
    return run.result([(gradient * x).sum(-1) for gradient, x in pairs])


def integrated_gradients(
    trace: Trace,
    token: int | None = None,
    *,
    against: int | None = None,
    position: int = -1,
    measure: str = "logit",
    baseline: int | None = None,
    steps: int = 256,
    batch_size: int = 32,
) -> Saliency:
    """Return ``(x_t - b) . mean of d score / d x_t`` over the straight way from ``b`` to ``x``.

    Sundararajan et al. 2017. All tokens walk together, those of a source too. The sum over tokens is the difference of
    the scores at both ends, which the check compares. Differs from the paper: the baseline is not zero, where a
    norm has no direction to keep, but the mean of the table; the integral is Gauss and Legendre's.

    Args:
        trace: as in ``saliency``.
        token: as there.
        against: as there.
        position: as there.
        measure: as there.
        baseline: a token whose vector every token comes from, such as that of a mask; by default the mean of all.
        steps: of the integral.
        batch_size: steps that are computed at once, for every row.

    Raises:
        UsageError: as in ``saliency``, or no such baseline.
    """
    run = _Run(trace, _Score(trace, token, against, position, measure))
    starts = run.baselines(baseline)
    nodes, weights = np.polynomial.legendre.leggauss(steps)
    means = [torch.zeros_like(x) for x in run.vectors]
    batch_size = 1 if trace.call.edit else batch_size  # an edit may know the number of rows
    for begin in range(0, steps, batch_size):
        shares = torch.tensor((nodes[begin : begin + batch_size] + 1) / 2)
        some = torch.tensor(weights[begin : begin + batch_size] / 2)
        at = [_between(start, x, shares) for start, x in zip(starts, run.vectors, strict=True)]
        for mean, gradient in zip(means, run.gradients(at), strict=True):
            mean += torch.einsum("n,nb...->b...", some.to(mean), gradient.unflatten(0, (len(some), -1)))
    values = [((x - start) * mean).sum(-1) for x, start, mean in zip(run.vectors, starts, means, strict=True)]
    total_B = torch.stack([value.sum(-1) for value in values]).sum(0)
    gain_B = run.score(run.vectors) - run.score(starts)
    moved_B = torch.stack([value.abs().sum(-1) for value in values]).sum(0)
    off = float(((total_B - gain_B).abs() / moved_B.clamp(min=torch.finfo(moved_B.dtype).tiny)).max())
    return run.result(values, Check("integrated gradients sum to the difference", off, COMPLETE))


class _Score:
    """The number that is explained: of a token at a position, or of a label."""

    def __init__(self, trace: Trace, token: int | None, against: int | None, position: int, measure: str) -> None:
        if measure not in MEASURES:
            raise UsageError(f"no measure {measure!r}", f"it is {' or '.join(MEASURES)}")
        logits = trace.logits
        if logits.dim() > 2 and not -logits.shape[1] <= position < logits.shape[1]:
            raise UsageError(f"position {position} of {logits.shape[1]}", "give one that the row has")
        self.position, self.measure, self.against = position, measure, against
        row_BV = self._row(logits)
        ids = [None if id is None else checked(id, row_BV.shape[-1]) for id in (token, against)]
        self.token_B = row_BV.argmax(-1) if ids[0] is None else torch.full_like(row_BV.argmax(-1), ids[0])

    def of(self, logits: Tensor) -> Float[Tensor, "N"]:
        """Return the score of every row; rows are those of the trace, as often as it takes."""
        row_NV = self._row(logits)
        row_NV = row_NV.to(torch.promote_types(row_NV.dtype, torch.float32))
        row_NV = row_NV.log_softmax(-1) if self.measure == "log_probability" else row_NV
        token_N = self.token_B.repeat(len(row_NV) // len(self.token_B))
        score_N = row_NV.gather(-1, token_N[:, None])[:, 0]
        return score_N if self.against is None else score_N - row_NV[:, self.against]

    def _row(self, logits: Tensor) -> Tensor:
        return logits if logits.dim() == 2 else logits[:, self.position]


class _Run:
    """The model of a trace as a function of the vectors of the tokens that it reads.

    Attributes:
        vectors: what was looked up: of the source first, where there is one.
    """

    def __init__(self, trace: Trace, wanted: _Score) -> None:
        self.trace, self.wanted = trace, wanted
        path = trace.model.stack.path
        self.keys = [f"{path}looked_up"]
        if len(trace.inputs) > 1:
            self.keys.insert(0, "encoder.looked_up")
        recorder = Recorder(self.keys, trace.call.edit)
        with torch.no_grad():
            self._call(recorder, 1)
        self.vectors = [recorder.values[key].detach() for key in self.keys]

    def score(self, vectors: Sequence[Tensor]) -> Float[Tensor, "B"]:
        """Return the score of each row for other vectors."""
        with torch.no_grad():
            return self._scored(vectors)

    def gradients(self, vectors: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """Return the gradients of the rows' scores at some vectors, each row's its own."""
        # Without cuDNN: its recurrences have no backward in eval mode.
        with torch.enable_grad(), torch.backends.cudnn.flags(enabled=False):
            leaves = [x.clone().requires_grad_() for x in vectors]
            return torch.autograd.grad(self._scored(leaves).sum(), leaves, materialize_grads=True)

    def baselines(self, token: int | None) -> list[Tensor]:
        """Return where the way begins, for each of the vectors."""
        return [_start(self.trace.model, key, x, token) for key, x in zip(self.keys, self.vectors, strict=True)]

    def result(self, values: Sequence[Tensor], check: Check | None = None) -> Saliency:
        """Return the values by side, with what they explain."""
        source_BS = values[0] if len(values) > 1 else None
        return Saliency(values[-1], source_BS, self.wanted.of(self.trace.logits), self.wanted.token_B, check)

    def _scored(self, vectors: Sequence[Tensor]) -> Tensor:
        replaced: dict[str, Edit] = dict(self.trace.call.edit)
        for key, x in zip(self.keys, vectors, strict=True):
            replaced.pop(key, None)  # what is looked up has been edited already; ours comes last
            replaced[key] = _instead(x)
        return self.wanted.of(self._call(Recorder((), replaced), len(vectors[0]) // len(self.vectors[0])))

    def _call(self, recorder: Recorder, times: int) -> Tensor:
        """Run the model on its rows, one after the other, so many times."""
        model = self.trace.model
        inputs = [x.repeat(times, *[1] * (x.dim() - 1)) for x in self.trace.inputs]
        call = {name: _repeated(value, len(self.trace.ids), times) for name, value in self.trace.call.how.items()}
        kernel = eager if model.kernel is eager or self.trace.call.edit else sdpa
        return model.logits(*inputs, kernel=kernel, taps=recorder, **call)


def _instead(x: Tensor) -> Edit:
    def edit(value: Tensor, key: str) -> Tensor:
        return x

    return edit


def _repeated(value: Any, rows: int, times: int) -> Any:
    if not isinstance(value, Tensor) or value.shape[:1] != (rows,):
        return value
    return value.repeat(times, *[1] * (value.dim() - 1))


def _between(start_BLD: Tensor, x_BLD: Tensor, share_N: Tensor) -> Float[Tensor, "NB L D"]:
    """Return the vectors at some shares of the way, those of one share after those of another."""
    share_N111 = share_N.to(x_BLD)[:, None, None, None]
    return (start_BLD + share_N111 * (x_BLD - start_BLD)).flatten(0, 1)


@torch.no_grad()
def _start(model: Any, key: str, x_BLD: Tensor, token: int | None) -> Tensor:
    """Return the vector from which all tokens of one side come; of patches, which have no table, zero."""
    if key.startswith("encoder."):
        embed, enter = model.reader.embed, getattr(model.reader, "stack", model.reader).enter
    else:
        embed, enter = getattr(model, "target", None) or model.embed, model.stack.enter
    table = getattr(embed, "token", None)
    if not isinstance(table, torch.nn.Embedding):
        return torch.zeros_like(x_BLD)
    row_D = table.weight.mean(0) if token is None else table.weight[checked(token, table.num_embeddings)]
    return enter(row_D.detach()).expand_as(x_BLD)
