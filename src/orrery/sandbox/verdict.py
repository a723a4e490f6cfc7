"""What is asked of the sandbox, what bounds it, and what it says."""

from dataclasses import dataclass
from typing import Literal

Outcome = Literal["passed", "failed", "timed out", "memory", "killed", "output too long"]
"""How a program ended. ``failed`` is an exception, a test that does not hold, or an end before the tests were done."""

MIB = 1 << 20


@dataclass(frozen=True)
class SandboxLimits:
    """What a program may use; whatever goes beyond ends it.

    Attributes:
        seconds: of wall time from the moment that the code begins, tests included.
        memory: bytes of address space of each process, and of resident memory of all of them together.
        processes: processes and threads that exist at once.
        files: open files of a process.
        disk: bytes of the temporary folder, which is in memory; a file has at most as many.
        output: bytes written to stdout and stderr.
    """

    seconds: int | float = 10.0
    memory: int = 1024 * MIB
    processes: int = 32
    files: int = 64
    disk: int = 32 * MIB
    output: int = MIB


@dataclass(frozen=True)
class Exam:
    """A program and what is asked of it.

    Attributes:
        code: the program, of unknown origin.
        tests: Python that uses what the program defines, and raises where that is wrong; the program never sees it.
        names: what the tests take from the program, and nothing else; without any, all that it defines, but what has
            the name of a builtin: a program that defines ``abs`` would otherwise decide what its tests mean by it.
    """

    code: str
    tests: str
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class Verdict:
    """How a program ended.

    Attributes:
        outcome: passed only where every line of the tests was run and none raised.
        detail: the last line of the error, or which limit was broken; empty where it passed.
        output: what the program and its tests wrote, as far as the limit goes.
        seconds: of wall time.
        memory: the most resident bytes seen, looked at fifty times a second; 0 where it ended before the first look.
    """

    outcome: Outcome
    detail: str = ""
    output: str = ""
    seconds: float = 0.0
    memory: int = 0

    @property
    def passed(self) -> bool:
        """Whether all tests hold."""
        return self.outcome == "passed"
