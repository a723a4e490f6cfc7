"""A conversation that goes on: what was said, and each answer added to it."""

import errno
import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path

from orrery.errors import MachineError, UsageError
from orrery.generation.row import Generation
from orrery.text.chat.messages import Message

Reply = Callable[[Sequence[Message], Callable[[str], None]], Generation]
"""From all messages and what is shown each piece of the answer, to the answer."""


_BEGIN = b'{"messages": ['


class Conversation:
    """The messages of one chat; a turn that fails leaves them as they were.

    Attributes:
        messages: what was said so far, the system's text first.
        attempt: how many answers the last question had before the last one.
    """

    def __init__(self, reply: Reply, system: str | None = None) -> None:
        self._reply = reply
        self._opening: list[Message] = [] if system is None else [{"role": "system", "content": system}]
        self.messages: list[Message] = list(self._opening)
        self.attempt = 0

    def ask(self, text: str, show: Callable[[str], None]) -> Generation | None:
        """Return the answer to ``text``, shown piece by piece; None where Ctrl-C stopped it.

        What was shown of a stopped answer is part of the conversation, as the reader saw it.
        """
        return self._answer([*self.messages, {"role": "user", "content": text}], 0, show)

    def again(self, show: Callable[[str], None]) -> Generation | None:
        """Return another answer to the last question, in the place of the one before.

        Raises:
            UsageError: nothing was asked yet.
        """
        return self._answer(self.messages[: self._last_question() + 1], self.attempt + 1, show)

    def edit(self, text: str, show: Callable[[str], None]) -> Generation | None:
        """Return the answer to ``text`` in the place of the last question.

        Raises:
            UsageError: nothing was asked yet.
        """
        before = self.messages[: self._last_question()]
        return self._answer([*before, {"role": "user", "content": text}], 0, show)

    def undo(self) -> None:
        """Forget the last question and its answer.

        Raises:
            UsageError: nothing was asked yet.
        """
        self.messages, self.attempt = self.messages[: self._last_question()], 0

    def _last_question(self) -> int:
        questions = [place for place, message in enumerate(self.messages) if message["role"] == "user"]
        if not questions:
            raise UsageError("nothing was asked yet", "write a question first")
        return questions[-1]

    def _answer(self, conversation: list[Message], attempt: int, show: Callable[[str], None]) -> Generation | None:
        """Answer, and keep question and answer; where that fails the conversation is as it was."""
        before, self.attempt = self.attempt, attempt
        pieces: list[str] = []

        def pass_on(piece: str) -> None:
            pieces.append(piece)
            show(piece)

        try:
            answer = self._reply(conversation, pass_on)
        except KeyboardInterrupt:
            if pieces:
                self.messages = [*conversation, {"role": "assistant", "content": "".join(pieces)}]
            else:
                self.attempt = before
            return None
        except BaseException:
            self.attempt = before
            raise
        self.messages = [*conversation, {"role": "assistant", "content": answer.text}]
        return answer

    def reset(self) -> None:
        """Forget all but the system's text."""
        self.messages, self.attempt = list(self._opening), 0

    def save(self, file: Path) -> None:
        """Append the conversation to a JSONL file, one line ``{"messages": [...]}``.

        Raises:
            UsageError: the file holds something else.
            MachineError: the file cannot be written; it is then as it was.
        """
        line = (json.dumps({"messages": self.messages}, ensure_ascii=False) + "\n").encode()
        try:
            with file.open("a+b", buffering=0) as stream:
                size = stream.seek(0, os.SEEK_END)
                stream.seek(0)
                if size and stream.read(len(_BEGIN)) != _BEGIN:
                    raise UsageError(f"{file} holds no conversations", "name a new file, or one that /save wrote")
                if (stream.write(line) or 0) < len(line):
                    stream.truncate(size)
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except (OSError, ValueError) as error:  # a name with a NUL is no OSError
            reason = error.strerror if isinstance(error, OSError) else error
            raise MachineError(f"cannot write {file}: {reason}", "give a path that can be written") from error
