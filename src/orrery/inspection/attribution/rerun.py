"""A traced run as a function of the vectors of the tokens that it read, with its score and its gradients."""

from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from orrery.errors import UsageError
from orrery.inspection.attribution.vocabulary import checked
from orrery.inspection.edits import Edit
from orrery.inspection.recorded import RecordedPass
from orrery.inspection.recorder import Recorder
from orrery.nn.attention.kernels import eager, sdpa
from orrery.tuning import BlockEmbedding, matrix_of

MEASURES = ("logit", "log_probability")


class ExplainedScore:
    """The number that is explained: of a token at a position, or of a label."""

    def __init__(
        self,
        trace: RecordedPass,
        token: int | None = None,
        *,
        against: int | None = None,
        position: int = -1,
        measure: str = "logit",
    ) -> None:
        if measure not in MEASURES:
            raise UsageError(f"no measure {measure!r}", f"it is {' or '.join(MEASURES)}")
        logits = trace.logits
        places = logits.shape[1:-1].numel()
        if logits.dim() > 2 and not -places <= position < places:
            raise UsageError(f"position {position} of {places}", "give one that the row has")
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
        return logits if logits.dim() == 2 else logits.flatten(1, -2)[:, self.position]


class Rerun:
    """The model of a trace as a function of the vectors of the tokens that it reads.

    Attributes:
        vectors: what was looked up: of the source first, where there is one.

    Raises:
        UsageError: a model that compares rows was given several.
    """

    def __init__(self, trace: RecordedPass, wanted: ExplainedScore) -> None:
        self.trace, self.wanted = trace, wanted
        if trace.model.spec.compares and len(trace.ids) > 1:
            message = (
                f"a score of {len(trace.ids)} rows at once: each is compared with all, so none has slopes of its own"
            )
            raise UsageError(message, "trace one picture and one text")
        path = trace.model.stack.path
        self.keys = [f"{path}looked_up"]
        if len(trace.inputs) > 1:
            self.keys.insert(0, "encoder.looked_up")
        recorder = Recorder(self.keys, trace.call.edit)
        with torch.no_grad():
            self._call(recorder, 1)
        self.vectors = [recorder.values[key].detach() for key in self.keys]

    def at_once(self, most: int) -> int:
        """Return how many copies of the rows may run at once: one where an edit may know the number of rows.

        So of a model that compares rows, whose copies would meet in the scores.
        """
        return 1 if self.trace.call.edit or self.trace.model.spec.compares else most

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


@torch.no_grad()
def _start(model: Any, key: str, x_BLD: Tensor, token: int | None) -> Tensor:
    """Return the vector from which all tokens of one side come; of patches, which have no table, zero."""
    if key.startswith("encoder."):
        reader = getattr(model, "sees", None) or model.reader
        embed, enter = reader.embed, getattr(reader, "stack", reader).enter
    else:
        answering = getattr(model, "reads", model)
        embed, enter = getattr(answering, "target", None) or getattr(answering, "embed", None), model.stack.enter
    table = getattr(embed, "token", None)
    if not isinstance(table, torch.nn.Embedding | BlockEmbedding):
        return torch.zeros_like(x_BLD)
    if token is None:
        row_D = matrix_of(table).mean(0)
    else:
        row_D = table(torch.tensor(checked(token, table.num_embeddings), device=x_BLD.device))
    return enter(row_D.detach()).expand_as(x_BLD)
