"""Conversations of several turns with a model, and whether each answer keeps the format of the chat."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from orrery.data.batches.rendering import render_prompt
from orrery.data.rows.conversations import Conversation
from orrery.generation.batched import in_batches
from orrery.schema.writing import greedy
from orrery.text.chat.messages import Message, text_of

if TYPE_CHECKING:
    from orrery.language_model.model import LanguageModel
    from orrery.text.chat.render import ChatTemplate

BATCH = 32
"""Conversations answered at once."""
_ROLE = re.compile(r"^\s*(?:<\|)?(?:user|assistant|system|human)(?:\|>)?\s*(?::|$)", re.IGNORECASE | re.MULTILINE)
"""A line that begins as a turn of somebody does: the role alone, or with a colon."""


@dataclass(frozen=True)
class TalkAnswer:
    """One answer: its text, its tokens, whether the end token came, and whether a role or control token is in it."""

    text: str
    tokens: int
    ended: bool
    leaked: bool

    @property
    def kept(self) -> bool:
        """Whether it keeps the format."""
        return self.ended and not self.leaked


@dataclass
class Talk:
    """What users say in a conversation, what was said in it so far, and its answers."""

    asked: Sequence[str]
    messages: list[Message] = field(default_factory=list)
    answers: list[TalkAnswer] = field(default_factory=list)
    forgotten: int = 0

    @property
    def kept(self) -> bool:
        """Whether every turn was answered in the format."""
        return len(self.answers) == len(self.asked) and all(answer.kept for answer in self.answers)


def leaks_role(text: str) -> bool:
    """Say whether a text has a line that begins as a turn does."""
    return bool(_ROLE.search(text))


def answer_of(lm: "LanguageModel", ids: Sequence[int], ends: frozenset[int]) -> TalkAnswer:
    """Return what a model wrote as an answer; a control token leaks as its id and as its spelling."""
    ended = bool(ids) and ids[-1] in ends
    own = list(ids[:-1] if ended else ids)
    control = lm.tokenizer.control
    spelled = [lm.tokenizer.decode([id], special=True) for id in control]
    text = lm.tokenizer.decode(own)
    leaked = any(id in control for id in own) or any(each in text for each in spelled if each) or leaks_role(text)
    return TalkAnswer(text, len(ids), ended, leaked)


def user_turns(conversations: Sequence[Conversation], count: int, turns: int) -> list[list[str]]:
    """Return what users say in ``count`` conversations of ``turns`` turns, without a gap in the order of the data.

    What the first say first begins each; one with fewer turns goes on with what those behind it say.
    """
    said = [[text_of(each) for each in one.messages if each["role"] == "user"] for one in conversations]
    said = [own for own in said if own]
    turns_of_users = []
    for number in range(min(count, len(said))):
        own, behind = list(said[number][:turns]), number
        while len(own) < turns:
            behind = (behind + 1) % len(said)
            own += said[behind][: turns - len(own)]
        turns_of_users.append(own)
    return turns_of_users


def talks(
    lm: "LanguageModel",
    template: "ChatTemplate",
    questions: Sequence[Sequence[str]],
    *,
    max_new_tokens: int,
    temperature: float = 0.0,
    done: Callable[[int, int], None] | None = None,
) -> list[Talk]:
    """Hold conversations with a model, one turn after another of all of them.

    Each answer stands in the conversation behind it. What outgrows the context loses its earliest question and answer,
    and is counted. A conversation ends with an answer that does not keep the format.

    Args:
        lm: what answers.
        template: the format of the chats.
        questions: what users say, turn by turn.
        max_new_tokens: of an answer.
        temperature: divides the logits; 0 takes the likeliest tokens.
        done: told the turn and how many are answered in it.
    """
    held, ends = [Talk(tuple(own)) for own in questions], lm.end | template.end
    for turn in range(max(map(len, questions), default=0)):
        going = [talk for talk in held if turn < len(talk.asked) and all(answer.kept for answer in talk.answers)]
        rows = []
        for talk in going:
            talk.messages.append({"role": "user", "content": talk.asked[turn]})
            rows.append(_fitting(lm, template, talk, max_new_tokens))
        settings = greedy(max_new_tokens, eos_token_id=sorted(ends))
        said = written(lm, rows, settings, temperature, turn, None if done is None else _told(done, turn))
        for talk, ids in zip(going, said, strict=True):
            talk.answers.append(answer_of(lm, ids, ends))
            talk.messages.append({"role": "assistant", "content": talk.answers[-1].text})
    return held


def written(
    lm: "LanguageModel",
    rows: Sequence[list[int]],
    settings: dict[str, Any],
    temperature: float = 0.0,
    turn: int = 0,
    done: Callable[[int], None] | None = None,
) -> list[list[int]]:
    """Return the ids of the answers to rows of ids, drawn by the row's number and the turn where they are drawn."""
    drawing = {"do_sample": True, "temperature": temperature, "top_k": 0, "top_p": 1.0} if temperature else {}
    how = {**settings, **drawing}

    def write(numbers: list[int]) -> list[list[int]]:
        seeds = [1337 + 10_000 * turn + number for number in numbers] if temperature else None
        return [each[0] for each in lm.write([rows[number] for number in numbers], how, seeds=seeds)]

    return in_batches([len(row) for row in rows], BATCH, write, done)


def _told(done: Callable[[int, int], None], turn: int) -> Callable[[int], None]:
    return lambda count: done(turn + 1, count)


def _fitting(lm: "LanguageModel", template: "ChatTemplate", talk: Talk, room: int) -> list[int]:
    """Return the ids of a conversation with room for an answer; its earliest turns go where there is none."""
    ids = render_prompt(template, Conversation("conversation", tuple(talk.messages)))
    while len(ids) + room > lm.context and len(talk.messages) > 1:
        del talk.messages[:2]
        talk.forgotten += 1
        ids = render_prompt(template, Conversation("conversation", tuple(talk.messages)))
    return ids[-max(1, lm.context - room) :]
