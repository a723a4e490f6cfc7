"""The rewards that a model with one number a row gives conversations."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import torch

from orrery.data.batches.padded_rows import padded
from orrery.data.rows.conversations import Conversation
from orrery.data.sources.preferences import rendered
from orrery.errors import UsageError
from orrery.exchange.reading.read import Stored
from orrery.generation.batched import in_batches
from orrery.text.chat.messages import Message
from orrery.text.chat.render import ChatTemplate

if TYPE_CHECKING:
    from torch import Tensor

BATCH = 32
"""Conversations read at once."""


def reward_head(stored: Stored) -> str:
    """Return the name of the head that gives a row one number.

    Raises:
        UsageError: the model has none.
    """
    heads: Any = stored.model.spec.heads
    head_name = next(
        (name for name, head in heads.items() if getattr(head, "labels", 0) == 1 and hasattr(head, "pooler")), ""
    )
    if not head_name:
        known = ", ".join(stored.model.spec.head_names) or "none"
        message = f"{stored.folder} has no head that gives a row one number, only {known}"
        raise UsageError(message, "train one: orrery reward MODEL --train FILE")
    return head_name


def rewards(
    stored: Stored, template_of: Callable[[], ChatTemplate], conversations: Sequence[Sequence[Message]]
) -> list[float]:
    """Return the reward of each conversation, which ends with a reply; see ``LanguageModel.rewards``."""
    reward_head(stored)  # a model without one is refused before its template is looked for
    template = template_of()
    sides = [
        rendered(template, Conversation(f"conversation {number}", tuple(each)))
        for number, each in enumerate(conversations, start=1)
    ]
    return rewards_of_ids(stored, [side.ids for side in sides])


@torch.no_grad()
def rewards_of_ids(stored: Stored, rows: Sequence[Sequence[int]]) -> list[float]:
    """Return the reward of each row of ids.

    Raises:
        UsageError: the model gives none, or a row is longer than its context.
    """
    head, context = reward_head(stored), stored.model.spec.context
    for number, row in enumerate(rows, start=1):
        if len(row) > context:
            message = f"conversation {number} has {len(row):,} tokens, the model's context {context:,}"
            raise UsageError(message, "leave out its earliest messages")
    device = next(stored.model.parameters()).device

    def measure(numbers: list[int]) -> list[float]:
        batch = padded([{"ids": list(rows[number])} for number in numbers])
        found_B1: Tensor = stored.model({name: field.to(device) for name, field in batch.items()}, (head,))[head]
        values: list[float] = found_B1[:, 0].double().tolist()
        return values

    return in_batches([len(row) for row in rows], BATCH, measure)
