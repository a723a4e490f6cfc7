"""The memory that one training step frees and the next one takes again."""

import ctypes
import sys

TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3
"""The names of two settings in glibc's malloc.h."""
KEPT = 2**31 - 1
"""Bytes that stay with the process at most."""
LARGE = 64 * 2**20
"""A block of as many bytes or more is the system's own, as before."""


def keep_freed_memory() -> bool:
    """Let this process keep what it frees, up to two gigabytes; say whether its C library can.

    glibc gives the end of its heap back to the system after every step, which hands it out again page by page, each
    cleared first: a tenth of the time of a training. No number depends on it.
    """
    if not sys.platform.startswith("linux"):
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):  # another C library
        return False
    return bool(mallopt(TRIM_THRESHOLD, KEPT)) and bool(mallopt(MMAP_THRESHOLD, LARGE))
