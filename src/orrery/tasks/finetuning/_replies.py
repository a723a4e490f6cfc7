"""How likely a model finds the replies of conversations, and what it answers itself."""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from orrery.data.batches.padded_rows import padded
from orrery.data.batches.rendering import Replies, render, render_prompt, targets_of
from orrery.data.rows.conversations import Conversation
from orrery.errors import UsageError
from orrery.generation.batched import in_batches
from orrery.nn.cross_entropy import IGNORED
from orrery.schema.writing import greedy
from orrery.text.chat.folder import DEFAULT
from orrery.text.chat.formats import ChatFormat
from orrery.text.chat.messages import text_of
from orrery.text.chat.of_run import template_of_run
from orrery.text.chat.render import ChatTemplate
from orrery.text.chat.spans.encoding import Rendered

if TYPE_CHECKING:
    from orrery.language_model.model import LanguageModel

BATCH = 16
"""Conversations read or answered at once."""
Sums = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True)
class Answered:
    """An answer of the model to the last question of a conversation.

    Attributes:
        asked: what was said before.
        right: the reply of the data.
        text: the answer.
        ended: whether it ended with the end token, and not at the limit.
        clean: whether it holds no other control token.
    """

    asked: str
    right: str
    text: str
    ended: bool
    clean: bool


def template_of(lm: "LanguageModel") -> ChatTemplate:
    """Return the format of a model's chats as training renders it: one of Orrery's own needs no sandbox."""
    template = lm.chat_template()
    if isinstance(template.form, ChatFormat):
        return template
    return template_of_run({DEFAULT: template.form.source}, lm.tokenizer)


def name_of(template: ChatTemplate) -> str:
    """Return the name of a format, or of a Jinja template the beginning of its sha256."""
    if isinstance(template.form, ChatFormat):
        return template.form.name
    return hashlib.sha256(template.form.source.encode()).hexdigest()[:12]


def fitting(
    lm: "LanguageModel", conversations: Sequence[Conversation], replies: Replies, length: int
) -> list[tuple[Conversation, Rendered]]:
    """Return the conversations that fit into a row of training, rendered as the model's own chats are.

    Raises:
        UsageError: none does.
    """
    template = template_of(lm)
    rendered_rows = [(each, render(template, each, replies)) for each in conversations]
    kept = [(each, rendered) for each, rendered in rendered_rows if len(rendered.ids) <= min(length, lm.context)]
    if not kept:
        raise UsageError("no conversation held back fits into a row", "raise batches.length")
    return kept


@torch.no_grad()
def measured(lm: "LanguageModel", rendered: Sequence[Rendered]) -> Sums:
    """Return of each conversation the nats of its replies, how many tokens these have, and how many are likeliest."""

    def measure(numbers: list[int]) -> list[list[float]]:
        rows = [{"ids": rendered[number].ids, "targets": targets_of(rendered[number])} for number in numbers]
        batch = {name: tensor.to(lm.device) for name, tensor in padded(rows).items()}
        learnt_BL = batch["targets"] != IGNORED

        def nats(head: Callable[[Tensor], Tensor], x_BLD: Tensor, real_BL: Tensor | None) -> Tensor:
            return of_replies(head(x_BLD[learnt_BL]), batch["targets"][learnt_BL])

        (nats_N,) = lm.model(batch, {lm.model.spec.head_names[0]: nats}).values()
        rows_N = learnt_BL.nonzero()[:, 0]
        sums_B3 = nats_N.new_zeros(len(numbers), 3).index_add_(0, rows_N, nats_N)
        return sums_B3.tolist()

    return np.array(in_batches([len(each.ids) for each in rendered], BATCH, measure), np.float64)


def of_replies(logits_NV: Float[Tensor, "N V"], targets_N: Tensor) -> Float[Tensor, "N 3"]:
    """Return for each token its nats, 1, and whether it is the likeliest."""
    logp_NV = logits_NV.double().log_softmax(-1)
    nats_N = -logp_NV.gather(1, targets_N[:, None])[:, 0]
    right_N = (logits_NV.argmax(-1) == targets_N).double()
    return torch.stack([nats_N, torch.ones_like(nats_N), right_N], 1)


def answers(
    lm: "LanguageModel", conversations: Sequence[tuple[Conversation, Rendered]], done: Any = None
) -> list[Answered]:
    """Return the greedy answer to the last question of each, of at most half as many tokens again as its reply."""
    template = template_of(lm)
    questions = [before_last_reply(each) for each, _ in conversations]
    prompts = [render_prompt(template, each) for each in questions]
    longest = [len(rendered.ids) - len(prompt) for (_, rendered), prompt in zip(conversations, prompts, strict=True)]
    limit = max(1, min(3 * max(longest) // 2, lm.context - max(map(len, prompts))))

    def write(numbers: list[int]) -> list[list[int]]:
        return [each[0] for each in lm.write([prompts[number] for number in numbers], greedy(limit))]

    total = len(prompts)
    written_ids = in_batches(
        [len(prompt) for prompt in prompts], BATCH, write, None if done is None else lambda count: done(count, total)
    )
    control = lm.tokenizer.control
    return [
        Answered(
            "\n".join(text_of(message) for message in before.messages),
            text_of(each.messages[len(before.messages)]),
            lm.tokenizer.decode(ids),
            bool(ids) and ids[-1] in template.end | lm.end,
            not any(id in control for id in ids[:-1]),
        )
        for (each, _), before, ids in zip(conversations, questions, written_ids, strict=True)
    ]


def before_last_reply(conversation: Conversation) -> Conversation:
    """Return a conversation up to where the assistant says its last."""
    place = max(n for n, message in enumerate(conversation.messages) if message["role"] == "assistant")
    return replace(conversation, messages=conversation.messages[:place])
