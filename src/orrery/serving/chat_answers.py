"""The answers to a conversation while they come: what is thought, what is said, and what is called."""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from orrery.generation.requests import Answering, TokenScore
from orrery.serving.answers import AnswerPiece
from orrery.serving.conversations import PreparedConversation
from orrery.serving.requests import FINISH
from orrery.serving.served import Served
from orrery.text.chat.calls import CallWatch, ParsedToolCall
from orrery.text.chat.channels import ChannelWatch
from orrery.text.chat.reasoning import ReasoningWatch


@dataclass(frozen=True)
class AnswerPart:
    """A part of an answer.

    Attributes:
        text: what is said.
        thought: the reasoning before it, where that is told apart.
        calls: the functions that are called; known at the end.
    """

    text: str = ""
    thought: str = ""
    calls: Sequence[ParsedToolCall] = ()


@final
class ChatAnswers:
    """The answers to one conversation.

    Args:
        served: the model.
        prepared: the conversation.

    Attributes:
        ended: the answers that have ended, by their number.
        reasoned: how many tokens of each are reasoning, its marks among them.
    """

    def __init__(self, served: Served, prepared: PreparedConversation) -> None:
        self.served, self.prepared, self.asked = served, prepared, prepared.asked
        self.ended: dict[int, Answering] = {}
        count = range(prepared.asked.choices)
        self.reasoned = [0] * prepared.asked.choices
        self._calls = {index: CallWatch(prepared.functions) for index in count}
        self._thoughts: dict[int, ReasoningWatch | ChannelWatch] = {
            index: ChannelWatch() if prepared.channels else ReasoningWatch(prepared.reasoning) for index in count
        }

    @property
    def watches(self) -> bool:
        """Whether an answer is more than its text: reasoning or calls may stand in it."""
        return bool(self.asked.used_tools) or self.prepared.reasoning is not None or self.prepared.channels

    def take(self, piece: AnswerPiece) -> AnswerPart:
        """Take what became known of an answer; return what of it is certain, by the model itself."""
        if piece.ended:
            self.ended[piece.index] = piece.answering
        if not self.watches:
            return AnswerPart(piece.text)
        thought, text = self._apart(piece)
        if not self.asked.used_tools:
            return AnswerPart(text, thought)
        said = self._calls[piece.index].push(text)
        return AnswerPart("" if self.asked.forced else said, thought)

    def rest(self, index: int) -> AnswerPart:
        """Return what an answer says beside what ``take`` has returned, and its calls."""
        if not self.watches:
            return AnswerPart()
        thought, text = self._thoughts[index].finish()
        if not self.asked.used_tools:
            return AnswerPart(text, thought)
        held = self._calls[index].push(text)
        said, calls = self._calls[index].finish()
        return AnswerPart(held + said, thought, self._allowed(calls))

    def whole(self, index: int) -> AnswerPart:
        """Return an answer that has ended, all of which ``take`` was given."""
        if not self.watches:
            return AnswerPart(self.ended[index].result().text)
        self.rest(index)
        thought, text = self._thoughts[index].whole
        if not self.asked.used_tools:
            return AnswerPart(text, thought)
        said, calls = self._calls[index].whole()
        return AnswerPart(said, thought, self._allowed(calls))

    def reason(self, index: int) -> str:
        """Return why an answer ended: ``stop`` or ``length``."""
        return FINISH[self.ended[index].result().finish_reason]

    def told_scores(self, scores: Sequence[TokenScore]) -> list[TokenScore]:
        """Return the scores of tokens without the one that ends the answer."""
        return [score for score in scores if score.token not in self.prepared.ends]

    def _apart(self, piece: AnswerPiece) -> tuple[str, str]:
        """Return what became certain of the reasoning, and of what stands behind it."""
        watch, thoughts, texts = self._thoughts[piece.index], [], []
        for token, text in piece.parts:
            inside = watch.inside
            thought, said = watch.push(self.prepared.marks.get(token, "") + text)
            self.reasoned[piece.index] += inside or watch.inside
            thoughts.append(thought)
            texts.append(said)
        return "".join(thoughts), "".join(texts)

    def _allowed(self, calls: list[ParsedToolCall]) -> list[ParsedToolCall]:
        """Return the calls that the client can take: one, where it asked for one or knows the old form alone."""
        return calls[:1] if self.asked.parallel_tool_calls is False or self.asked.functions else calls


def id_of(call: ParsedToolCall) -> str:
    """Return what a call is named: as its model named it, whose template may need that, else by chance."""
    return call.id or f"call_{secrets.token_hex(12)}"
