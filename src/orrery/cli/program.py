"""The one way in: parse, run, turn every failure into two lines and an exit code."""

from collections.abc import Sequence
from pathlib import Path

from orrery.cli.console import close_output, report
from orrery.cli.overview import ASKS_FOR_IT, overview
from orrery.cli.parser import build
from orrery.cli.stopping import cause
from orrery.cli.verbs import VERBS, Verb, summary, verbs
from orrery.reports.making import carrying_out

__all__ = ["VERBS", "Verb", "build", "run"]


def run(arguments: Sequence[str]) -> int:
    """Carry out one command line and return its exit code, with any error printed."""
    words, debug = _without_debug(list(arguments))
    with carrying_out(arguments):
        return _carried_out(words, debug)


def _carried_out(words: list[str], debug: bool) -> int:
    """Carry out the words of a command line."""
    try:
        words = _with_parts(words)
        if words in ASKS_FOR_IT:
            print(overview([(verb.group, name, summary(name)) for name, verb in verbs().items()]))
            code = 0
        else:
            from orrery.cli.calling import call

            code = call(build(words), words)
        close_output()
        return int(code)
    except BaseException as error:
        stop = cause(error)
        if not isinstance(stop, SystemExit):
            return report(stop, debug=debug, words=words)
        return stop.code if isinstance(stop.code, int) else int(stop.code is not None)


def _with_parts(words: list[str]) -> list[str]:
    """Make known what the file of ``with FILE VERB ...`` registers, and return the command line behind it."""
    while words[:1] == ["with"] and len(words) > 2 and not words[1].startswith("-"):
        from orrery.cli.own_parts import make_known

        make_known(Path(words[1]))
        words = words[2:]
    return words


def _without_debug(words: list[str]) -> tuple[list[str], bool]:
    """Take ``--debug`` out of the words before ``--``, which ends the flags."""
    end = words.index("--") if "--" in words else len(words)
    flags = [word for word in words[:end] if word != "--debug"]
    return flags + words[end:], len(flags) < end
