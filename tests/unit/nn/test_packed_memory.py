"""What mixers with a state hold over packed rows grows with the tokens, not with their square."""

import importlib.util
import sys
from itertools import pairwise
from pathlib import Path

import pytest
import torch

from orrery.families import _registry

_PATH = Path(__file__).parents[3] / "benchmarks" / "packed_rows.py"
_SPEC = importlib.util.spec_from_file_location("packed_rows", _PATH)
packed_rows = importlib.util.module_from_spec(_SPEC)
sys.path.insert(0, str(_PATH.parent))  # programs import what they share, as scripts do
_SPEC.loader.exec_module(packed_rows)
sys.path.remove(str(_PATH.parent))

MARGIN = 1.1
"""Twice the tokens may hold 2.2 times the bytes; a matrix of pairs would hold four times as many."""


def doubles(held):
    """Say whether each number is at most about twice the one before it."""
    return all(b <= 2 * MARGIN * a for a, b in pairwise(held))


def test_the_measure_sees_a_matrix_that_is_gone_again():
    def matrix(tokens):
        return packed_rows.held_at_most(lambda: torch.ones(tokens, tokens, dtype=torch.bool).any())

    held = [matrix(tokens) for tokens in (512, 1024, 2048)]
    assert 2048**2 <= held[-1] < 1.1 * 2048**2
    assert not doubles(held)


@pytest.mark.parametrize("family", packed_rows.FAMILIES)
def test_a_packed_row_of_32768_tokens_holds_four_times_one_of_8192(family):
    model = packed_rows.tiny(family)
    held = [packed_rows.peak(model, packed_rows.documents(tokens, 64)) for tokens in packed_rows.TOKENS]
    assert packed_rows.TOKENS == (8192, 16384, 32768)
    assert doubles(held)
    assert held[-1] < 1500 * 32768  # bytes; one matrix of pairs, of one byte each, would be 32,768 a token


@pytest.mark.parametrize(("family", "scan"), [("elman_rnn", "parallel"), ("elman_rnn", "step"), ("nplm", "parallel"),
                                              ("decaying", "chunked")])  # fmt: skip
def test_one_long_document_beside_many_short_ones_pads_none_of_them(monkeypatch, family, scan):
    monkeypatch.setitem(_registry._registered, "decaying", "mixer_toy")
    model = packed_rows.tiny(family)
    model.scan = scan
    held = []
    for tokens in (256, 512, 1024):
        documents_L = torch.arange(tokens) - tokens // 2
        held.append(packed_rows.peak(model, documents_L.clamp(min=0)[None]))
    assert doubles(held)
