"""Edits against TransformerLens on the same weights: activation patching, and heads set to zero or to their mean."""

from functools import partial

import pytest
import torch

from orrery.exchange.reading.read import read
from orrery.inspection.research.patching import activation_patching
from orrery.inspection.trace import trace
from tests.parity.bridge import EXACT, VOCABULARY, booted, broken, transformer_lens, written
from tests.parity.helper import error

BLOCKS, HEADS, LENGTH = 2, 4, 6
CLEAN = torch.randint(0, VOCABULARY, (2, LENGTH), generator=torch.Generator().manual_seed(1))
CORRUPTED = torch.where(torch.arange(LENGTH) == 2, (CLEAN + 7) % VOCABULARY, CLEAN)
ANSWER, AGAINST = 7, 5

GRIDS = {
    "residual": ("resid_pre", ("layer", "pos")),
    "attention": ("attn_out", ("layer", "pos")),
    "feed_forward": ("mlp_out", ("layer", "pos")),
    "heads": ("attn_head_out_all_pos", ("layer", "head")),
    "heads_by_position": ("attn_head_out_by_pos", ("layer", "pos", "head")),
    "queries": ("attn_head_q_all_pos", ("layer", "head")),
    "keys": ("attn_head_k_all_pos", ("layer", "head")),
    "values": ("attn_head_v_all_pos", ("layer", "head")),
    "patterns": ("attn_head_pattern_all_pos", ("layer", "head")),
}
"""What is patched, the library's function for it, and the axes of its grid."""

KEYS = {"z": "attention.mixed", "q": "attention.q", "k": "attention.k", "v": "attention.v"}


@pytest.fixture(scope="module")
def lens():
    with transformer_lens() as library:
        yield library


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return written(tmp_path_factory.mktemp("gpt2"))


@pytest.fixture(scope="module")
def theirs(lens, folder):
    return booted(lens, folder)


@pytest.fixture
def ours(folder):
    return read(folder).model.double().eval()


def difference(logits_BLV):
    """Return the mean over texts of the measure at the last position."""
    return (logits_BLV[:, -1, ANSWER] - logits_BLV[:, -1, AGAINST]).mean()


@torch.no_grad()
def patched_there(library, model, function):
    """Return the library's grid, from 0 (corrupted) to 1 (clean).

    It stores what it measured in float32; the measure is called once for each place in the order of the grid, and its
    float64 is kept here.
    """
    clean, cache = model.run_with_cache(CLEAN)
    differences = []

    def measure(logits_BLV):
        differences.append(difference(logits_BLV))
        return differences[-1]

    grid = getattr(library.patching, f"get_act_patch_{function}")(model, CORRUPTED, cache, measure)
    exact = torch.stack(differences).view(grid.shape)
    assert error(grid.double(), exact) < 1e-6
    corrupted = difference(model(CORRUPTED))
    return (exact - corrupted) / (difference(clean) - corrupted)


def patched_here(model, at):
    """Return our grid, its axes in the library's order."""
    grid = activation_patching(model, CLEAN, CORRUPTED, ANSWER, AGAINST, at=at).grid
    return grid.transpose(1, 2) if at == "heads_by_position" else grid


@pytest.mark.parametrize("at", GRIDS)
def test_a_patch_restores_what_it_restores_there(lens, theirs, ours, at):
    function, axes = GRIDS[at]
    expected, restored = patched_there(lens, theirs, function), patched_here(ours, at)
    sizes = {"layer": BLOCKS, "pos": LENGTH, "head": HEADS}
    assert restored.shape == expected.shape == tuple(sizes[axis] for axis in axes)
    assert error(restored, expected) < 1e-10  # a quotient of differences
    assert len(restored.unique()) > 3  # the places do not restore one and the same


@pytest.mark.parametrize("at", GRIDS)
def test_the_grids_of_a_broken_model_are_others(lens, theirs, ours, at):
    expected = patched_there(lens, theirs, GRIDS[at][0])
    assert error(patched_here(broken(ours, "stack.blocks.1.attention.branch.v.weight", 9), at), expected) > 1e-6


