"""Many edited runs of the same texts at once: each variant is rows of a batch with changes of its own."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, final

import torch
from jaxtyping import Float, Int
from torch import Tensor

from orrery.errors import UsageError
from orrery.inspection.edits import Edit
from orrery.inspection.recorder import Recorder, refuse_training
from orrery.models.model import Model
from orrery.nn.attention.kernels import Kernel
from orrery.nn.context import Execution
from orrery.nn.heads import LanguageModelHead

ROWS = 64
"""Rows of a batch, where nobody says another number."""
Done = Callable[[int, int], None]
"""Told after each batch how many of how many variants have run."""

Item = TypeVar("Item")
_EVERY = slice(None)


@final
@dataclass(frozen=True)
class RowChange:
    """What stands at a part of a tensor in one variant.

    Attributes:
        key: of the tensor.
        part: an index into it behind the axis of rows: ``(head, position)``, ``(slice(None), 3)``.
        change: from what stands there, ``[B, ...]``, to what shall stand there.
    """

    key: str
    part: tuple[Any, ...]
    change: Callable[[Tensor], Tensor]


def put(key: str, part: tuple[Any, ...], source: Tensor) -> RowChange:
    """Return the change that puts a part of another run's tensor in, which has one row for each text."""
    taken = source[(_EVERY, *part)]
    return RowChange(key, part, lambda value: taken.expand_as(value))


@torch.no_grad()
def run_variants(
    model: Model,
    ids_BL: Int[Tensor, "B L"],
    variants: Sequence[Sequence[RowChange]],
    *,
    position: int = -1,
    rows: int = ROWS,
    done: Done | None = None,
    kernel: Kernel | None = None,
) -> Iterator[Float[Tensor, "N B V"]]:
    """Run the texts once for each variant, several variants a forward pass, and yield the logits of one position.

    Args:
        model: what reads the texts and scores next tokens, in eval mode.
        ids_BL: the texts.
        variants: of each run its changes, none of which overlap.
        position: whose logits are asked for.
        rows: the most rows of one pass.
        done: told after each pass how many of how many variants have run.
        kernel: by default the model's own; ``eager`` where scores or patterns change.

    Raises:
        UsageError: a tensor that no run shows.
    """
    texts = len(ids_BL)
    at_once = max(1, rows // texts)
    for start in range(0, len(variants), at_once):
        chunk = variants[start : start + at_once]
        recorder = Recorder(keep=(), edit=_edits(chunk, texts))
        logits_RV = last_logits(model, ids_BL.repeat(len(chunk), 1), position, taps=recorder, kernel=kernel)
        recorder.check_used()
        yield logits_RV.unflatten(0, (len(chunk), texts))
        if done is not None:
            done(min(start + at_once, len(variants)), len(variants))


def last_logits(model: Model, ids_RL: Int[Tensor, "R L"], position: int, **call: Any) -> Float[Tensor, "R V"]:
    """Return the logits of one position; the head sees that position alone."""

    def answer(head: LanguageModelHead, x_RLD: Tensor, real_RL: Tensor | None) -> Tensor:
        logits_RV: Tensor = head(x_RLD[:, position])
        return logits_RV

    main = model.spec.head_names[0]
    answered_RV: Tensor = model({"ids": ids_RL}, {main: answer}, Execution(**call))[main]
    return answered_RV


def check_reader(model: Model, *texts: Int[Tensor, "_ _"], position: int = -1) -> None:
    """Refuse what cannot be patched: a model that reads no one text, or texts of several lengths.

    Raises:
        UsageError: says which it is.
    """
    refuse_training(model)
    main = next(iter(model.named_heads.values()), None)
    if tuple(model.spec.inputs) != ("ids",) or not isinstance(main, LanguageModelHead):
        message = f"this model reads {' and '.join(model.spec.inputs)} and has the heads {model.spec.head_names}"
        raise UsageError(message, "take a model that reads one text and scores a vocabulary")
    shapes = [tuple(text.shape) for text in texts]
    if len(set(shapes)) > 1:
        message = f"the texts have {' and '.join(str(shape[1]) for shape in shapes)} tokens"
        raise UsageError(message, "take texts that differ in single tokens: every position needs its counterpart")
    if not -shapes[0][1] <= position < shapes[0][1]:
        raise UsageError(f"position {position} of a text of {shapes[0][1]} tokens", f"they are 0 to {shapes[0][1] - 1}")


def around(items: Sequence[Item], middle: int, window: int) -> Sequence[Item]:
    """Return ``window`` neighbours around one of a row, fewer at its ends."""
    return items[max(0, middle - (window - 1) // 2) : middle + window // 2 + 1]


def _edits(chunk: Sequence[Sequence[RowChange]], texts: int) -> dict[str, Edit]:
    """Return one edit for each tensor, which changes the rows of the variants that name it."""
    by_key: dict[str, list[tuple[int, RowChange]]] = {}
    for variant, changes in enumerate(chunk):
        for one in changes:
            by_key.setdefault(one.key, []).append((variant, one))

    def edit_of(changes: list[tuple[int, RowChange]]) -> Edit:
        def edit(value: Tensor, key: str) -> Tensor:
            value = value.clone()
            for variant, one in changes:
                rows = value[variant * texts : (variant + 1) * texts]
                rows[(_EVERY, *one.part)] = one.change(rows[(_EVERY, *one.part)])
            return value

        return edit

    return {key: edit_of(changes) for key, changes in by_key.items()}
