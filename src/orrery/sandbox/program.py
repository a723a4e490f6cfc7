"""The process of the program: it runs code of unknown origin, and then answers what the tests ask of it.

Nothing here can be relied on once the code has begun, and nothing that the tests know is in this process.
"""

import builtins
import os
import sys
import types
from functools import partial
from typing import Any

from orrery.sandbox import plain

NAME = "program"
MOST_ITEMS = 1_000_000


class Program:
    """The names that the code defined, and the objects that its tests know by number."""

    def __init__(self, channel: int) -> None:
        self._channel = channel
        self._kept: list[Any] = []
        self._module = types.ModuleType(NAME)

    def serve(self, code: str) -> None:
        """Run the code, say what it defines, and answer until the tests are done."""
        sys.modules[NAME] = self._module
        self._answer(partial(self._defined, code))
        while True:
            call = plain.unpack(lambda count: os.read(self._channel, count))
            self._answer(partial(self._carried_out, *call))

    def _answer(self, work: Any) -> None:
        try:
            answer = plain.pack(["value", work()])
        except BaseException as error:  # SystemExit and KeyboardInterrupt are answers too
            answer = plain.pack(["error", _described(error)])
        while answer:
            answer = answer[os.write(self._channel, answer) :]

    def _defined(self, code: str) -> Any:
        names = self._module.__dict__
        exec(compile(code, NAME, "exec"), names)
        return {name: self._encoded(value) for name, value in dict(names).items() if not name.startswith("__")}

    def _carried_out(self, work: str, target: int, said: Any) -> Any:
        thing = self._kept[target]
        given = plain.decode(said, self._object)
        if work == "call":
            arguments, named = given
            result = thing(*arguments, **named)
            # What a function did to its arguments is seen by its caller, as within one process.
            changed = [one if isinstance(one, list | dict | set | bytearray) else None for one in arguments]
            return [self._encoded(result), self._encoded(changed)]
        if work == "get":
            return self._encoded(getattr(thing, given))
        if work == "item":
            return self._encoded(thing[given])
        if work == "length":
            return self._encoded(len(thing))
        return self._encoded([item for item, _ in zip(thing, range(MOST_ITEMS), strict=False)])

    def _encoded(self, value: Any) -> Any:
        return plain.encode(value, self._keep)

    def _keep(self, value: Any) -> list[Any]:
        if isinstance(value, types.ModuleType):
            return ["module", value.__name__]
        self._kept.append(value)
        return ["kept", [len(self._kept) - 1, type(value).__name__]]

    def _object(self, kind: str, payload: Any) -> Any:
        return self._kept[payload[0]]


def _described(error: BaseException) -> dict[str, Any]:
    """Return an exception's class, those of its bases that are Python's own, its text, and its last line."""
    line = 0
    trace = error.__traceback__
    while trace is not None:
        line = trace.tb_lineno if trace.tb_frame.f_code.co_filename == NAME else line
        trace = trace.tb_next
    if isinstance(error, SyntaxError):
        line = error.lineno or 0
    own = [base.__name__ for base in type(error).__mro__ if getattr(builtins, base.__name__, None) is base]
    try:
        text = str(error)[:300]
    except BaseException:
        text = ""
    return {"name": type(error).__name__, "own": own, "text": text, "line": line}
