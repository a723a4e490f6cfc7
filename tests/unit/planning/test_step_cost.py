"""A step's cost is what torch's counter sees of a real one, for every family; equal blocks are counted, not run."""

from copy import deepcopy
from dataclasses import replace

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from orrery.errors import UsageError
from orrery.families import load_family, names
from orrery.models.model import apply
from orrery.nn.rehearsal import rehearsing
from orrery.planning.presets import preset
from orrery.planning.recomputation import recompute_blocks
from orrery.planning.rehearsal import RehearsedCost, rehearsed, watched
from orrery.planning.step_cost import cross_entropy, example_batch, step_cost


@pytest.fixture
def countable():
    """Let torch take kernels that its counter knows."""
    onednn = torch.backends.mkldnn
    before, onednn.enabled = onednn.enabled, False
    with sdpa_kernel(SDPBackend.MATH):
        yield
    onednn.enabled = before


def counted(spec, rows, length):
    """What torch's counter sees of a real step: the forward pass, and both passes."""
    torch.manual_seed(0)
    model, batch = spec.build(0).train(), example_batch(spec, rows, length)
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        model(batch)
    with FlopCounterMode(display=False) as both:
        said = model(batch, spec.head_names or None).values()
        sum(part.float().sum() for part in said if isinstance(part, torch.Tensor)).backward()
    return counter.get_total_flops(), both.get_total_flops()


@pytest.mark.parametrize("family", names())
def test_operations_are_those_that_torch_counts(countable, family):
    spec = load_family(family).spec(load_family(family).TINY)
    cost = step_cost(spec, 2, 8, torch.float32, apply)
    assert (cost.forward.total, cost.training.total) == counted(spec, 2, 8)


@pytest.mark.parametrize("family", ["gpt2", "gemma2", "t5", "jamba"])
def test_blocks_that_stand_for_several_cost_what_all_of_them_do(family):
    rules = load_family(family)
    layers = {key: 4 for key in ("n_layer", "num_hidden_layers", "num_layers") if key in rules.TINY}
    spec = rules.spec({**rules.TINY, **layers})
    cost = step_cost(spec, 2, 8)
    with rehearsed() as noted:
        model, batch = spec.build().train(), example_batch(spec, 2, 8)
        before = noted.live
        with noted.part("training"):
            with torch.autocast("cpu", torch.bfloat16):
                out = model(batch, dict.fromkeys(spec.head_names, cross_entropy))
                loss = sum(part.float().sum() for part in out.values())
            kept = noted.live - before
            loss.backward()
    assert cost.training == noted.work["training"]
    assert cost.kept == pytest.approx(kept, rel=1e-3)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_what_lies_in_memory_is_what_a_real_step_keeps(dtype):
    rules = load_family("llama")
    spec = rules.spec({**rules.TINY, "hidden_size": 96, "intermediate_size": 160})
    with watched() as noted:  # the same bookkeeping beside tensors that have numbers
        model, batch = spec.build().train(), example_batch(spec, 4, 32)
        before = noted.live
        with torch.autocast("cpu", dtype, enabled=dtype != torch.float32):
            out = model(batch, dict.fromkeys(spec.head_names, cross_entropy))
            loss = sum(part.float().sum() for part in out.values())
        kept = noted.live - before
        del out, loss
    assert step_cost(spec, 4, 32, dtype).kept == pytest.approx(kept, rel=0.01)


def test_a_rehearsal_leaves_nothing_behind():
    rules = load_family("llama")
    spec = rules.spec({**rules.TINY, "rope_theta": 4321.0})  # a table of rotations that nothing has made before
    step_cost(spec, 1, 4)
    assert not rehearsing()
    model = spec.build(0)
    assert all(type(out) is torch.Tensor for out in model(example_batch(spec, 1, 4)).values())


