"""Activations: the values of some keys over many texts, a row of features for each token."""

from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from orrery.errors import UsageError
from orrery.inspection.interventions.places import axes_of
from orrery.inspection.recorder import Recorder, refuse_training
from orrery.inspection.research.variants import ROWS, Done
from orrery.models.model import HIDDEN, Model
from orrery.nn.context import Execution


@torch.no_grad()
def collect(
    model: Model,
    ids_BL: Int[Tensor, "B L"],
    keep: Sequence[str],
    *,
    rows: int = ROWS,
    done: Done | None = None,
    **fields: Tensor,
) -> dict[str, Float[Tensor, "B L F"]]:
    """Return what each key holds at every token of the texts, on the processor.

    The heads of ``q``, ``k``, ``v`` and ``mixed`` stand side by side: ``[B, H, L, C]`` becomes ``[B, L, H * C]``.

    Args:
        model: a model that reads one text, in eval mode.
        ids_BL: the texts.
        keep: patterns of keys, such as ``blocks.*.resid_post``.
        rows: the most rows of one forward pass.
        done: told after each pass how many of how many texts were read.
        fields: what else a batch has for each text, such as ``real`` where rows are padded.

    Raises:
        UsageError: a model in training mode or that reads something else, no text, a pattern that names nothing, or a
            value that has no features of tokens, such as a pattern of attention.
    """
    _check(model, ids_BL)
    values: dict[str, list[Tensor]] = {}
    for start in range(0, len(ids_BL), rows):
        here = slice(start, start + rows)
        recorder = Recorder(keep)
        batch: dict[str, Any] = {"ids": ids_BL[here], **{name: value[here] for name, value in fields.items()}}
        model(batch, (HIDDEN,), Execution(taps=recorder))
        recorder.check_used()
        for key, value in recorder.values.items():
            values.setdefault(key, []).append(by_token(key, value, ids_BL.shape[1]).cpu())
        if done is not None:
            done(min(start + rows, len(ids_BL)), len(ids_BL))
    return {key: torch.cat(parts) for key, parts in values.items()}


def by_token(key: str, value: Float[Tensor, "..."], length: int) -> Float[Tensor, "B L F"]:
    """Return a value with one row of features a token.

    Raises:
        UsageError: it has none.
    """
    axes = axes_of(key, value)
    if axes.channel is None or axes.position is None or value.shape[axes.position] != length:
        message = f"{key} is {list(value.shape)}, which are no features of {length} tokens"
        raise UsageError(message, "name a stream, what a part adds, or q, k, v and mixed of an attention")
    return value if axes.head is None else value.transpose(1, 2).flatten(2)


def held_back(texts: int, share: float, rng: torch.Generator) -> Bool[Tensor, "B"]:
    """Return which texts are held back: whole ones, so that no token of a text is on both sides.

    Raises:
        UsageError: none would be held back, or none would be left.
    """
    count = round(share * texts)
    if not 0 < count < texts:
        message = f"{share:g} of {texts} texts holds {count} back and leaves {texts - count}"
        raise UsageError(message, "give more texts, or another share between 0 and 1")
    held_B = torch.zeros(texts, dtype=torch.bool)
    held_B[torch.randperm(texts, generator=rng)[:count]] = True
    return held_B


def _check(model: Model, ids_BL: Tensor) -> None:
    refuse_training(model)
    if tuple(model.spec.inputs) != ("ids",):
        message = f"this model reads {' and '.join(model.spec.inputs)}"
        raise UsageError(message, "trace it, and give the values of the trace")
    if not len(ids_BL):
        raise UsageError("there is no text", "give one row of ids at least")
