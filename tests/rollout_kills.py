"""``orrery`` in this process, which kills itself inside a rollout, an update or a save: PLACE COUNT WORDS ..."""

import os
import signal
import sys
from collections.abc import Callable
from typing import Any


def killing(owner: Any, name: str, count: int) -> None:
    """Let the ``count``-th call of a function end the process with SIGKILL, half way."""
    whole: Callable[..., Any] = getattr(owner, name)
    calls = 0

    def counted(*arguments: Any, **how: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == count:
            os.kill(os.getpid(), signal.SIGKILL)
        return whole(*arguments, **how)

    setattr(owner, name, counted)


def main() -> None:
    place, count, *words = sys.argv[1:]
    if place == "rollout":
        from orrery.generation.engine import Engine

        killing(Engine, "advance", int(count))
    elif place == "update":
        from orrery.training import step

        killing(step, "share", int(count))
    elif place == "save":
        from orrery.checkpoints import disk

        killing(disk, "fsync_file", int(count))
    from orrery.cli.start import main as program

    sys.argv = ["orrery", *words]
    program()


if __name__ == "__main__":
    main()
