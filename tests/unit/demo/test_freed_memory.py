"""Freed memory stays with the process where its C library can keep it, and nothing breaks where it cannot."""

import ctypes
import os
import platform
import subprocess
import sys

import pytest

from orrery.demo import freed_memory
from orrery.demo.freed_memory import keep_freed_memory


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the setting is glibc's")
def test_what_a_step_frees_is_not_faulted_in_again():
    # In a program of its own: the setting is the process's.
    code = """if True:
        import resource
        import torch
        from orrery.demo.freed_memory import keep_freed_memory
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


def test_another_c_library_is_left_alone(monkeypatch):
    monkeypatch.setattr(ctypes, "CDLL", lambda name: object())
    assert keep_freed_memory() is False
    monkeypatch.setattr(freed_memory.sys, "platform", "darwin")
    assert keep_freed_memory() is False
