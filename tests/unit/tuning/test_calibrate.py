"""Four-bit numbers chosen for a text: nearer on its inputs than the nearest numbers, by the formula of the paper."""

from itertools import pairwise

import pytest
import torch

from orrery import tuning
from orrery.checkpoints.gguf_blocks import BY_NAME, rounded_to_q8_0, unpacked
from orrery.errors import UsageError
from orrery.tuning import _calibrate, apply_calibrated
from orrery.tuning._gptq import DAMPING, solved
from orrery.tuning._whole_numbers import rounded, written_out
from orrery.tuning.blocks import store_table
from orrery.tuning.quantise import Quantise
from tiny_models import TOKENIZER, smallest, tiny

IDS = torch.randint(0, TOKENIZER.size, (8, 24), generator=torch.Generator().manual_seed(1))
FOUR = Quantise(bits=4, group=8)


def drawn(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def moments(inputs, seed=3):
    """Of inputs that depend on each other, as those of a text do."""
    x = drawn(400, inputs, seed=seed) @ drawn(inputs, inputs, seed=seed + 1) + drawn(1, inputs, seed=seed + 2)
    return (x.T @ x).float()


def off(weight, rounded_parts, h):
    difference = written_out(*rounded_parts).double() - weight.double()
    return float((difference @ h.double() * difference).sum())


def reference(weight, h, group, scales):
    """The same by its definition: an inverse that loses a row and a column with each input that is rounded."""
    w, h = weight.double().clone(), h.double()
    inverse = torch.linalg.inv(h + torch.eye(len(h), dtype=torch.float64) * DAMPING * h.diagonal().mean())
    out = torch.zeros_like(w)
    for i in range(w.shape[1]):
        scale = scales[:, i // group].double()
        out[:, i] = (w[:, i] / scale).round().clamp(-8, 7) * scale
        w -= ((w[:, i] - out[:, i]) / inverse[i, i])[:, None] * inverse[i][None]
        inverse = inverse - torch.outer(inverse[:, i], inverse[i]) / inverse[i, i]
    return out


@pytest.mark.parametrize("group", [8, 16, 32])
def test_each_input_makes_up_for_those_before_it(group):
    weight, h = drawn(6, 32).float(), moments(32)
    whole, scale = solved(weight, h, group)
    assert torch.allclose(written_out(whole, scale).double(), reference(weight, h, group, scale), atol=1e-6)


def test_what_comes_out_is_nearer_than_with_the_nearest_numbers():
    weight, h = drawn(24, 64).float(), moments(64)
    assert off(weight, solved(weight, h, 32), h) < 0.6 * off(weight, rounded(weight, 4, 32), h)


def test_inputs_that_were_always_zero_are_rounded_to_the_nearest():
    weight = drawn(5, 32).float()
    for part, expected in zip(solved(weight, torch.zeros(32, 32), 16), rounded(weight, 4, 16), strict=True):
        assert torch.equal(part, expected)
    h = moments(32)
    h[:16], h[:, :16] = 0, 0
    assert torch.equal(solved(weight, h, 16)[1][:, 0], rounded(weight, 4, 16)[1][:, 0])


def test_a_model_is_nearer_to_itself_on_its_text():
    plain, nearest, chosen = (tiny("llama") for _ in range(3))
    FOUR.apply(nearest)
    with torch.no_grad():
        apply_calibrated(FOUR, chosen, lambda: chosen.logits(IDS))
        logits = plain.logits(IDS)
        apart = [float((model.logits(IDS) - logits).square().mean()) for model in (nearest, chosen)]
    assert apart[1] < 0.8 * apart[0]
    assert chosen.transforms == nearest.transforms == (FOUR,)
    assert all(type(chosen.get_submodule(n)) is type(m) for n, m in nearest.named_modules())


def test_a_text_is_read_once_for_the_matrices_whose_moments_are_held(monkeypatch):
    """And later ones see what the earlier ones, rounded, give."""
    model = tiny("llama")
    count = sum(type(module) is torch.nn.Linear for module in model.stack.blocks.modules())
    monkeypatch.setattr(_calibrate, "MOMENTS", 0)
    seen, said = [], []

    def read():
        seen.append(model.logits(IDS))

    apply_calibrated(FOUR, model, read, said.append)
    assert len(seen) == count > 4
    assert sum(line.startswith("reading the text") for line in said) == count
    assert not any(torch.equal(one, other) for one, other in pairwise(seen))


def test_nothing_watches_a_model_afterwards():
    model = tiny("llama")

    def read():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        apply_calibrated(FOUR, model, read)
    assert not any(module._forward_pre_hooks for module in model.modules())


def test_eight_bits_are_not_chosen_for_a_text():
    with pytest.raises(UsageError, match="8 bits are not chosen"):
        apply_calibrated(Quantise(), tiny("llama"), lambda: None)


def test_a_table_in_blocks_is_that_of_the_gguf_package_and_is_tied_still():
    gguf = pytest.importorskip("gguf")
    table = drawn(40, 64).float()
    table[3] = 0
    stored = gguf.quants.quantize(table.numpy(), gguf.GGMLQuantizationType.Q8_0)
    theirs = unpacked(torch.from_numpy(stored), BY_NAME["Q8_0"])
    ours = unpacked(rounded_to_q8_0(table), BY_NAME["Q8_0"])
    assert torch.equal(ours[3], table[3])
    step = table.abs().amax() / 127
    assert float((ours - theirs).abs().max()) <= 1.01 * float(step)
    assert float((ours - table).abs().max()) <= 0.51 * float(step)
    model = tiny("llama", hidden_size=64, tie_word_embeddings=True)
    before = model.logits(IDS)
    transform = store_table(model, "embed.token.weight")
    assert transform.parameters == ("embed.token.weight Q8_0",)
    assert model.embed.token.weight is model.head.vocabulary.weight
    assert float((model.logits(IDS) - before).detach().abs().max()) < 0.1
    assert model.transforms == (transform,)
    assert isinstance(tuning.merge(model).head.vocabulary, torch.nn.Linear)


@pytest.mark.parametrize("family", ["gpt2", "mixtral", "deepseek_v3", "mamba2", "rwkv", "lfm2"])
def test_every_kind_of_decoder_can_be_read_for(family):
    """Experts that no token reaches among them, and matrices that no input but zeros meets."""
    plain, chosen = smallest(family), smallest(family)
    ids = torch.randint(0, plain.spec.vocabulary, (4, 12), generator=torch.Generator().manual_seed(0))
    few = Quantise(bits=4, group=4)
    with torch.no_grad():
        apply_calibrated(few, chosen, lambda: chosen.logits(ids))
        nearest = few.apply(smallest(family))
        apart = [float((model.logits(ids) - plain.logits(ids)).square().mean()) for model in (chosen, nearest)]
    assert 0 < apart[0] < apart[1]
