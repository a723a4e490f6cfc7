"""Every test draws the same numbers in every run: torch begins a process with a seed that nobody chose.

What fails once in a thousand draws would fail on another's machine, after a change that it has nothing to do with. So a
test begins with the seed of its own name, and a fixture that several tests share with the seed of the fixture's,
whichever test asks for it first.
"""

import random
import zlib
from collections.abc import Iterator
from typing import Any

import numpy
import pytest
import torch


def begin_with(name: str) -> None:
    """Let the generators that belong to the process begin with the seed of a name."""
    seed = zlib.crc32(name.encode())
    random.seed(seed)
    numpy.random.seed(seed)
    torch.manual_seed(seed)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    begin_with(item.nodeid)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest) -> Iterator[None]:
    """Set a shared fixture up with its own seed: the test that asks first draws what it would have drawn without it."""
    if fixturedef.scope == "function":
        return (yield)
    before = random.getstate(), numpy.random.get_state(), torch.get_rng_state()
    begin_with(f"{fixturedef.baseid}::{fixturedef.argname}::{getattr(request, 'param_index', 0)}")
    try:
        return (yield)
    finally:
        random.setstate(before[0])
        numpy.random.set_state(before[1])
        torch.set_rng_state(before[2])
