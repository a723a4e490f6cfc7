"""The rows that the page shows of a cache against the cache of transformers: float64, random parameters."""

from pathlib import Path

import pytest
import torch

from orrery.exchange.reading.read import Stored
from orrery.language_model.model import LanguageModel
from orrery.page.views._inside import Inside
from orrery.page.views._live_cache import live_cache
from tests.parity.helper import pair
from tests.parity.test_llama import TINY

FAMILIES = {
    "llama": TINY,
    "gpt2": {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64},
    "qwen3": {**TINY, "head_dim": 8},
}
IDS = torch.randint(3, 97, (1, 21), generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("kind", FAMILIES)
def test_rows_are_those_of_transformers(kind):
    made = pair(kind, **FAMILIES[kind])
    inside = Inside(LanguageModel(Stored(Path(kind), made.ours)), {"ids": IDS[0].tolist()})
    with torch.no_grad():
        theirs = made.reference(IDS, use_cache=True).past_key_values
    layers = live_cache(inside, IDS.shape[1]).layers
    assert len(layers) == 2
    for ours, other in zip(layers, theirs.layers, strict=True):
        for name, rows in (("k", other.keys), ("v", other.values)):
            held = ours.rows[name]
            assert held.shape == rows[0].shape
            assert float((held - rows[0]).abs().max()) < 1e-9
            assert float((held - rows[0].roll(1, dims=1)).abs().max()) > 1e-3
