"""Blocks at several depths: each turn has its own parts, shares the others, and reads what entered the stack."""

from dataclasses import replace

import pytest
import torch
from tests.parity.oracle import randomise
from torch import nn

from orrery.errors import UsageError
from orrery.families import load_family
from orrery.nn.attention.kernels import eager
from orrery.nn.cache.contract import UNCACHED, Layer
from orrery.nn.context import Context
from orrery.nn.elementwise import Projection
from orrery.nn.feedforward.gated import GatedMLP
from orrery.nn.low_rank import LowRankSum
from orrery.nn.norms import RMSNorm
from orrery.nn.residual import Normed
from orrery.nn.several_depths import BesideEntry, BranchChain, BranchInput, ByTurn

ENTERED, STREAM = torch.randn(2, 3, 4).double(), torch.randn(2, 3, 4).double()
CTX = Context(positions={}, masks={}, cache=UNCACHED, kernel=eager, entered=ENTERED)
ADAPTED = LowRankSum.Spec(of=GatedMLP.Spec(hidden=6), groups=(("gate", "up"),), rank=2)


def at(turn):
    return replace(CTX, layer=Layer(turn, f"blocks.{turn}", UNCACHED, turn))


def built(spec):
    model = spec.build(4).double()
    randomise(model, seed=1)
    return model


def test_a_product_of_low_rank_is_added_and_its_first_matrix_is_one_for_a_group():
    network = built(ADAPTED)
    gate, up = network.gate, network.up
    assert gate.down is up.down
    assert len(list(network.parameters())) == 6

    def product(part):
        return STREAM @ (part.linear.weight + part.up.weight @ gate.down.weight).T

    expected = nn.functional.silu(product(gate)) * product(up) @ network.down.weight.T
    assert torch.allclose(network(STREAM, at(0)), expected, rtol=0, atol=1e-12)


def test_a_branch_reads_the_stream_beside_what_entered_and_is_added_to_what_the_next_reads():
    beside = BesideEntry.Spec(
        branch=Normed.Spec(norm=RMSNorm.Spec(), branch=GatedMLP.Spec(hidden=5), post=Projection.Spec(width=4))
    )
    assert beside.out_width(4) == 4
    chain = built(BranchChain.Spec(branches={"first": BranchInput.Spec(branch=beside), "second": ADAPTED}))
    inner = chain.first.branch.branch
    both = torch.cat([STREAM, ENTERED], -1)
    said = inner.post(inner.branch(inner.norm(both), at(0)))
    expected = chain.second(STREAM + said, at(0))
    assert torch.equal(chain(STREAM, at(0)), expected)


def test_turns_share_what_is_named_and_nothing_else():
    both = built(ByTurn.Spec(branch=ADAPTED, turns=2, shared=("gate.linear", "down")))
    first, second = both.turns
    assert first.gate.linear is second.gate.linear
    assert first.down is second.down
    assert first.up.linear is not second.up.linear
    assert len(list(both.parameters())) == 10
    for turn, part in enumerate(both.turns):
        assert torch.equal(both(STREAM, at(turn)), part(STREAM, at(turn)))
    assert (both(STREAM, at(0)) - both(STREAM, at(1))).abs().max() > 1e-3


def test_what_cannot_be_shared_is_refused_by_name():
    with pytest.raises(UsageError, match=r"no part 'gate\.bend' to share"):
        ByTurn.Spec(branch=ADAPTED, turns=2, shared=("gate.bend",)).build(4)
    with pytest.raises(UsageError, match="a branch of 0 turns"):
        ByTurn.Spec(branch=ADAPTED, turns=0).build(4)


def test_a_stack_counts_the_turns_of_its_blocks():
    rules = load_family("zamba2")
    stack = (
        rules.spec({**rules.TINY, "num_hidden_layers": 6, "layers_block_type": ["hybrid", "mamba"] * 3}).build(0).stack
    )
    assert stack.order == (0, 1, 2, 3, 0, 4)
    assert stack.turns == [0, 0, 0, 0, 1, 0]
    assert [stack.layer(depth, UNCACHED).turn for depth in range(6)] == stack.turns