def test_two_sites_do_not_restore_the_same(lens, theirs, ours):
    assert error(patched_here(ours, "queries"), patched_there(lens, theirs, GRIDS["keys"][0])) > 1e-3


def test_a_pattern_is_patched_row_by_row(lens, theirs, ours):
    """Ours through the list of edits, theirs for every head and every query."""
    expected = patched_there(lens, theirs, "attn_head_pattern_by_pos")
    clean, corrupted = trace(ours, CLEAN), trace(ours, CORRUPTED)
    ends = [difference(run.logits) for run in (clean, corrupted)]
    for block in range(BLOCKS):
        for head in range(HEADS):
            for query in range(LENGTH):
                edits = corrupted.edit(sources={"clean": clean})
                key = f"blocks.{block}.attention.pattern"
                difference_there = difference(
                    edits.patch(key, "clean", head=head, position=query).run(keep=["logits"]).logits
                )
                restored = (difference_there - ends[1]) / (ends[0] - ends[1])
                assert error(restored, expected[block, head, query]) < 1e-10


def without(model, name, change):
    """Return the library's logits where one hook's tensor, positions before heads, is changed."""
    with torch.no_grad():
        return model.run_with_hooks(CLEAN, fwd_hooks=[(name, change)])


def of_head(value_BLHC, hook, head, made):
    value_BLHC = value_BLHC.clone()
    value_BLHC[:, :, head] = made(value_BLHC[:, :, head])
    return value_BLHC


ABLATIONS = {"zero": torch.zeros_like, "mean": lambda x_BLC: x_BLC.mean(1, keepdim=True).expand_as(x_BLC)}


@pytest.mark.parametrize("letter", KEYS)
@pytest.mark.parametrize("op", ABLATIONS)
def test_a_head_without_its_numbers(theirs, ours, op, letter):
    inside = trace(ours, CLEAN)
    logits_without = {}
    for block in range(BLOCKS):
        for head in range(HEADS):
            made = getattr(inside.edit(), op)(f"blocks.{block}.{KEYS[letter]}", head=head)
            logits_without[block, head] = made.run().logits
            change = partial(of_head, head=head, made=ABLATIONS[op])
            expected = without(theirs, f"blocks.{block}.attn.hook_{letter}", change)
            assert error(logits_without[block, head], expected) < EXACT
            assert error(logits_without[block, head], inside.logits) > 1e-4
    assert error(logits_without[0, 0], logits_without[1, 0]) > 1e-4


@pytest.mark.parametrize("op", ABLATIONS)
@pytest.mark.parametrize(("name", "key"), [("attn_out", "attention.added"), ("mlp_out", "feed_forward.added")])
def test_a_sublayer_without_its_numbers(theirs, ours, op, name, key):
    for block in range(BLOCKS):
        logits = getattr(trace(ours, CLEAN).edit(), op)(f"blocks.{block}.{key}").run().logits
        expected = without(theirs, f"blocks.{block}.hook_{name}", lambda x_BLD, hook: ABLATIONS[op](x_BLD))
        assert error(logits, expected) < EXACT


def test_the_mean_of_another_text(theirs, ours):
    """Mean ablation with the mean of the corrupted run, as researchers do it with the mean of a data set."""
    with torch.no_grad():
        _, cache = theirs.run_with_cache(CORRUPTED)
    mean_BHC = cache["blocks.1.attn.hook_z"].mean(1)
    change = partial(of_head, head=2, made=lambda x_BLC: mean_BHC[:, None, 2].expand_as(x_BLC))
    edits = trace(ours, CLEAN).edit(sources={"other": trace(ours, CORRUPTED)})
    logits = edits.mean("blocks.1.attention.mixed", source="other", head=2).run().logits
    assert error(logits, without(theirs, "blocks.1.attn.hook_z", change)) < EXACT


def test_the_ablations_of_a_broken_model_are_others(theirs, ours):
    change = partial(of_head, head=1, made=torch.zeros_like)
    expected = without(theirs, "blocks.0.attn.hook_z", change)
    traced = trace(broken(ours, "stack.blocks.0.attention.branch.out.weight", 3), CLEAN).edit()
    assert error(traced.zero("blocks.0.attention.mixed", head=1).run().logits, expected) > 1e-6
