"""Copying: the eigenvalues of the whole circuit, token by token, and heads made to copy and to do the opposite."""

import pytest
import torch

from orrery.errors import UsageError
from orrery.inspection.attribution.copying import copying_scores
from tiny_models import smallest


@pytest.mark.parametrize("family", ["gpt2", "llama", "gemma"])
def test_the_eigenvalues_are_those_of_the_circuit_over_the_vocabulary(family):
    model = smallest(family)
    keys, score_NH = copying_scores(model)
    assert keys == [f"blocks.{n}.attention" for n in range(len(model.stack.order))]
    residual, final = model.stack.blocks[0].attention, model.stack.final
    attention, offset = residual.branch, getattr(final, "offset", 0)
    gains = [norm.weight.detach() + offset for norm in (residual.pre, final)]
    head, shared = 1, attention.q.out_features // attention.v.out_features
    C = attention.head_width
    value_CD = attention.v.weight[head // shared * C : (head // shared + 1) * C]
    out_DC = attention.out.weight[:, head * C : (head + 1) * C]
    table_VD, head_VD = model.embed.token.weight, model.head.vocabulary.weight
    circuit_VV = (head_VD * gains[1]) @ out_DC @ value_CD @ (table_VD * gains[0]).T
    values = torch.linalg.eigvals(circuit_VV.detach())
    expected = (1 + values.real.sum() / values.abs().sum()) / 2
    assert float(score_NH[0, head]) == pytest.approx(float(expected), abs=1e-6)
    assert bool(((score_NH >= 0) & (score_NH <= 1)).all())


def test_a_head_that_writes_what_it_reads_copies():
    model = smallest("gpt2")
    with torch.no_grad():
        for block, sign in zip(model.stack.blocks, (1, -1), strict=True):
            block.attention.branch.out.weight.copy_(sign * block.attention.branch.v.weight.T)
            block.attention.pre.weight.fill_(1)
        model.stack.final.weight.fill_(1)
        model.head.vocabulary.weight.copy_(model.embed.token.weight)
    score_NH = copying_scores(model)[1]
    torch.testing.assert_close(score_NH[0], torch.ones(3, dtype=torch.float64))
    torch.testing.assert_close(score_NH[1], torch.zeros(3, dtype=torch.float64))


def test_what_has_no_such_circuit_is_refused():
    for family, why in (
        ("deepseek_v2", "no head of this model has one matrix"),
        ("lstm", "no head of this model has one matrix"),
        ("vit", "scores no vocabulary"),
    ):
        with pytest.raises(UsageError, match=why):
            copying_scores(smallest(family))
