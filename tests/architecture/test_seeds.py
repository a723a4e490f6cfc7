"""A test draws the same numbers in every run, whatever ran before it and whoever asked first for what it shares."""

import random
import zlib

import numpy
import pytest
import torch


def draw():
    return random.random(), float(numpy.random.rand()), float(torch.rand(()))


@pytest.fixture(scope="module", params=["one", "other"])
def shared(request):
    return request.param, draw()


def test_the_numbers_of_a_test_are_those_of_its_name(request):
    found = draw()
    seed = zlib.crc32(request.node.nodeid.encode())
    random.seed(seed)
    numpy.random.seed(seed)
    torch.manual_seed(seed)
    assert found == draw()


def test_what_is_shared_draws_its_own_and_leaves_the_test_its_own(shared):
    torch.manual_seed(
        zlib.crc32(f"tests/architecture/test_seeds.py::shared::{['one', 'other'].index(shared[0])}".encode())
    )
    assert float(torch.rand(())) == shared[1][2]


def test_what_is_shared_is_drawn_once(request, shared):
    found = float(torch.rand(()))
    torch.manual_seed(zlib.crc32(request.node.nodeid.encode()))
    assert found == float(torch.rand(())) != shared[1][2]
