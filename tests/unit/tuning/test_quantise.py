"""Matrices in whole numbers: rounded well, written out exactly, multiplied the same in every way, kept in a folder."""

import json
import math

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from orrery import tuning
from orrery.errors import UsageError
from orrery.exchange.exporting.export import export_hf
from orrery.exchange.reading.read import Stored, read
from orrery.exchange.saving.own import save_own
from orrery.families import load_family
from orrery.kernels.compiled import has_openmp
from orrery.tuning import _stored
from orrery.tuning._registry import from_json
from orrery.tuning._whole_numbers import group_of, rounded, written_out
from orrery.tuning.lora import LoRA
from orrery.tuning.quantise import Quantise, QuantisedLinear
from tiny_models import ALL, CONFIGS, TOKENIZER, tiny

IDS = torch.randint(0, TOKENIZER.size, (2, 9), generator=torch.Generator().manual_seed(1))


def drawn(*shape, seed=0, dtype=torch.float32):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


def linear(inputs=96, outputs=40, bias=True, dtype=torch.float32):
    made = nn.Linear(inputs, outputs, bias=bias, dtype=dtype)
    with torch.no_grad():
        for number, parameter in enumerate(made.parameters()):
            parameter.copy_(drawn(*parameter.shape, seed=number))
    return made


def deviation(given, expected):
    given, expected = given.detach().double(), expected.detach().double()
    return float((given - expected).abs().max()) / max(1.0, float(expected.abs().max()))


