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
    """

    def __init__(self, reply: Reply, system: str | None = None) -> None:
        self._reply = reply
        self._opening: list[Message] = [] if system is None else [{"role": "system", "content": system}]
        self.messages: list[Message] = list(self._opening)

    def ask(self, text: str, show: Callable[[str], None]) -> Generation | None:
        """Return the answer to ``text``, shown piece by piece; None where Ctrl-C stopped it.

        What was shown of a stopped answer is part of the conversation, as the reader saw it.
        """
        pieces: list[str] = []

        def pass_on(piece: str) -> None:
            pieces.append(piece)
            show(piece)

        asked: list[Message] = [*self.messages, {"role": "user", "content": text}]
        try:
            answer = self._reply(asked, pass_on)
        except KeyboardInterrupt:
            if pieces:
                self.messages = [*asked, {"role": "assistant", "content": "".join(pieces)}]
            return None
        self.messages = [*asked, {"role": "assistant", "content": answer.text}]
        return answer

    def reset(self) -> None:
        """Forget all but the system's text."""
        self.messages = list(self._opening)

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
