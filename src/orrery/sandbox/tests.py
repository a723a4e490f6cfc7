"""The process of the tests: the first of its namespace, which nothing in there can end, trace or read."""

import builtins
import importlib
import linecache
import os
import sys
from collections.abc import Iterator
from typing import Any, NoReturn

from orrery.sandbox import plain

NAME = "tests"


class Gone(BaseException):
    """The program has ended, or talks nonsense, before its tests were done."""


class Exit(BaseException):
    """The program asked to end (``sys.exit``, an interrupt) where it should have given an answer."""


class ProgramChannel:
    """The way to the program: one question at a time."""

    def __init__(self, channel: int) -> None:
        self._channel = channel

    def answer(self) -> Any:
        """Return the next answer.

        Raises:
            Exception: the one that the program raised, of its nearest class that is Python's own.
            Gone: there is no program any more, or its answer is no message.
        """
        try:
            kind, said = plain.unpack(lambda count: os.read(self._channel, count))
            if kind == "value":
                return said
            raised = _exception(said)
        except (EOFError, OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise Gone(type(error).__name__) from None
        raise raised

    def ask(self, work: str, target: int, given: Any) -> Any:
        """Have the program carry something out, and return what it says."""
        question = plain.pack([work, target, plain.encode(given, _number)])
        try:
            while question:
                question = question[os.write(self._channel, question) :]
        except OSError as error:
            raise Gone(type(error).__name__) from None
        return self.answer()

    def value(self, said: Any) -> Any:
        """Return what the program said as a value; what is not plain is a `Remote`."""
        try:
            return plain.decode(said, self._object)
        except (ValueError, TypeError, KeyError, IndexError, ArithmeticError, RecursionError) as error:
            raise Gone(type(error).__name__) from None

    def _object(self, kind: str, payload: Any) -> Any:
        if kind == "module":
            return _library(payload)
        number, name = payload
        return Remote(self, int(number), str(name))


class Remote:
    """An object of the program that is not plain: a function, a class, an instance, a generator.

    It equals itself only: what the program's own ``__eq__`` would say is not asked.
    """

    def __init__(self, channel: ProgramChannel, number: int, name: str) -> None:
        self._orrery = (channel, number, name)

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Call it in the program; what it did to lists, dicts and sets that it was given is done here too."""
        channel, number, _ = self._orrery
        result, changed = channel.ask("call", number, (arguments, named))
        for ours, theirs in zip(arguments, channel.value(changed), strict=False):
            if isinstance(ours, list | bytearray) and type(ours) is type(theirs):
                ours[:] = theirs
            elif isinstance(ours, dict | set) and type(ours) is type(theirs):
                ours.clear()
                ours.update(theirs)
        return channel.value(result)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self._value("get", name)

    def __getitem__(self, key: Any) -> Any:
        return self._value("item", key)

    def __len__(self) -> int:
        return int(self._value("length", None))

    def __iter__(self) -> Iterator[Any]:
        return iter(self._value("items", None))

    def __repr__(self) -> str:
        return f"<{self._orrery[2]} of the program>"

    def _value(self, work: str, given: Any) -> Any:
        channel, number, _ = self._orrery
        return channel.value(channel.ask(work, number, given))


def examine(channel: int, tests: str, names: tuple[str, ...]) -> None:
    """Run the tests on the program at the other end; without ``names`` they see all that it defines.

    Raises what the tests raise.
    """
    program = ProgramChannel(channel)
    defined = program.answer()
    if not isinstance(defined, dict):
        raise Gone("no names")
    space: dict[str, Any] = {"__name__": NAME}
    for name, said in defined.items():
        # A program that defines `abs` or `isclose` must not decide what its tests mean by them.
        if name in names or not (names or hasattr(builtins, name)):
            space[name] = program.value(said)
    sys.modules[NAME] = type(sys)(NAME)
    sys.setrecursionlimit(2000)
    linecache.cache[NAME] = (len(tests), None, tests.splitlines(keepends=True), NAME)
    exec(compile(tests, NAME, "exec"), space)


def described(error: BaseException) -> str:
    """Return an exception as one line, with the line of the tests that it came from."""
    trace, line = error.__traceback__, 0
    while trace is not None:
        line = trace.tb_lineno if trace.tb_frame.f_code.co_filename == NAME else line
        trace = trace.tb_next
    text = " ".join(str(error).split())
    name = getattr(error, "of_the_program", type(error).__name__)
    where = f" (tests, line {line}: {linecache.getline(NAME, line).strip()})" if line else ""
    return f"{name}{': ' if text else ''}{text}{where}"[:500]


def _library(name: Any) -> Any:
    """Return a module of Python's own library, whatever the program made of its copy."""
    if str(name).partition(".")[0] not in sys.stdlib_module_names:
        return None
    try:
        return importlib.import_module(str(name))
    except ImportError:
        return None


def _exception(said: Any) -> BaseException:
    """Return the exception that a program raised, as the nearest class of Python's own."""
    name, line = str(said["name"])[:100], int(said["line"])
    text = str(said["text"])[:300] + (f" (program, line {line})" if line else "")
    kind = next(
        (exception for own in said["own"] if isinstance(exception := getattr(builtins, str(own), None), type)), None
    )
    if kind is None or not issubclass(kind, Exception):
        error: BaseException = Exit(text)
    else:
        try:
            error = kind(text)
        except TypeError:  # UnicodeDecodeError takes five arguments
            error = RuntimeError(text)
    error.of_the_program = name  # type: ignore[attr-defined]
    return error


def _number(value: Any) -> list[Any]:
    if isinstance(value, Remote):
        return ["kept", [value._orrery[1], ""]]
    _refuse(value)


def _refuse(value: Any) -> NoReturn:
    raise TypeError(f"the tests give the program a {type(value).__name__}: only plain values and its own objects go")
