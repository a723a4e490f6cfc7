"""One verb of the program, run inside the test's own process."""

from collections.abc import Callable

import cyclopts


def run(verb: Callable[..., None], *words: object) -> None:
    """Run a verb with the words of a command line; its errors are raised."""
    app = cyclopts.App()
    app.default(verb)
    app([str(word) for word in words], result_action="return_value", exit_on_error=False)
