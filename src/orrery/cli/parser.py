"""The parser of command lines, which imports no verb."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import orrery
from orrery.cli.overview import ABOUT, epilogue
from orrery.cli.verbs import summary, verbs

if TYPE_CHECKING:
    import cyclopts


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