def test_a_model_that_does_more_is_found_out(countable):
    spec = load_family("gpt2").spec(load_family("gpt2").TINY)
    wider = replace(spec, stack=replace(spec.stack, blocks=(*spec.stack.blocks, spec.stack.blocks[0])))
    assert step_cost(spec, 2, 8, torch.float32, apply).training.total != counted(wider, 2, 8)[1]


def test_work_is_added_and_multiplied():
    assert 2 * RehearsedCost(3, 4) + RehearsedCost(1, 1) == RehearsedCost(7, 9)
    assert (RehearsedCost(3, 4) - RehearsedCost(1, 1)).total == 5


@pytest.mark.parametrize(("rows", "length"), [(0, 8), (1, 0), (-1, 8)])
def test_a_step_on_nothing_is_refused(rows, length):
    with pytest.raises(UsageError, match=f"a step on {rows} rows of {length} tokens"):
        step_cost(preset("gpt3-125m"), rows, length)


@pytest.mark.parametrize("family", ["llama", "t5", "jamba"])
def test_blocks_that_are_recomputed_keep_what_they_keep_in_a_real_step(family):
    rules = load_family(family)
    layers = {key: 4 for key in ("num_hidden_layers", "num_layers", "num_decoder_layers") if key in rules.TINY}
    spec = rules.spec({**rules.TINY, **layers})
    with watched() as noted:
        model, batch = spec.build().train(), example_batch(spec, 2, 16)
        recompute_blocks(model)
        before = noted.live
        with noted.part("training"):
            out = model(batch, dict.fromkeys(spec.head_names, cross_entropy))
            loss = sum(part.float().sum() for part in out.values())
            kept = noted.live - before
            loss.backward()
    cost = step_cost(spec, 2, 16, torch.float32, prepare=recompute_blocks)
    assert cost.training == noted.work["training"]
    assert cost.kept == pytest.approx(kept, rel=1e-3)
    usual = step_cost(spec, 2, 16, torch.float32)
    assert cost.forward == usual.forward
    assert cost.kept < usual.kept / 4
    assert usual.training.total < cost.training.total < 4 / 3 * usual.training.total


def test_recomputed_gradients_are_the_same():
    rules = load_family("gpt2")
    usual = rules.spec(rules.TINY).build().double().eval()
    again = deepcopy(usual)
    recompute_blocks(again)
    for model in (usual, again):
        out = model({"ids": torch.arange(16).reshape(2, 8)}, {"language_model": cross_entropy})
        out["language_model"].sum().backward()
    for own, recomputed in zip(usual.parameters(), again.parameters(), strict=True):
        torch.testing.assert_close(recomputed.grad, own.grad, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("family", ["llama", "bert"])
def test_the_pieces_of_the_head_change_nothing_of_a_cost(family, monkeypatch):
    spec = load_family(family).spec(load_family(family).TINY)
    whole = step_cost(spec, 3, 5)
    monkeypatch.setattr("orrery.nn.cross_entropy.LOGITS_AT_ONCE", 500)
    assert step_cost(spec, 3, 5, answer=cross_entropy).kept == whole.kept
    assert step_cost(spec, 3, 5) == whole


@pytest.mark.parametrize("rows", [1, 2**15])
def test_a_step_of_a_billion_tokens_is_rehearsed_in_a_few_operations(rows, monkeypatch):
    calls = []
    monkeypatch.setattr("orrery.planning.rehearsal.operations_of", lambda *given: calls.append(1) or 0)
    step_cost(load_family("llama").spec({**load_family("llama").TINY, "max_position_embeddings": 2**17}), rows, 2**17)
    assert len(calls) < 5_000


@pytest.mark.parametrize(
    ("family", "rows", "length"),
    [("llama", 2**31 - 1, 2048), ("mamba", 2**31 - 1, 2**31 - 1), ("t5", 1, 2**31 - 1), ("t5", 2**31 - 1, 10**8)],
)
def test_more_than_torch_can_count_is_refused(family, rows, length):
    with pytest.raises(UsageError, match="more than can be planned"):
        step_cost(load_family(family).spec(load_family(family).TINY), rows, length)
