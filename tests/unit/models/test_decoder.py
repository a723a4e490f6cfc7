"""The decoder: what positions are for, what shared blocks keep apart, and what it refuses."""

from dataclasses import replace

import pytest
import torch

from orrery.errors import UsageError
from orrery.families import load_family
from orrery.laws.evidence import deviation
from orrery.laws.models import CONFIGS, random_ids, tiny
from orrery.nn.attention.multihead import MultiHeadAttention
from orrery.nn.block import Block
from orrery.nn.cache.kinds import growing
from orrery.nn.cache.rows import EVERY_MASK
from orrery.nn.masks import Full
from orrery.nn.norms import LayerNorm
from orrery.nn.positions.learned import LearnedPositions
from orrery.nn.positions.onehot import OneHotPositions
from orrery.nn.positions.rotary import Rotary
from orrery.nn.positions.sinusoidal import SinusoidalPositions
from orrery.nn.residual import Residual
from orrery.nn.stack import repeat

SCHEMES = {
    "none": None,
    "onehot": OneHotPositions.Spec(length=12),
    "sinusoidal": SinusoidalPositions.Spec(),
    "learned": LearnedPositions.Spec(length=12),
    "rotary": Rotary.Spec(width=8),
}


def with_scheme(name):
    """Return a full-attention model (no causal mask to tell places apart) with one scheme of positions."""
    spec = load_family("gpt2").spec({**CONFIGS["gpt2"], "tie_word_embeddings": False})
    position = name if name == "rotary" else "none"
    attention = MultiHeadAttention.Spec(heads=3, kv_heads=3, head_width=8, position=position, mask="all")
    norm = LayerNorm.Spec()
    blocks = repeat(Block.Spec(residuals={"attention": Residual.Spec(branch=attention, pre=norm)}), 2)
    positions = {} if SCHEMES[name] is None else {name: SCHEMES[name]}
    stack = replace(spec.stack, blocks=blocks, positions=positions, masks={"all": Full()})
    torch.manual_seed(0)
    return replace(spec, stack=stack).build(0).double().eval()


@pytest.mark.parametrize("scheme", SCHEMES)
@torch.no_grad()
def test_without_positions_outputs_permute_with_inputs_and_with_them_they_do_not(scheme):
    model, ids = with_scheme(scheme), random_ids(1, 9)
    order = torch.randperm(9, generator=torch.Generator().manual_seed(0))
    difference = deviation(model.logits(ids[:, order]), model.logits(ids)[:, order])
    assert difference < 1e-12 if scheme == "none" else difference > 1e-3


@torch.no_grad()
def test_one_block_object_at_several_depths_keeps_taps_and_caches_apart():
    model = load_family("llama").spec({**CONFIGS["llama"], "num_hidden_layers": 3}).build(0).double().eval()
    model.stack.blocks = torch.nn.ModuleList([model.stack.blocks[0]] * 3)
    keys, ids = [], random_ids(2, 7)
    expected = model.logits(ids, taps=lambda key, value: keys.append(key) or value)
    assert len(set(keys)) == len(keys)
    assert [key for key in keys if key.endswith("mixed")] == [f"blocks.{i}.attention.mixed" for i in range(3)]
    logits, session = model.start(ids[:, :4], 7)
    assert sorted(session.cache.stores[EVERY_MASK].keys) == [0, 1, 2]
    stepped = model.step(ids[:, 4:], session)
    assert deviation(torch.cat([logits[:, None], stepped], 1), expected[:, 3:]) < 1e-9


@pytest.mark.parametrize("family", ["gpt2", "llama"])
@torch.no_grad()
def test_given_positions_and_hidden(family):
    model, ids = tiny(family), random_ids(2, 6)
    counted = torch.arange(6)[None].expand(2, -1)
    assert deviation(model.logits(ids, positions=counted), model.logits(ids)) < 1e-12
    assert deviation(model.head(model.hidden(ids)), model.logits(ids)) == 0
    assert deviation(model.logits(ids, positions=counted + 3), model.logits(ids)) > (1e-3 if family == "gpt2" else -1)


def test_empty_prompts_are_refused():
    model = tiny("gpt2")
    with pytest.raises(UsageError, match="empty prompt"):
        model.start(torch.zeros(1, 0, dtype=torch.long), 8)
    with pytest.raises(UsageError, match="empty prompt"):
        model.start(random_ids(2, 3), 8, torch.tensor([3, 0]))


@torch.no_grad()
def test_the_end_of_a_cache_and_of_the_positions_are_refused():
    model = tiny("gpt2")
    _, session = model.start(random_ids(1, 4), 5)
    model.step(random_ids(1, 1), session)
    with pytest.raises(UsageError, match="row of 6 tokens does not fit a cache of 5"):
        model.step(random_ids(1, 1), session)
    with pytest.raises(UsageError, match="48 positions"):
        model.start(random_ids(1, 4), 49)
    with pytest.raises(UsageError, match="48 positions"):
        model.logits(random_ids(1, 49))


@torch.no_grad()
def test_padding_on_the_left_takes_no_room_in_a_cache():
    model, ids = tiny("llama"), random_ids(2, 6)
    real = torch.arange(6) >= torch.tensor([[0], [4]])
    cache = growing(2, 7)
    for part, keep in ((ids, real), (ids[:, :1], None)):
        x, ctx = model.prepare(part, real=keep, cache=cache)
        logits = model.head(model.stack(x, ctx))
    assert cache.lengths_B.tolist() == [7, 3]
    row = torch.cat([ids[1:, 4:], ids[1:, :1]], 1)
    assert deviation(logits[1, 0], model.logits(row)[0, -1]) < 1e-9


@torch.no_grad()
def test_a_ragged_step_may_fill_the_cache_to_its_end():
    model, ids = tiny("llama"), random_ids(2, 8)
    _, session = model.start(ids[:, :7], 8, torch.tensor([7, 2]), cache=growing(2, 8))
    stepped = model.step(ids[:, :3], session, torch.tensor([1, 3]))
    row = torch.cat([ids[:1, :7], ids[:1, :1]], 1)
    assert deviation(stepped[0, 0], model.logits(row)[0, -1]) < 1e-9
    assert session.lengths == (8, 5)
