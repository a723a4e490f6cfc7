"""Attention knock-out against runs in which the scores of single edges are edited."""

import pytest
import torch

from orrery.errors import UsageError
from orrery.inspection.research.knockout import attention_knockout
from orrery.inspection.trace import trace
from tiny_models import smallest, tiny

IDS = torch.randint(0, 61, (2, 6), generator=torch.Generator().manual_seed(0))
SOURCES = {"first": [0], "two": [1, 3]}


@pytest.mark.parametrize("family", ["gpt2", "llama", "gemma2"])
@pytest.mark.parametrize("window", [1, 2])
def test_it_is_the_run_without_these_edges(family: str, window: int) -> None:
    model = smallest(family)
    answers = [7, 9]

    def logp(logits) -> float:
        return float(logits[:, -1].log_softmax(-1)[[0, 1], answers].mean())

    knockout = attention_knockout(model, IDS, SOURCES, answers, window=window, rows=6)
    clean = trace(model, IDS)
    blocks = sum(key.endswith(".attention.scores") for key in clean)
    assert knockout.clean == pytest.approx(logp(clean.logits), abs=1e-9)
    assert knockout.knocked_MN.shape == (2, blocks)
    for row, places in enumerate(SOURCES.values()):
        for block in range(blocks):
            cut = range(block, min(block + window, blocks))

            def hide(value, key, places=places):
                value = value.clone()
                value[:, :, -1, places] = float("-inf")
                return value

            edited = trace(model, IDS, edit={f"blocks.{n}.attention.scores": hide for n in cut})
            assert edited[f"blocks.{block}.attention.pattern"][:, :, -1, places].abs().max() == 0
            assert float(knockout.knocked_MN[row, block]) == pytest.approx(logp(edited.logits), abs=1e-9)
    assert torch.equal(knockout.change, knockout.knocked_MN - knockout.clean)
    assert knockout.names == ["first", "two"]


def test_an_earlier_position_is_cut_at_its_own_row() -> None:
    model = tiny("gpt2")
    knockout = attention_knockout(model, IDS[:1], {"all before": [0, 1]}, 7, target=2)

    def hide(value, key):
        value = value.clone()
        value[:, :, 2, :2] = float("-inf")
        return value

    for block in range(2):
        edited = trace(model, IDS[:1], edit={f"blocks.{block}.attention.scores": hide})
        expected = float(edited.logits[0, -1].log_softmax(-1)[7])
        assert float(knockout.knocked_MN[0, block]) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"sources": {}}, "0 sets"),
        ({"window": 0}, "window = 0"),
        ({"sources": {"beyond": [6]}}, "beyond stands at"),
        ({"sources": {"everything": [0, 1, 2, 3, 4, 5]}}, "would see nothing without everything"),
        ({"target": 9}, "position 9"),
    ],
)
def test_what_cannot_be_cut_is_refused(change, why: str) -> None:
    given = {"ids_BL": IDS, "sources": SOURCES, "answer": 7, **change}
    with pytest.raises(UsageError, match=why):
        attention_knockout(tiny("gpt2"), **given)


def test_a_model_without_attention_has_no_edges() -> None:
    with pytest.raises(UsageError, match="scores"):
        attention_knockout(smallest("lstm"), IDS, SOURCES, 7)
