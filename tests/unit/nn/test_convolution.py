"""The convolution: torch's on whole rows, and nothing comes from padding or from another document."""

import pytest
import torch

from orrery.errors import UsageError
from orrery.nn.attention.kernels import eager
from orrery.nn.cache.contract import UNCACHED
from orrery.nn.context import Context
from orrery.nn.convolution import Convolution
from orrery.nn.masks import EMPTY_SLOT, PLAIN_FULL, Full, SameDocument, TokenPositions, bind

X = torch.randn(2, 7, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(0))


def run(module, x, mask=PLAIN_FULL):
    ctx = Context(positions={}, masks={"full": mask}, cache=UNCACHED, kernel=eager)
    with torch.no_grad():
        return module(x, ctx)


@pytest.mark.parametrize(("length", "groups"), [(1, 1), (3, 1), (5, 2), (9, 3)])
def test_equals_torch(length, groups):
    ours = Convolution.Spec(length=length, groups=groups).build(6).double()
    with torch.no_grad():
        expected = torch.conv1d(X.mT, ours.conv.weight, ours.conv.bias, padding=length // 2, groups=groups).mT.tanh()
    torch.testing.assert_close(run(ours, X), expected, rtol=0, atol=1e-12)


def test_padding_and_other_documents_are_not_neighbours():
    ours = Convolution.Spec(length=5).build(6).double()
    documents = torch.tensor([[0, 0, 0, 1, 1, 1, -1], [0, 0, 0, 0, 0, 0, 0]])
    positions = torch.tensor([[0, 1, 2, 0, 1, 2, EMPTY_SLOT], [0, 1, 2, 3, 4, 5, 6]])
    places = TokenPositions(positions, documents)
    convolved = run(ours, X, bind(Full() & SameDocument(), places, places))
    for row, start, end in ((0, 0, 3), (0, 3, 6), (1, 0, 7)):
        alone = run(ours, X[row : row + 1, start:end])
        torch.testing.assert_close(convolved[row : row + 1, start:end], alone, rtol=0, atol=1e-12)


def test_an_even_length_is_refused():
    with pytest.raises(UsageError, match="length 4 has no middle"):
        Convolution.Spec(length=4).build(6)
