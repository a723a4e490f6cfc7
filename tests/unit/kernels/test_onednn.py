"""float32 products through oneDNN are the exact ones to the last digits, and taken where torch's own are slower."""

import pytest
import torch
import torch.nn.functional as F

from orrery.kernels import onednn, wide_products
from orrery.kernels.onednn import OneDnnProducts, doubles_float32
from orrery.kernels.processor import Processor

AMD = Processor("AuthenticAMD", frozenset({"avx512f", "avx512_bf16"}))


def factors(*shape, outputs=70):
    rng = torch.Generator().manual_seed(0)
    return [torch.randn(*one, generator=rng) for one in (shape, (outputs, shape[-1]), (outputs,))]


@pytest.mark.parametrize("shape", [(1, 48), (5, 48), (3, 7, 48), (2, 3, 2, 48)])
@pytest.mark.parametrize("biased", [False, True])
def test_a_product_is_the_exact_one_to_the_last_digits(shape, biased):
    x, weight, bias = factors(*shape)
    bias = bias if biased else None
    exact = F.linear(x.double(), weight.double(), None if bias is None else bias.double())
    with torch.no_grad(), OneDnnProducts():
        product = F.linear(x, weight, bias=bias)
        turned = F.linear(x, weight.T.contiguous().T, bias)
    assert product.dtype == torch.float32
    assert product.shape == exact.shape
    for one in (product, turned):
        assert (one.double() - exact).abs().max() < 1e-5 * exact.abs().max()


def test_gradients_vectors_no_rows_and_other_dtypes_are_left_to_torch(monkeypatch):
    monkeypatch.setattr(onednn, "product", lambda *args: pytest.fail("it was taken"))
    x, weight, bias = factors(5, 48)
    with OneDnnProducts():
        F.linear(x, weight, bias)
        with torch.no_grad():
            F.linear(x[0], weight, bias)
            assert F.linear(x[:0], weight, bias).shape == (0, 70)
            F.linear(x.double(), weight.double())
            with pytest.raises(RuntimeError):
                F.linear(x, weight.double())


@pytest.mark.parametrize(
    ("vendor", "flags", "taken"),
    [
        ("AuthenticAMD", {"avx512f", "avx2"}, True),
        ("AuthenticAMD", {"avx2"}, False),
        ("AuthenticAMD", {"avx512f", "amx_tile"}, False),
        ("GenuineIntel", {"avx512f", "avx2"}, False),
    ],
)
def test_the_processor_decides(vendor, flags, taken):
    assert doubles_float32(Processor(vendor, frozenset(flags))) is taken


def test_many_rows_take_it_where_it_is_faster(monkeypatch):
    seen = []
    monkeypatch.setattr(wide_products, "this_processor", lambda: AMD)
    monkeypatch.setattr(onednn, "product", lambda x, weight, bias: seen.append(x) or x @ weight.T)
    x, weight, _ = factors(5, 48)
    with torch.no_grad(), wide_products.wide_products():
        F.linear(x, weight)
    assert len(seen) == 1
