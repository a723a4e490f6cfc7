"""The original Transformer against torch's modules with the same weights, and against the paper's formulas in loops."""

import math

import pytest
import torch
from torch import nn

from orrery.families import load_family
from orrery.laws.models import random_ids
from orrery.nn.attention.kernels import KERNELS
from tests.parity.helper import error
from tests.parity.oracle import randomise

CONFIG = {"vocab_size": 61, "d_model": 24, "d_ff": 40, "num_layers": 2, "num_heads": 3, "layer_norm_eps": 0.01}
LENGTHS = (9, 5, 1)


def ours(dtype=torch.float64):
    model = load_family("transformer").spec(CONFIG).build(0).to(dtype).eval()
    randomise(model, seed=0)
    return model


def copied(model):
    """Return torch's Transformer with our weights; the paper has no norm at the end of a stack."""
    settings = {"d_model": 24, "nhead": 3, "dim_feedforward": 40, "layer_norm_eps": 0.01, "batch_first": True}
    reads, writes = nn.TransformerEncoderLayer(**settings), nn.TransformerDecoderLayer(**settings)
    theirs = nn.Transformer(
        custom_encoder=nn.TransformerEncoder(reads, 2, enable_nested_tensor=False),
        custom_decoder=nn.TransformerDecoder(writes, 2),
        d_model=24,
        nhead=3,
        batch_first=True,
    ).to(model.reader.embed.token.weight.dtype)
    stacks = {"encoder": model.reader.stack, "decoder": model.decoder}
    for side in stacks:
        for layer, block in zip(getattr(theirs, side).layers, stacks[side].blocks, strict=True):
            fill(layer, block)
    return theirs.eval()


@torch.no_grad()
def fill(layer, block):
    roles = [("self_attn", "norm1", block.attention)]
    roles += [("multihead_attn", "norm2", block.cross)] if hasattr(block, "cross") else []
    for name, norm, residual in roles:
        attention = getattr(layer, name)
        parts = [residual.branch.q, residual.branch.k, residual.branch.v]
        attention.in_proj_weight.data = torch.cat([part.weight for part in parts])
        attention.in_proj_bias.data = torch.cat([part.bias for part in parts])
        attention.out_proj.load_state_dict(residual.branch.out.state_dict())
        getattr(layer, norm).load_state_dict(residual.out.state_dict())
    layer.linear1.load_state_dict(block.feed_forward.branch.up.state_dict())
    layer.linear2.load_state_dict(block.feed_forward.branch.down.state_dict())
    getattr(layer, f"norm{len(roles) + 1}").load_state_dict(block.feed_forward.out.state_dict())


