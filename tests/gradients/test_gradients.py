"""Gradients against finite differences: every part that could have a wrong one."""

import pytest
import torch
from torch.autograd import gradcheck

from orrery.families import load_family
from orrery.laws.models import KERNELS
from orrery.nn.attention.operands import KeysValues, Operands
from orrery.nn.masks import PLAIN_CAUSAL, BoundMask
from orrery.nn.norms import LayerNorm, RMSNorm

SMALL = {
    "gpt2": {"vocab_size": 7, "n_positions": 6, "n_embd": 4, "n_layer": 1, "n_head": 2},
    "llama": {
        "vocab_size": 7,
        "hidden_size": 4,
        "intermediate_size": 5,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "num_key_value_heads": 1,
    },
}


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("kernel", KERNELS)
def test_kernels(kernel, masked):
    rng = torch.Generator().manual_seed(0)
    q = torch.randn(1, 2, 4, 3, dtype=torch.float64, generator=rng, requires_grad=True)
    k, v = (torch.randn(1, 1, 4, 3, dtype=torch.float64, generator=rng, requires_grad=True) for _ in range(2))
    dense = torch.ones(1, 1, 4, 4, dtype=torch.bool).tril(-1)  # the first query sees nothing
    mask = BoundMask(dense=dense, is_causal=False) if masked else PLAIN_CAUSAL

    def run(*qkv):
        return KERNELS[kernel](qkv[0], KeysValues(*qkv[1:]), Operands(mask=mask, scale=0.7))

    assert gradcheck(run, (q, k, v))


@pytest.mark.parametrize("spec", [LayerNorm.Spec(), RMSNorm.Spec(offset=1.0)], ids=["layer", "rms"])
def test_norms(spec):
    norm = spec.build(5).double()
    x = torch.randn(2, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0), requires_grad=True)
    assert gradcheck(lambda x, *_: norm(x), (x, *norm.parameters()))


@pytest.mark.parametrize("family", SMALL)
def test_a_whole_model_in_every_parameter(family):
    model = load_family(family).spec(SMALL[family]).build(0).double().eval()
    rng = torch.Generator().manual_seed(0)
    for parameter in model.parameters():
        parameter.data = torch.randn(parameter.shape, dtype=torch.float64, generator=rng)
    ids = torch.tensor([[1, 5, 2, 5], [3, 3, 0, 6]])
    real = torch.tensor([[True] * 4, [False, False, True, True]])
    assert gradcheck(lambda *_: model.logits(ids, real=real)[real], tuple(model.parameters()))
