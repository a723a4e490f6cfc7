"""The one way in: parse, run, turn every failure into two lines and an exit code."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import orrery
from orrery.cli.console import close_output, report
from orrery.cli.overview import ABOUT, ASKS_FOR_IT, epilogue, overview
from orrery.cli.start import main
from orrery.cli.stopping import cause
from orrery.cli.verbs import VERBS, Verb, summary, verbs

if TYPE_CHECKING:
    import cyclopts

__all__ = ["VERBS", "Verb", "build", "main", "run"]


def build(words: Sequence[str] = ()) -> "cyclopts.App":
    """Return the parser for a command line; ``ORRERY_<VERB>_<FLAG>`` stands in for a missing flag."""
    import cyclopts
    from cyclopts.config import Env

    known = verbs()
    app = cyclopts.App(
        name="orrery",
        help=ABOUT,
        help_epilogue=epilogue(next((word for word in words if word in known), None)),
        help_format="plaintext",
        version=f"orrery {orrery.__version__}",
        config=Env("ORRERY_"),
        default_parameter=cyclopts.Parameter(show_env_var=False),  # the epilogue says it once
        suppress_keyboard_interrupt=False,
        exit_on_error=False,
        print_error=False,
    )
    for name, verb in known.items():
        # The list of verbs must import none of them; the page of one verb comes from its own docstring.
        app.command(verb.target, name=name, help=None if name in words else summary(name))
    return app


def run(arguments: Sequence[str]) -> int:
    """Carry out one command line and return its exit code, with any error printed."""
    words, debug = _without_debug(list(arguments))
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
        from orrery.cli.with_parts import make_known

        make_known(Path(words[1]))
        words = words[2:]
    return words


def _without_debug(words: list[str]) -> tuple[list[str], bool]:
    """Take ``--debug`` out of the words before ``--``, which ends the flags."""
    end = words.index("--") if "--" in words else len(words)
    flags = [word for word in words[:end] if word != "--debug"]
    return flags + words[end:], len(flags) < end
