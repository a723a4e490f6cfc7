"""Code: what an answer's program does, by the tests of its prompt, in the sandbox."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from orrery.data.files import bad_record
from orrery.errors import DataError
from orrery.rewards import Reward, RewardSettings, register
from orrery.schema.numbers import AboveZero

if TYPE_CHECKING:
    from orrery.data.rows.prompts import Answered

TESTS = ("test_list", "tests", "test")
"""Names of the column with the tests, the likeliest first."""


@register
class Code(Reward):
    """1 where the code of an answer passes all tests of its prompt's row, else 0.

    Code is what stands in the first fence of three backticks, or the whole answer. The tests are Python, a text or a
    list of assertions as MBPP has them, and run where the program cannot reach them: without network and files, within
    ``seconds``.
    """

    class Settings(RewardSettings):
        """``column`` has the tests; by default the first of the known names. ``seconds`` bound each program."""

        kind: Literal["code"] = "code"
        column: str | None = None
        seconds: AboveZero = 5.0

    def __init__(self, column: str | None = None, seconds: float = 5.0) -> None:
        self.column, self.seconds = column, seconds

    def score(self, answers: "Sequence[Answered]") -> list[float]:
        """Return 1 or 0 for each.

        Raises:
            DataError: a prompt's row has no tests; its place is named.
            MachineError: this machine cannot isolate a program; nothing was run.
        """
        from orrery.sandbox import Exam, SandboxLimits, check_all
        from orrery.scores.programs import code_of

        exams = [Exam(code_of(each.text), self._tests(each)) for each in answers]
        return [float(verdict.passed) for verdict in check_all(exams, SandboxLimits(seconds=self.seconds))]

    def _tests(self, answered: "Answered") -> str:
        row, where = answered.prompt.row, answered.prompt.where
        name = self.column or next((name for name in TESTS if name in row), None)
        if name is None or name not in row:
            message = f"{where}: no column {self.column or ' or '.join(TESTS)} among {', '.join(row)[:200]}"
            raise DataError(message, "name the column with the tests in the reward: column: NAME")
        given: Any = row[name]
        lines = [given] if isinstance(given, str) else given
        if not isinstance(lines, list | tuple) or not lines or not all(isinstance(line, str) for line in lines):
            raise bad_record(where, f"column {name!r} holds no tests")
        return "\n".join(lines) + "\n"
