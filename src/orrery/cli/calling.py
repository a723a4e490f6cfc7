"""A command line carried out: parsed, what it names looked for, the verb called."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from orrery.cli.places import look_for_places

if TYPE_CHECKING:
    from cyclopts import App


def call(parser: "App", words: Sequence[str]) -> int:
    """Carry out a command line, and return its exit code: the verb's number, or 0.

    Raises:
        CycloptsError: the words are none of this parser.
        OrreryError: something that they name is not there, or what the verb raises.
    """
    verb, given, _ = parser.parse_args(list(words), exit_on_error=False, print_error=False)
    look_for_places(verb, given)
    code = verb(*given.args, **given.kwargs)
    return code if isinstance(code, int) else 0
