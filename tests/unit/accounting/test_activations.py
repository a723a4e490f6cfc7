"""What the plan says a batch keeps, against what autograd keeps of the whole batch."""

import random

import pytest
import torch

from orrery.accounting.activations import LOOKED_AT, activation_bytes, kept_bytes
from orrery.training.assemble import assemble
from orrery.training.precision import Precision
from orrery.training.recipes import check_recipe
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


@pytest.mark.parametrize("parts", MODELS, indirect=True)
def test_few_rows_tell_what_all_keep(parts):
    batches = [parts.source.batch(step) for step in range(LOOKED_AT)]
    kept = [kept_bytes(parts.model, parts.objective, batch, PLAIN) for batch in batches]
    assert activation_bytes(parts, PLAIN, 12) == pytest.approx(max(kept), rel=0.15)
    assert activation_bytes(parts, PLAIN, 6) == pytest.approx(max(kept) / 2, rel=0.25)
    one = max(kept_bytes(parts.model, parts.objective, take(batch, range(1)), PLAIN) for batch in batches)
    assert activation_bytes(parts, PLAIN, 1) <= one


@pytest.mark.parametrize("parts", ["llama"], indirect=True)
def test_what_is_kept_is_counted_once_and_weights_are_not(parts):
    batch = parts.source.batch(0)
    whole = kept_bytes(parts.model, parts.objective, batch, PLAIN)
    half = kept_bytes(parts.model, parts.objective, take(batch, range(6)), PLAIN)
    assert 1.9 < whole / half < 2.0  # but for masks and positions, which rows share
    single = kept_bytes(parts.model, parts.objective, take(batch, range(1)), PLAIN)
    assert single < whole / 10  # the weights would be in it whole


@pytest.mark.parametrize("parts", ["rnnsearch"], indirect=True)
def test_looking_ahead_draws_nothing(parts):
    torch.manual_seed(3)
    before = torch.get_rng_state()
    activation_bytes(parts, PLAIN, 12)
    assert torch.equal(torch.get_rng_state(), before)
