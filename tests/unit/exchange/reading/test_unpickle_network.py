"""The process that reads a pickle leaves the network before anything else."""

import ctypes
from types import SimpleNamespace

import pytest

from orrery.exchange.reading import unpickle


@pytest.mark.parametrize("refused", [0, 1, 2])
def test_the_network_is_left_alone_or_with_the_users(monkeypatch: pytest.MonkeyPatch, refused: int) -> None:
    """Only root may leave the network alone; with its users too anybody may. The numbers are those of linux/sched.h."""
    users, network = 1 << 28, 1 << 30
    asked: list[int] = []

    def unshare(flags: int) -> int:
        asked.append(flags)
        return -1 if len(asked) <= refused else 0

    monkeypatch.setattr(ctypes, "CDLL", lambda name, use_errno: SimpleNamespace(unshare=unshare))
    unpickle._leave_the_network()
    assert asked == [network, users | network][: refused + 1]
