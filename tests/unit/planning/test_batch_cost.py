"""What the plan says a batch keeps, against what autograd keeps of the whole batch."""

import random

import pytest
import torch

from orrery.planning.batch_cost import LOOKED_AT, batch_cost, cost_of_rows, largest_batch
from orrery.planning.step_cost import step_cost
from orrery.recipes.read import check_recipe
from orrery.runs.assemble import assemble
from orrery.training.precision import Precision
from orrery.training.step import take

PLAIN = Precision("float32", "plain", "cpu", 1)
LLAMA = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}
MODELS = {
    "llama": {**LLAMA, "max_position_embeddings": 24},
    "rnnsearch": {"hidden_size": 32, "max_position_embeddings": 24},
    "transformer": {"d_model": 32, "num_layers": 1, "num_heads": 4, "d_ff": 64, "max_position_embeddings": 24},
}


@pytest.fixture
def parts(request, tmp_path):
    """Return the parts of a run of a family on sentences of 3 to 20 words, in batches of 12 rows."""
    family, draw = request.param, random.Random(0)
    lines = [" ".join(draw.choices(["ein", "zwei", "drei", "vier"], k=draw.randint(3, 20))) for _ in range(300)]
    (tmp_path / "a.txt").write_text("\n".join(lines) + "\n")
    file, pairs = str(tmp_path / "a.txt"), family != "llama"
    recipe = {
        "name": "small",
        "model": {"family": family, "config": MODELS[family]},
        "tokenizer": {"kind": "word"},
        "data": {"pairs": {"source": file, "target": file}} if pairs else {"train": file},
        "batches": {"kind": "pairs" if pairs else "crops", "length": 24, "size": 12},
        "objective": {"kind": "seq2seq" if pairs else "causal"},
        "training": {"steps": 1, "device": "cpu", "optimizer": {"rate": 0.01}},
    }
    return assemble(check_recipe(recipe, "test")).parts


def of(parts, batch):
    return batch_cost(parts.model, parts.objective, batch, PLAIN)


@pytest.mark.parametrize("parts", MODELS, indirect=True)
def test_few_rows_tell_what_all_cost(parts):
    largest = largest_batch(parts)
    whole = of(parts, largest)
    assert cost_of_rows(parts, PLAIN, largest, 12).kept == pytest.approx(whole.kept, rel=0.15)
    assert cost_of_rows(parts, PLAIN, largest, 12).operations == pytest.approx(whole.operations, rel=0.01)
    assert cost_of_rows(parts, PLAIN, largest, 6).kept == pytest.approx(whole.kept / 2, rel=0.25)
    assert cost_of_rows(parts, PLAIN, largest, 1) == of(parts, take(largest, range(1)))
    others = [parts.source.batch(step) for step in range(0, LOOKED_AT, 16)]
    assert whole.kept >= 0.95 * max(of(parts, batch).kept for batch in others)


@pytest.mark.parametrize("parts", ["llama"], indirect=True)
def test_operations_are_those_that_torch_counts_and_activations_grow_with_rows(parts):
    batch = parts.source.batch(0)
    third, two, whole = (of(parts, take(batch, range(rows))) for rows in (4, 8, 12))
    assert whole.operations == pytest.approx(3 * third.operations, rel=1e-3)  # the angles of positions are shared too
    assert whole.kept - two.kept == pytest.approx(two.kept - third.kept, rel=1e-3)
    assert 0 < 1.5 * two.kept - whole.kept < 0.1 * whole.kept  # masks and positions, which rows share
    spec = parts.model.spec
    assert whole.operations == step_cost(spec, 12, 24, torch.float32).training.total
    assert all(weight.grad is None for weight in parts.model.parameters())


@pytest.mark.parametrize("parts", ["rnnsearch"], indirect=True)
def test_looking_ahead_draws_nothing(parts):
    torch.manual_seed(3)
    before = torch.get_rng_state()
    cost_of_rows(parts, PLAIN, largest_batch(parts), 12)
    assert torch.equal(torch.get_rng_state(), before)
