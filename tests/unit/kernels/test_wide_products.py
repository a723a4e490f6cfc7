import pytest
import torch
import torch.nn.functional as F

from orrery.kernels import wide_products
from orrery.kernels.processor import Processor
from orrery.kernels.wide_products import FEW_ROWS, WideProducts


def factors(rows, inputs=48, outputs=70):
    generator = torch.Generator().manual_seed(0)
    return [
        torch.randn(*shape, generator=generator).bfloat16() for shape in ((rows, inputs), (outputs, inputs), (outputs,))
    ]


@pytest.mark.parametrize("part", [48, 7 * 48, 2**22])
@pytest.mark.parametrize("biased", [False, True])
def test_a_product_is_the_exact_one_rounded_once(monkeypatch, part, biased):
    monkeypatch.setattr(wide_products, "PART", part)
    x, weight, bias = factors(3 * FEW_ROWS)
    bias = bias if biased else None
    exact = F.linear(x.double(), weight.double(), None if bias is None else bias.double())
    with torch.no_grad(), WideProducts():
        product = F.linear(x.view(3, FEW_ROWS, -1), weight, bias).flatten(0, 1)
    assert product.dtype == torch.bfloat16
    assert (product.double() - exact).abs().max() <= exact.abs().max() * 2**-8
    assert (product != exact.bfloat16()).float().mean() < 0.01


def test_few_rows_gradients_and_other_dtypes_are_left_to_torch(monkeypatch):
    monkeypatch.setattr(wide_products, "_product", lambda *args: pytest.fail("it was taken"))
    x, weight, bias = factors(FEW_ROWS)
    with WideProducts():
        with torch.no_grad():
            F.linear(x, weight, bias)
            F.linear(*(one.float() for one in factors(99)))
        F.linear(*factors(99))


@pytest.mark.parametrize(("flags", "wide"), [({"avx2"}, True), ({"avx512_bf16"}, False), ({"amx_bf16"}, False)])
def test_the_processor_decides(monkeypatch, flags, wide):
    monkeypatch.setattr(wide_products, "this_processor", lambda: Processor("", frozenset(flags)))
    taken = []
    monkeypatch.setattr(wide_products, "_product", lambda x, weight, bias: taken.append(x) or x @ weight.T)
    with torch.no_grad(), wide_products.wide_products():
        F.linear(*factors(99)[:2])
    assert bool(taken) == wide