# Numbers -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("bits", "group"), [(8, 96), (8, 32), (4, 96), (4, 32), (4, 6)])
def test_the_layout_is_as_it_is_described(bits, group):
    stored, scale = rounded(drawn(5, 96), bits, group)
    matrix = written_out(stored, scale)
    for o in range(5):
        for i in range(96):
            k, j = divmod(i, group)
            if bits == 8:
                whole = int(stored[o, i])
            else:
                half, place = divmod(j, group // 2)
                whole = (int(stored[o, k * group // 2 + place]) >> 4 * half & 15) - 8
            assert float(matrix[o, i]) == float(scale[o, k] * whole)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16], ids=str)
def test_eight_bits_are_off_by_half_a_step_at_most(dtype):
    weight = drawn(30, 96, dtype=dtype)
    stored, scale = rounded(weight, 8, 96)
    assert scale.dtype == dtype
    off = (written_out(stored, scale.double()) - weight.double()).abs()
    assert bool((off <= 0.51 * scale.double() * (1.5 if dtype == torch.bfloat16 else 1)).all())


def test_four_bits_are_nearer_than_the_largest_magnitude_gives_and_keep_what_they_can_hold():
    weight = drawn(64, 256)
    off = (written_out(*rounded(weight, 4, 64)) - weight).square().mean()
    grouped = weight.unflatten(1, (-1, 64))
    step = grouped.abs().amax(2, keepdim=True) / 7
    plain = ((grouped / step).round() * step - grouped).square().mean()
    assert float(off) < 0.85 * float(plain)
    exact = torch.randint(-8, 8, (16, 64), generator=torch.Generator().manual_seed(0)).float() * 0.25
    exact[:, ::32] = -2.0  # else the scale that fits may be another
    assert deviation(written_out(*rounded(exact, 4, 32)), exact) < 1e-6
    assert float(written_out(*rounded(torch.zeros(3, 8), 4, 4)).abs().max()) == 0


@pytest.mark.parametrize(
    ("inputs", "group", "size"),
    [(256, 128, 128), (672, 128, 96), (576, 128, 96), (60, 128, 60), (34, 8, 2), (6, 128, 6), (33, 128, None)],
)
def test_a_width_that_is_no_multiple_of_the_group_has_smaller_ones(inputs, group, size):
    assert group_of(inputs, group) == size


# Products ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rows", [(1,), (5,), (2, 3), (32,), (33,), (0,)], ids=str)
@pytest.mark.parametrize("bits", [8, 4])
def test_every_way_to_multiply_gives_the_same_numbers(monkeypatch, bits, rows):
    part = QuantisedLinear(linear(), bits, 32)
    monkeypatch.setattr(_stored, "at_hand", has_openmp)
    x = drawn(*rows, 96)
    expected = F.linear(x.double(), written_out(part.weight, part.weight_scale.double()), part.bias.double())
    out = part(x)
    assert out.shape == (*rows, 40)
    monkeypatch.setattr(_stored, "at_hand", lambda: False)
    monkeypatch.setattr(_stored, "PART", 96 * 7)
    plain = part(x)
    if rows != (0,):
        assert deviation(out, expected) < 1e-5
        assert deviation(plain, expected) < 1e-5
        broken = part.weight_scale.detach().clone()
        broken[3, 1] *= 1.01  # the comparison sees one scale
        wrong = F.linear(x.double(), written_out(part.weight, broken.double()), part.bias.double())
        assert deviation(plain, wrong) > 1e-5


def test_few_rows_are_read_once_by_the_kernel_and_many_are_not(monkeypatch):
    pytest.importorskip("numba")
    part, asked = QuantisedLinear(linear(), 4, 32), []
    monkeypatch.setattr(_stored, "at_hand", has_openmp)
    real = _stored._by_kernel
    monkeypatch.setattr(_stored, "_by_kernel", lambda *given: asked.append(len(given[0])) or real(*given))
    for rows in (1, 32, 33):
        part(drawn(rows, 96))
    part.double()(drawn(1, 96, dtype=torch.float64))
    assert asked == [1, 32]


@pytest.mark.parametrize("rows", [3, 40])
@pytest.mark.parametrize("bits", [8, 4])
def test_what_comes_in_has_the_gradient_of_the_written_out_matrix(bits, rows):
    part = QuantisedLinear(linear(), bits, 32)
    x, other = drawn(rows, 96).requires_grad_(), drawn(rows, 96).requires_grad_()
    part(x).square().sum().backward()
    F.linear(other, part.matrix(), part.bias).square().sum().backward()
    assert deviation(x.grad, other.grad) < 1e-5


def test_an_adapter_over_four_bits_learns_without_a_copy_of_the_matrix():
    model = tiny("llama", torch.float32)
    Quantise(bits=4).apply(model)
    LoRA(rank=2).apply(model)
    kept = []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: kept.append(t) or t, lambda t: t):
        loss = model.logits(IDS).square().mean()
    loss.backward()
    learned = {name.rpartition(".")[2] for name, p in model.named_parameters() if p.grad is not None}
    assert learned == {"lora_a", "lora_b"}
    matrices = {(part.out_features, part.in_features) for part in model.modules() if hasattr(part, "weight_scale")}
    halves = [t for t in kept if t.dtype == torch.uint8]
    assert halves
    assert not [t for t in kept if t.is_floating_point() and tuple(t.shape) in matrices and not t.requires_grad]


# Models and folders ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("settings", [{"bits": 4}, {"bits": 4, "group": 8}, {"bits": 8, "group": 16}], ids=str)
def test_a_folder_gives_the_same_bytes_and_numbers_back(tmp_path, settings):
    model = tiny("llama", torch.float32)
    Quantise(**settings).apply(model)
    before = model.logits(IDS)
    save_own(tmp_path, model, TOKENIZER, family="llama", config=ALL["llama"])
    again = read(tmp_path).model
    assert again.transforms == model.transforms
    ours, theirs = dict(model.named_parameters()), dict(again.named_parameters())
    assert all(torch.equal(ours[name], theirs[name]) and ours[name].dtype == theirs[name].dtype for name in ours)
    assert torch.equal(again.logits(IDS), before)
    kinds = {p.dtype for name, p in theirs.items() if name.endswith("q.weight")}
    assert kinds == {torch.uint8 if settings["bits"] == 4 else torch.int8}


def test_a_folder_of_before_there_were_bits_is_read_as_eight():
    model = tiny("llama", torch.float32)
    Quantise().apply(model)
    listed = json.loads(json.dumps(model.transforms[0].as_json()))
    assert from_json([{key: listed[key] for key in ("kind", "targets", "leave")}]) == (Quantise(),)


@pytest.mark.parametrize("bits", [8, 4])
def test_the_model_is_near_the_one_it_was(bits):
    model = tiny("llama", torch.float32)
    before = model.logits(IDS)
    after = Quantise(bits=bits, group=16).apply(model).logits(IDS)
    off = float((after - before).detach().norm() / before.detach().norm())
    assert 0 < off < {8: 0.05, 4: 0.5}[bits]
    merged = tuning.merge(model).logits(IDS)
    assert deviation(merged, after) < 1e-5


def test_blocks_and_head_may_have_other_bits():
    model = tiny("llama", torch.float32, tie_word_embeddings=False)
    Quantise(bits=4).apply(model)
    Quantise(bits=8, targets=("head.*",)).apply(model)
    assert model.head.vocabulary.weight.dtype == torch.int8
    assert model.stack.blocks[0].attention.branch.q.weight.dtype == torch.uint8
    assert bool(model.logits(IDS).isfinite().all())


@pytest.mark.parametrize("settings", [{"bits": 3}, {"bits": 16}, {"bits": 4, "group": 1}, {"group": 0}, {"bits": True}])
def test_settings_that_cannot_be_meant_are_refused(settings):
    with pytest.raises(UsageError, match=r"quantise: (bits|group) is"):
        Quantise(**settings)


def test_what_cannot_be_stored_is_refused_by_name(tmp_path):
    model = tiny("llama", torch.float32)
    with torch.no_grad():
        model.stack.blocks[1].attention.branch.v.weight[0, 0] = math.nan
    with pytest.raises(UsageError, match=r"blocks\.1\.attention\.branch\.v\.weight has numbers that are not finite"):
        Quantise(bits=4).apply(model)
    assert not model.transforms
    with pytest.raises(UsageError, match=r"head\.vocabulary\.weight is tied"):
        Quantise(bits=4, targets=("head.*",)).apply(tiny("gpt2"))
    odd = tiny("llama", intermediate_size=33)
    with pytest.raises(UsageError, match=r"feed_forward\.branch\.down has 33 inputs"):
        Quantise(bits=4).apply(odd)
    Quantise(bits=8).apply(odd)
    four = Quantise(bits=4).apply(tiny("llama"))
    with pytest.raises(UsageError, match="transforms"):
        export_hf(Stored(tmp_path, four, "llama", CONFIGS["llama"]), tmp_path / "out")


@pytest.mark.parametrize("group", [1000, 1024, 2048, 2**31 - 1])
def test_a_group_of_any_size_that_is_made_is_read_again(group, tmp_path):
    torch.manual_seed(0)
    spec = load_family("gpt2").spec(
        {**load_family("gpt2").TINY, "n_embd": 2048, "n_head": 2, "n_layer": 1, "n_inner": 32}
    )
    model = Quantise(group=group).apply(spec.build().eval())
    save_own(tmp_path, model)
    again = read(tmp_path).model
    assert again.transforms == model.transforms
    assert all(torch.equal(one, other) for one, other in zip(model.buffers(), again.buffers(), strict=True))


@pytest.mark.parametrize("group", [1, 2**31])
def test_a_group_that_no_folder_may_have_is_refused_where_it_is_made(group):
    with pytest.raises(UsageError, match="two inputs or more"):
        Quantise(group=group)
