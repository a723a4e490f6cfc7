"""Which head of a model answers, what its labels are called, and logits as scores."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from orrery.errors import UsageError
from orrery.language_model.model import LanguageModel
from orrery.nn.spec import ModuleSpec

Scores = NDArray[np.floating[Any]]


def head_of(lm: LanguageModel, kind: type[ModuleSpec], usual: str, named: str | None, task: str) -> tuple[str, Any]:
    """Return the name and the spec of the head that a task asks: the one that is named, the usual one, or the first.

    Raises:
        UsageError: the model has no head of this kind.
    """
    heads = lm.model.spec.heads
    fit = [name for name, spec in heads.items() if isinstance(spec, kind)]
    name = named or (usual if usual in fit else next(iter(fit), None))
    if name not in fit:
        has = ", ".join(lm.model.spec.head_names) or "none"
        raise UsageError(f"this model has no head {named or usual!r} for {task}", f"its heads: {has}")
    return name, heads[name]


def names_of(spec: Any) -> list[str]:
    """Return what the labels of a head are called; ``LABEL_0`` and so on where they have no names."""
    return list(spec.names) or [f"LABEL_{number}" for number in range(spec.labels)]


def wide(logits: Float[Tensor, "*B N"]) -> Scores:
    """Return logits as an array, in float32 at least."""
    import torch

    widened: Scores = logits.to(torch.promote_types(logits.dtype, torch.float32)).numpy()
    return widened


def softmax(logits: Scores) -> Scores:
    """Return ``exp(z_i) / sum_j exp(z_j)`` over the last axis."""
    raised = np.exp(logits - logits.max(-1, keepdims=True))
    shares: Scores = raised / raised.sum(-1, keepdims=True)
    return shares


def sigmoid(logits: Scores) -> Scores:
    """Return ``1 / (1 + exp(-z))``, written so that no exponential overflows."""
    small = np.exp(-np.abs(logits))
    shares: Scores = np.where(logits >= 0, 1 / (1 + small), small / (1 + small))
    return shares


FUNCTIONS: Mapping[str, Callable[[Scores], Scores]] = {
    "softmax": softmax,
    "sigmoid": sigmoid,
    "none": lambda logits: logits,
}
"""What makes scores of logits."""


def labels_of(logits: Scores, spec: Any, function: str | None) -> list[dict[str, Any]]:
    """Return the labels of a head with their scores, the likeliest first.

    Args:
        logits: of one row.
        spec: of the head.
        function: ``softmax``, ``sigmoid`` or ``none``; else what the head's problem asks for.

    Raises:
        UsageError: the head has no labels.
    """
    scores, names = FUNCTIONS[_function(spec, function)](logits), names_of(spec)
    order = sorted(range(len(names)), key=lambda number: -float(scores[number]))
    return [{"label": names[number], "score": float(scores[number])} for number in order]


def _function(spec: Any, asked: str | None) -> str:
    """Return which function makes the scores."""
    if asked not in (None, "default"):
        return str(asked)
    if spec.problem == "regression":
        return "none"
    if spec.labels < 1:
        raise UsageError("this head has no labels", "choose another with head=")
    return "sigmoid" if spec.problem == "multi_label_classification" or spec.labels == 1 else "softmax"
