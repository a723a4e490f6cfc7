"""The check of a pattern's rows, with sinks, with tokens that see nothing, and with a fault in one row."""

import pytest
import torch

from orrery.inspection.row_sums import check_rows
from orrery.inspection.trace import trace
from tiny_models import inputs_for, smallest


def looked(family, dtype=torch.float64, **call):
    model = smallest(family, dtype)
    return trace(model, *inputs_for(model), **call)


def paths(found):
    return [key.removesuffix(".pattern") for key in found if key.endswith(".pattern")]


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("family", ["gpt2", "t5", "bart", "gpt_oss", "gemma2", "deepseek_v3", "rnnsearch", "vit"])
def test_rows_sum_to_one_less_what_a_sink_takes(family, dtype):
    found = looked(family, dtype)
    check = check_rows(found.model, found, *paths(found))
    assert check.passed
    assert check.bound == (2e-2 if dtype == torch.bfloat16 else 1e-5)


def test_a_sink_takes_its_share():
    found = looked("gpt_oss")
    path = paths(found)[0]
    assert (found[f"{path}.pattern"].sum(-1) < 0.99).any()
    assert check_rows(found.model, found, path).value < 1e-12
    with torch.no_grad():
        found.model.stack.blocks[0].attention.branch.sinks.weight[0] += 0.1
    assert not check_rows(found.model, found, path).passed


def test_a_token_that_sees_nothing_has_a_row_of_zeros():
    source_real = torch.tensor([[False] * 9, [True] * 9])
    found = looked("bart", source_real=source_real)
    assert found["blocks.0.cross.pattern"][0].abs().max() == 0
    assert check_rows(found.model, found, "blocks.0.cross").value < 1e-12
    assert (
        check_rows(found.model, {"blocks.0.cross.pattern": found["blocks.0.cross.pattern"]}, "blocks.0.cross").value
        == 1
    )


@pytest.mark.parametrize("family", ["gpt2", "t5", "gpt_oss", "rnnsearch"])
def test_one_wrong_row_is_seen(family):
    found = looked(family)
    path = paths(found)[-1]
    broken = {key: found[key].clone() for key in found if key.startswith(path)}
    for fault in (0.0, 0.4, 1.001):
        broken[f"{path}.pattern"] = found[f"{path}.pattern"].clone()
        broken[f"{path}.pattern"][1, 0, -1] *= fault
        assert not check_rows(found.model, broken, path).passed
