"""The check of a pattern's rows, with sinks, with tokens that see nothing, and with a fault in one row."""

import pytest
import torch

from orrery.inspection.row_sums import check_rows
from orrery.inspection.trace import trace
from tiny_models import inputs_for, smallest


def looked(family, dtype=torch.float64, **call):
    model = smallest(family, dtype)
    return trace(model, *inputs_for(model), **call)


def paths(traced):
    return [key.removesuffix(".pattern") for key in traced if key.endswith(".pattern")]


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("family", ["gpt2", "t5", "bart", "gpt_oss", "gemma2", "deepseek_v3", "rnnsearch", "vit"])
def test_rows_sum_to_one_less_what_a_sink_takes(family, dtype):
    traced = looked(family, dtype)
    check = check_rows(traced.model, traced, *paths(traced))
    assert check.passed
    assert check.bound == (2e-2 if dtype == torch.bfloat16 else 1e-5)


def test_a_sink_takes_its_share():
    traced = looked("gpt_oss")
    path = paths(traced)[0]
    assert (traced[f"{path}.pattern"].sum(-1) < 0.99).any()
    assert check_rows(traced.model, traced, path).value < 1e-12
    with torch.no_grad():
        traced.model.stack.blocks[0].attention.branch.sinks.weight[0] += 0.1
    assert not check_rows(traced.model, traced, path).passed


def test_a_token_that_sees_nothing_has_a_row_of_zeros():
    source_real = torch.tensor([[False] * 9, [True] * 9])
    traced = looked("bart", source_real=source_real)
    assert traced["blocks.0.cross.pattern"][0].abs().max() == 0
    assert check_rows(traced.model, traced, "blocks.0.cross").value < 1e-12
    assert (
        check_rows(traced.model, {"blocks.0.cross.pattern": traced["blocks.0.cross.pattern"]}, "blocks.0.cross").value
        == 1
    )


@pytest.mark.parametrize("family", ["gpt2", "t5", "gpt_oss", "rnnsearch"])
def test_one_wrong_row_is_seen(family):
    traced = looked(family)
    path = paths(traced)[-1]
    broken = {key: traced[key].clone() for key in traced if key.startswith(path)}
    for fault in (0.0, 0.4, 1.001):
        broken[f"{path}.pattern"] = traced[f"{path}.pattern"].clone()
        broken[f"{path}.pattern"][1, 0, -1] *= fault
        assert not check_rows(traced.model, broken, path).passed
