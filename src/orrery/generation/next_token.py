"""The next token of rows: what may follow, what is picked of it, and the row that takes it."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from orrery.errors import RunError
from orrery.generation.row import GenerationRow


class Choice(ABC):
    """How one of the tokens that may follow is picked, and who is told of it."""

    @abstractmethod
    def pick(self, places: Sequence[int], allowed_NV: Float[Tensor, "N V"]) -> Sequence[int]:
        """Return the token of each of some rows; ``allowed_NV`` are their logits, minus infinity where none may be."""

    def take(self, place: int, row: GenerationRow, token: int) -> bool:
        """Give a row its token; return whether it goes on."""
        return row.take(token)

    def failed(self, places: Sequence[int], error: Exception) -> None:
        """Hear that rows have no next token; by default nobody goes on."""
        raise error


def write(rows: Sequence[GenerationRow], logits_NV: Float[Tensor, "N V"], choice: Choice) -> list[int]:
    """Write one token into each row: what its constraints and its guides allow, what is picked of it, what it takes.

    Args:
        rows: the answers, all of which go on.
        logits_NV: those of each.
        choice: picks.

    Returns:
        The places of the rows that go on.
    """
    places, allowed_NV = _allowed(rows, logits_NV, choice)
    try:
        tokens = choice.pick(places, at(allowed_NV, places)) if places else ()
    except Exception as error:  # a choice knows whom it concerns
        choice.failed(places, error)
        return []
    going = []
    for place, token in zip(places, tokens, strict=True):
        try:
            if choice.take(place, rows[place], token):
                going.append(place)
        except Exception as error:  # of a guide, or of whoever listens
            choice.failed([place], error)
    return going


def at(logits_NV: Float[Tensor, "N V"], places: Sequence[int]) -> Float[Tensor, "G V"]:
    """Return the logits of some rows, without a copy where they are all."""
    return logits_NV if len(places) == len(logits_NV) else logits_NV[torch.tensor(places, device=logits_NV.device)]


def check_logits(logits_BV: Tensor) -> None:
    """Refuse logits from which nothing can be chosen.

    Raises:
        RunError: one of them is NaN.
    """
    # The greatest of numbers with a NaN among them is NaN, and comes of one reading without a copy.
    if bool(logits_BV.amax(-1).isnan().any()):
        raise RunError(
            "the model's logits are not numbers (NaN)",
            'the weights may be damaged, or 16-bit numbers overflow: try `dtype="float32"`',
        )


def _allowed(
    rows: Sequence[GenerationRow], logits_NV: Float[Tensor, "N V"], choice: Choice
) -> tuple[list[int], Float[Tensor, "N V"]]:
    """Return the places of the rows that may go on, and the logits of the tokens that may come next in each."""
    changed: dict[int, Tensor] = {}
    places = []
    sound = not bool(logits_NV.sum().isnan())  # quick: one that is no number leaves none of the sum
    for place, row in enumerate(rows):
        try:
            if not sound:
                check_logits(logits_NV[place, None])
            if not row.free:
                changed[place] = row.allowed(logits_NV[place])
        except Exception as error:  # of whatever kind: the neighbours go on, where the choice lets them
            choice.failed([place], error)
        else:
            places.append(place)
    if changed:
        logits_NV = logits_NV.clone()
        for place, own_V in changed.items():
            logits_NV[place] = own_V
    return places, logits_NV