def position(k, width):
    """Return the vector of position k, number by number (section 3.5)."""
    angles = [k / 10_000 ** (2 * (c // 2) / width) for c in range(width)]
    return torch.tensor([math.cos(a) if c % 2 else math.sin(a) for c, a in enumerate(angles)], dtype=torch.float64)


def embedded(model, ids, positions):
    table = torch.stack([torch.stack([position(int(k), 24) for k in row]) for row in positions])
    return model.reader.embed.token.weight[ids] * math.sqrt(24) + table.to(model.reader.embed.token.weight.dtype)


@pytest.mark.parametrize(("dtype", "bound"), [(torch.float64, 1e-9), (torch.float32, 1e-5)], ids=str)
@pytest.mark.parametrize("side", ["right", "left"])
@torch.no_grad()
def test_against_torch(dtype, bound, side):
    model, source, target = ours(dtype), random_ids(3, 9), random_ids(3, 6, seed=2)
    real = torch.arange(9) < torch.tensor(LENGTHS)[:, None]
    real = real.flip(1) if side == "left" else real
    positions = (real.long().cumsum(1) - 1).clamp(min=0)
    expected = copied(model)(
        embedded(model, source, positions),
        embedded(model, target, torch.arange(6).expand(3, -1)),
        tgt_mask=nn.Transformer.generate_square_subsequent_mask(6, dtype=dtype),
        src_key_padding_mask=~real,
        memory_key_padding_mask=~real,
        tgt_is_causal=True,
    )
    expected = expected @ model.reader.embed.token.weight.T
    for kernel in KERNELS.values():
        assert error(model.logits(source, target, source_real=real, kernel=kernel), expected) < bound


def attention(branch, queries, encoder_states, *, causal):
    """Return the attention of section 3.2, query by query and head by head."""
    q, k, v = branch.q(queries), branch.k(encoder_states), branch.v(encoder_states)
    rows = []
    for i in range(len(queries)):
        seen, heads = range(i + 1 if causal else len(encoder_states)), []
        for part in (slice(8 * head, 8 * head + 8) for head in range(3)):
            weights = [torch.exp(q[i, part] @ k[j, part] / math.sqrt(8)) for j in seen]
            heads.append(sum(w / sum(weights) * v[j, part] for w, j in zip(weights, seen, strict=True)))
        rows.append(torch.cat(heads))
    return branch.out(torch.stack(rows))


def normalised(norm, x):
    centred = x - x.mean(-1, keepdim=True)
    return centred / torch.sqrt((centred**2).mean(-1, keepdim=True) + 0.01) * norm.weight + norm.bias


def by_hand(model, source, target):
    """Return the logits of one pair, from the formulas of the paper's section 3."""
    x, y = (embedded(model, ids[None], [range(len(ids))])[0] for ids in (source, target))
    for block in model.reader.stack.blocks:
        x = normalised(block.attention.out, x + attention(block.attention.branch, x, x, causal=False))
        x = normalised(block.feed_forward.out, x + network(block.feed_forward.branch, x))
    for block in model.decoder.blocks:
        y = normalised(block.attention.out, y + attention(block.attention.branch, y, y, causal=True))
        y = normalised(block.cross.out, y + attention(block.cross.branch, y, x, causal=False))
        y = normalised(block.feed_forward.out, y + network(block.feed_forward.branch, y))
    return y @ model.reader.embed.token.weight.T


def network(branch, x):
    return torch.clamp(x @ branch.up.weight.T + branch.up.bias, min=0) @ branch.down.weight.T + branch.down.bias


@torch.no_grad()
def test_against_the_formulas():
    model, source, target = ours(), random_ids(2, 7), random_ids(2, 5, seed=2)
    logits = model.logits(source, target)
    for row in range(2):
        assert error(logits[row], by_hand(model, source[row], target[row])) < 1e-9


@torch.no_grad()
def test_greedy_tokens_are_those_of_torch_without_a_cache():
    model, source = ours(), random_ids(2, 7)
    theirs = copied(model)
    encoder_states = theirs.encoder(embedded(model, source, torch.arange(7).expand(2, -1)))
    written = torch.full((2, 1), model.spec.start)
    logits, session = model.start(source, capacity=17)
    for n in range(1, 17):
        mask = nn.Transformer.generate_square_subsequent_mask(n, dtype=torch.float64)
        answer = theirs.decoder(embedded(model, written, torch.arange(n).expand(2, -1)), encoder_states, tgt_mask=mask)
        token = logits.argmax(-1, keepdim=True)
        assert torch.equal(token, (answer[:, -1] @ model.reader.embed.token.weight.T).argmax(-1, keepdim=True))
        written = torch.cat([written, token], 1)
        stepped = model.step(token, session)
        logits = stepped[:, -1]


def test_gradients_of_every_parameter():
    model, source, target = ours(), random_ids(2, 7), random_ids(2, 5, seed=2)
    weight = torch.randn(2, 5, 61, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    (model.logits(source, target) * weight).sum().backward()
    gradients_found = {name: p.grad.clone() for name, p in model.named_parameters()}
    model.zero_grad()
    sum((by_hand(model, s, t) * w).sum() for s, t, w in zip(source, target, weight, strict=True)).backward()
    for name, p in model.named_parameters():
        assert error(gradients_found[name], p.grad) < 1e-9, name
