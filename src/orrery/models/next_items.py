"""What a model over items says of the next one: scores of all items at one place of each history."""

from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor


def scores_of(
    model: Any,
    asked_BL: Int[Tensor, "B L"],
    ends_B: Int[Tensor, "B"],
    place_B: Int[Tensor, "B"],
    new: tuple[Float[Tensor, "N D"], float] | None = None,
) -> Float[Tensor, "B V"]:
    """Return the logits at one place of each row, of the main head or of that of masked tokens.

    A decoder is asked at the last item, an encoder at a mask; no logits are made of other places.

    Args:
        model: a decoder or an encoder over items.
        asked_BL: the histories, padded on the right.
        ends_B: how many tokens each has.
        place_B: where each is asked.
        new: further rows of the head's table, and their bias: items whose scores stand behind the others.
    """
    batch: dict[str, Tensor] = {"ids": asked_BL}
    real_BL = torch.arange(asked_BL.shape[1], device=asked_BL.device) < ends_B[:, None]
    if not (model.spec.writes or bool(real_BL.all())):  # what writes sees nothing behind the place
        batch["real"] = real_BL

    def at_place(head: Any, x_BLD: Tensor, _: Tensor | None) -> Tensor:
        x_BD = x_BLD[torch.arange(len(x_BLD), device=x_BLD.device), place_B]
        scores_BV: Tensor = head(x_BD)
        if new is None:
            return scores_BV
        rows_ND, bias = new
        return torch.cat([scores_BV, head.cap(head.transform(x_BD) @ rows_ND.T + bias)], 1)

    name = "masked" if "masked" in model.spec.heads else model.spec.head_names[0]
    found: Tensor = model(batch, {name: at_place})[name]
    return found


def candidates_of(
    items_V: Bool[Tensor, "V"], asked_BL: Int[Tensor, "B L"], place_B: Int[Tensor, "B"], scores: int, seen: bool
) -> Bool[Tensor, "B V"]:
    """Return which tokens each row ranks: the items, without those of its own history unless ``seen``.

    Args:
        items_V: which tokens are items.
        asked_BL: the histories.
        place_B: where each is asked.
        scores: how many scores a row has; a table may be longer than its tokenizer.
        seen: rank the items of the history too.
    """
    kept_V = torch.zeros(scores, dtype=torch.bool, device=items_V.device)
    kept_V[: len(items_V)] = items_V[:scores]
    kept_BV = kept_V.repeat(len(asked_BL), 1)
    if seen:
        return kept_BV
    past_BL = torch.arange(asked_BL.shape[1], device=asked_BL.device) <= place_B[:, None]
    # Padding has the number of a token too: what is no history is scattered onto the row's own first item.
    own_BL = torch.where(past_BL, asked_BL, asked_BL[:, :1])
    return kept_BV.scatter(1, own_BL, False)
