"""A conversation as a model reads it: its ids, and which of them the assistant wrote."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate
from typing import Literal

from orrery.data.batches.token_windows import IGNORE
from orrery.data.files import bad_record
from orrery.data.rows.conversations import Conversation, weight_of
from orrery.data.rows.messages import at
from orrery.errors import DataError
from orrery.text.chat.render import ChatTemplate
from orrery.text.chat.spans.encoding import Rendered

Replies = Literal["all", "last"]
"""Which replies of the assistant are learnt."""


def render(template: ChatTemplate, conversation: Conversation, replies: Replies = "all") -> Rendered:
    """Return the ids of a conversation, and which of them are learnt: those of the replies, their end tokens too.

    Which these are follows from where the template puts them, never from what the ids are.

    Raises:
        DataError: the template cannot say such a conversation, or a text in it would become a control token; its
            line is named.
        ModelFileError: the template fails.
    """
    rendered: Rendered = at(
        conversation.where,
        lambda: template.render(conversation.messages, replies=True, **conversation.beside),
    )
    if replies == "last":
        rendered = replace(rendered, reply=last_reply(rendered.reply))
    return weighted(rendered, conversation, replies)


def weighted(rendered: Rendered, conversation: Conversation, replies: Replies) -> Rendered:
    """Return a conversation without the replies whose weight is 0, and with the weights of those that count in part.

    Raises:
        DataError: nothing is left to learn, or the template does not part one reply from the next.
    """
    where = conversation.where
    learnt = [
        weight_of(message, where, number)
        for number, message in enumerate(conversation.messages)
        if message["role"] == "assistant"
    ]
    learnt = learnt if replies == "all" else learnt[-1:]
    if all(weight == 1 for weight in learnt):
        return rendered
    if not any(learnt):
        raise bad_record(where, "every reply that would be learnt has the weight 0")
    starts = {n for n, own in enumerate(rendered.reply) if own and (n == 0 or not rendered.reply[n - 1])}
    if len(starts) != len(learnt):
        message = (
            f"{where}: the template writes {len(learnt)} replies as {len(starts)} pieces, so that none has its weight"
        )
        raise DataError(message, "name a template that parts them: data.template chatml")
    places = [begun - 1 for begun in accumulate(n in starts for n in range(len(rendered.ids)))]
    weights = [own * learnt[place] for own, place in zip(rendered.reply, places, strict=True)]
    in_part = any(0 < weight < 1 for weight in learnt)
    return replace(rendered, reply=[weight > 0 for weight in weights], weights=weights if in_part else [])


def render_prompt(template: ChatTemplate, conversation: Conversation) -> list[int]:
    """Return the ids of a conversation up to where the assistant's next reply begins; errors as in `render`."""
    rendered: Rendered = at(
        conversation.where, lambda: template.render(conversation.messages, True, **conversation.beside)
    )
    return rendered.ids


def last_reply(reply: Sequence[bool]) -> list[bool]:
    """Return which ids are of the last reply; the template's own ids part it from the one before."""
    places = [place for place, of_reply in enumerate(reply) if of_reply]
    end = places[-1] + 1 if places else 0
    start = next((place for place in range(end - 1, 0, -1) if not reply[place - 1]), 0)
    return [start <= place < end for place in range(len(reply))]


def cut_to(rendered: Rendered, length: int) -> Rendered:
    """Return the beginning of a conversation, of at most ``length`` ids."""
    return Rendered(rendered.ids[:length], rendered.reply[:length], rendered.weights[:length])


def targets_of(rendered: Rendered) -> list[int]:
    """Return for each id the one after it, where the assistant wrote that, and IGNORE elsewhere."""
    following = zip(rendered.ids[1:], rendered.reply[1:], strict=True)
    return [*(id if of_reply else IGNORE for id, of_reply in following), *([IGNORE] if rendered.ids else [])]


def weights_of(rendered: Rendered) -> list[float]:
    """Return for each id how much the one after it counts in the loss: 0 where `targets_of` has IGNORE."""
    weights = rendered.weights or [float(of_reply) for of_reply in rendered.reply]
    return [*weights[1:], *([0.0] if weights else [])]


def ends_with_end(template: ChatTemplate, rendered: Rendered) -> bool:
    """Say whether the last id that the assistant wrote is the control token that ends a reply."""
    last = next((id for id, of_reply in zip(rendered.ids[::-1], rendered.reply[::-1], strict=True) if of_reply), None)
    return last in template.end
