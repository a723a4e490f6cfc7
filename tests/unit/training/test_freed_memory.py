"""Freed memory stays with the process where its C library can keep it, and nothing breaks where it cannot."""

import ctypes
import os
import platform
import subprocess
import sys
from types import SimpleNamespace

import pytest

from orrery.training import freed_memory
from orrery.training.freed_memory import keep_freed_memory


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the setting is glibc's")
def test_what_a_step_frees_is_not_faulted_in_again():
    # In a program of its own: the setting is the process's.
    code = """if True:
        import resource
        import torch
        from orrery.training.freed_memory import keep_freed_memory
        assert keep_freed_memory()
        torch.set_num_threads(1)
        def step():
            blocks = [torch.ones(2**21) for _ in range(8)]  # 8 MB each, more than glibc keeps by itself
            del blocks
        def faults():
            return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        for _ in range(5):  # the heap grows for some steps
            step()
        before = faults()
        for _ in range(5):
            step()
        assert faults() - before < 1000, faults() - before
        """
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)


@pytest.mark.parametrize("taken", [(1, 1), (0, 1), (1, 0)])
def test_two_gigabytes_stay_but_for_blocks_of_64_megabytes_or_more(taken, monkeypatch):
    asked, answers = [], list(taken)

    def mallopt(setting, size):
        asked.append((setting, size))
        return answers.pop(0)

    monkeypatch.setattr(freed_memory.sys, "platform", "linux")
    monkeypatch.setattr(ctypes, "CDLL", lambda name: SimpleNamespace(mallopt=mallopt))
    assert keep_freed_memory() is all(taken)
    # M_TRIM_THRESHOLD is -1 and M_MMAP_THRESHOLD -3 in glibc's malloc.h.
    assert asked == [(-1, 2 * 1024**3 - 1), (-3, 64 * 1024**2)][: len(asked)]
    assert len(asked) == 1 + taken[0]


def test_another_c_library_is_left_alone(monkeypatch):
    monkeypatch.setattr(ctypes, "CDLL", lambda name: object())
    assert keep_freed_memory() is False
    monkeypatch.setattr(freed_memory.sys, "platform", "darwin")
    assert keep_freed_memory() is False
