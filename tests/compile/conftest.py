"""What compiles is tested as users compile it: without the run-time type checks of the other tiers."""

import sys

import jaxtyping


def pytest_sessionstart():
    # Switched off, the checks still leave a wrapper around every function, and dynamo cannot trace it.
    if jaxtyping.config.jaxtyping_disable:
        sys.meta_path[:] = [finder for finder in sys.meta_path if not type(finder).__module__.startswith("jaxtyping")]
