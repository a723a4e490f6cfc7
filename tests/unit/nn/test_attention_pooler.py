"""A learned query that reads a row: torch's own attention with the same matrices, padding, and what is refused."""

import pytest
import torch
from torch import nn

from orrery.errors import UsageError
from orrery.nn.attention_pooler import AttentionPooler
from orrery.nn.norms import LayerNorm
from orrery.nn.residual import Identity

X = torch.randn(3, 5, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(0))


def pooler(**fields):
    fields = {"heads": 2, "norm": LayerNorm.Spec(eps=0.1), "feed_forward": Identity.Spec(), **fields}
    made = AttentionPooler.Spec(**fields).build(8).double()
    rng = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=rng, dtype=torch.float64))
    return made


def test_it_is_the_attention_of_torch_with_a_learned_query():
    made, theirs = pooler(), nn.MultiheadAttention(8, 2, batch_first=True, dtype=torch.float64)
    with torch.no_grad():
        theirs.in_proj_weight.copy_(torch.cat([made.q.weight, made.k.weight, made.v.weight]))
        theirs.in_proj_bias.copy_(torch.cat([made.q.bias, made.k.bias, made.v.bias]))
        theirs.out_proj.load_state_dict(made.out.state_dict())
    read = theirs(made.query.weight.expand(3, 1, 8), X, X)[0][:, 0]
    torch.testing.assert_close(made(X), read + made.norm(read), rtol=0, atol=1e-12)
    assert torch.autograd.gradcheck(made, X.clone().requires_grad_())


def test_padding_is_not_read():
    made, real = pooler(), torch.arange(5) < torch.tensor([[5], [3], [1]])
    rows = torch.cat([made(X[:1]), made(X[1:2, :3]), made(X[2:, :1])])
    torch.testing.assert_close(made(X, real), rows, rtol=0, atol=1e-12)


def test_heads_that_do_not_share_the_width_are_refused():
    with pytest.raises(UsageError, match="3 heads cannot share 8 channels"):
        pooler(heads=3)
