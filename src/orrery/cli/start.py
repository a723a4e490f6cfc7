"""The way into the program: first what a signal does, then everything that takes time to import."""

from orrery.cli import stopping
from orrery.settings import bound_kernel_caches


def main() -> None:
    """Run the program on ``sys.argv`` and exit; a signal, whenever it comes, is an exit code and no traceback."""
    stopping.STOPS.before()
    import atexit
    import os
    import sys

    atexit.register(stopping.ignore)  # what is registered first is called last
    # Before torch is loaded: its threads spin while they wait for each other, and with one of two cores taken by
    # another program a training of 11,000 tokens a second falls to 300. Sleeping costs nothing that could be measured.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    bound_kernel_caches()
    from orrery.cli.program import run
    from orrery.cli.streams import prepare_streams

    stopping.STOPS.during()
    try:
        prepare_streams()
        code = run(sys.argv[1:])
        stopping.STOPS.after(code)
    except KeyboardInterrupt:  # while an error was being told, or when all was done
        code = 130
        stopping.STOPS.after(code)
    distributed = sys.modules.get("orrery.training.distributed")
    if distributed is not None:
        distributed.leave_if_lost(code)
    sys.exit(code)
