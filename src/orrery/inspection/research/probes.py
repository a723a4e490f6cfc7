"""Linear probes: what can be read off the values of each layer by a linear map, beside controls for what it learns."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor

from orrery.errors import UsageError
from orrery.inspection.research.activations import by_token, collect, held_back
from orrery.inspection.research.readouts import LogisticRegression, Readout, ReadoutFit
from orrery.inspection.research.variants import ROWS, Done
from orrery.models.model import Model

LOGISTIC = LogisticRegression()


@final
@dataclass(frozen=True)
class Probing:
    """How well each value tells the labels, on texts that no probe was fitted on.

    Attributes:
        keys: of the values, one for each row.
        metric: what the scores are: accuracy, or R squared.
        score_N: of the probe.
        control_N: of a probe of the control task: each token of the vocabulary has a label drawn at random, the same
            wherever it stands, which only a probe that learns tokens by heart can tell (Hewitt & Liang 2019).
        shuffled_N: of a probe of the labels in a random order, which nothing can tell.
        baseline: of the best answer that looks at no value: the most frequent label, or the mean.
        readouts: the fitted probes.
        held_out_B: the texts that the scores are of.
    """

    keys: Sequence[str]
    metric: str
    score_N: Float[Tensor, "N"]
    control_N: Float[Tensor, "N"]
    shuffled_N: Float[Tensor, "N"]
    baseline: float
    readouts: Sequence[Readout]
    held_out_B: Bool[Tensor, "B"]

    @property
    def selectivity(self) -> Float[Tensor, "N"]:
        """The score less that of the control task: what the value tells and the probe has not learned by heart."""
        return self.score_N - self.control_N


def linear_probing(
    model: Model,
    ids_BL: Int[Tensor, "B L"],
    labels_BL: Shaped[Tensor, "B L"],
    keep: Sequence[str] = ("embedded", "blocks.*.resid_post"),
    *,
    regression: ReadoutFit = LOGISTIC,
    held_out: float = 0.25,
    seed: int = 1337,
    rows: int = ROWS,
    done: Done | None = None,
    **fields: Any,
) -> Probing:
    """Fit a probe on each value of a model over some texts, and score it on the others.

    Alain & Bengio 2016; the controls of Hewitt & Liang 2019.

    Args:
        model: a model that reads one text, in eval mode.
        ids_BL: the texts.
        labels_BL: of each token, a class or a number; below 0, or NaN, where there is none.
        keep: patterns of the keys that are read.
        regression: ``LogisticRegression`` for classes, ``RidgeRegression`` for numbers.
        held_out: the share of the texts that the scores are of.
        seed: of the split and of the controls.
        rows: the most rows of one forward pass.
        done: told after each probe how many of how many keys are done.
        fields: what else a batch has for each text, such as ``real``.

    Raises:
        UsageError: a pattern that names nothing, a value without features of tokens, or labels that do not fit.
    """
    values = collect(model, ids_BL, keep, rows=rows, **fields)
    return probe_values(values, ids_BL, labels_BL, regression=regression, held_out=held_out, seed=seed, done=done)


def probe_values(
    values: Mapping[str, Float[Tensor, "..."]],
    ids_BL: Int[Tensor, "B L"],
    labels_BL: Shaped[Tensor, "B L"],
    *,
    regression: ReadoutFit = LOGISTIC,
    held_out: float = 0.25,
    seed: int = 1337,
    done: Done | None = None,
) -> Probing:
    """Fit a probe on each value that is given, as `linear_probing` does on those of a run.

    Args:
        values: by key, such as those of a trace: ``[B, L, F]``, or ``[B, H, L, C]``.
        ids_BL: the tokens, from which the control task is made.
        labels_BL: of each token.
        regression: how a probe is fitted.
        held_out: the share of the texts that the scores are of.
        seed: of the split and of the controls.
        done: told after each probe.

    Raises:
        UsageError: values or labels that do not fit the tokens, or too few of them.
    """
    if labels_BL.shape != ids_BL.shape or not values:
        message = f"labels of {list(labels_BL.shape)} for tokens of {list(ids_BL.shape)} and {len(values)} values"
        raise UsageError(message, "give one label a token, and one value at least")
    ids_BL, labels_BL, rng = ids_BL.cpu(), labels_BL.cpu(), torch.Generator().manual_seed(seed)
    asked_BL = regression.asked(labels_BL)
    held_B = held_back(len(ids_BL), held_out, rng)
    fitted_BL, scored_BL = asked_BL & ~held_B[:, None], asked_BL & held_B[:, None]
    if not (bool(fitted_BL.any()) and bool(scored_BL.any())):
        raise UsageError("no label is left on one side of the split", "give more labels or another seed")
    tasks = [labels_BL, _by_token_type(ids_BL, labels_BL, asked_BL, rng), _shuffled(labels_BL, asked_BL, rng)]
    readouts, scores = [], []
    for number, (key, value) in enumerate(values.items(), start=1):
        x_BLF = by_token(key, value.detach().cpu(), ids_BL.shape[1])
        fits = [regression.fit(x_BLF[fitted_BL], task_BL[fitted_BL]) for task_BL in tasks]
        fits_and_tasks = zip(fits, tasks, strict=True)
        scores.append([regression.score(fit, x_BLF[scored_BL], task_BL[scored_BL]) for fit, task_BL in fits_and_tasks])
        readouts.append(fits[0])
        if done is not None:
            done(number, len(values))
    baseline = regression.baseline(labels_BL[fitted_BL], labels_BL[scored_BL])
    score_N, control_N, shuffled_N = torch.tensor(scores, dtype=torch.float64).unbind(1)
    return Probing(list(values), regression.metric, score_N, control_N, shuffled_N, baseline, readouts, held_B)


def _by_token_type(ids_BL: Tensor, labels_BL: Tensor, asked_BL: Tensor, rng: torch.Generator) -> Tensor:
    """Return the control task: one label for each token of the vocabulary, drawn as the labels are distributed."""
    types_T, place_BL = ids_BL.unique(return_inverse=True)
    known_N = labels_BL[asked_BL]
    drawn_T = known_N[torch.randint(len(known_N), (len(types_T),), generator=rng)]
    return torch.where(asked_BL, drawn_T[place_BL], labels_BL)


def _shuffled(labels_BL: Tensor, asked_BL: Tensor, rng: torch.Generator) -> Tensor:
    """Return the labels in a random order."""
    known_N = labels_BL[asked_BL]
    mixed_BL = labels_BL.clone()
    mixed_BL[asked_BL] = known_N[torch.randperm(len(known_N), generator=rng)]
    return mixed_BL
