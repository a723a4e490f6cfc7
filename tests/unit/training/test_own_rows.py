"""A process reads of a batch the rows that it computes, and no token of others; what is learned stays the same."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from orrery.data.batches.token_windows import CropBatches, PackedBatches
from orrery.data.shards.index import ShardSet
from orrery.laws.accumulation import OneOf
from orrery.objectives.causal import CausalLanguageModel
from orrery.objectives.masked import MaskedLanguageModel
from orrery.objectives.sft import SupervisedFineTuning
from orrery.training.contract import own_rows
from orrery.training.distributed import Alone
from orrery.training.precision import Precision
from orrery.training.step import accumulate
from training_toy import toy_model

LENGTH, SIZE, SEED = 8, 6, 5
RANKS = [(number, count) for count in (1, 2, 3, 4) for number in range(count)]


class Counted(ShardSet):
    """A long text in a mapped file, which counts the tokens that are read of it."""

    def __init__(self, file: Path) -> None:
        self.mapped: NDArray[Any] = np.memmap(file, np.uint16, "r")
        self.read = 0

    def __len__(self) -> int:
        return len(self.mapped)

    def __getitem__(self, places: Any) -> NDArray[Any]:
        found = self.mapped[places]
        self.read += len(found)
        return found


@pytest.fixture
def text(tmp_path: Path) -> Counted:
    file = tmp_path / "tokens"
    np.random.default_rng(0).integers(1, 17, 4_000).astype(np.uint16).tofile(file)
    return Counted(file)


@pytest.mark.parametrize(("number", "count"), RANKS)
def test_a_process_reads_its_own_rows(number: int, count: int, text: Counted) -> None:
    source, ranks = CropBatches(text, LENGTH, SIZE, SEED), OneOf(number, count)
    whole, text.read = source.batch(3), 0
    own = own_rows(source, CausalLanguageModel(), 3, ranks)
    rows = ranks.rows(SIZE)
    assert text.read == len(rows) * (LENGTH + 1)
    for name in ("ids", "targets"):
        assert own[name].shape == whole[name].shape
        assert torch.equal(own[name][rows.start : rows.stop], whole[name][rows.start : rows.stop])
        assert own[name].count_nonzero() == len(rows) * LENGTH  # no token of the text is 0


def test_gradients_of_own_rows_add_up_to_those_of_the_batch(text: Counted) -> None:
    source, objective = CropBatches(text, LENGTH, SIZE, SEED), CausalLanguageModel()
    how = {"micro_batch": None, "seed": (0, 0), "precision": Precision("float32", "plain", "cpu", 1)}

    def learned(ranks: Any) -> list[torch.Tensor]:
        model = toy_model(dropout=0.0).double()
        accumulate(model, objective, own_rows(source, objective, 3, ranks), ranks=ranks, **how)  # type: ignore[arg-type]
        return [each.grad for each in model.parameters() if each.grad is not None]

    whole, shares = learned(Alone()), [learned(OneOf(number, 3)) for number in range(3)]
    assert len(whole) > 1
    for number, gradient in enumerate(whole):
        torch.testing.assert_close(sum(share[number] for share in shares), gradient, rtol=1e-12, atol=1e-14)


def test_what_draws_or_counts_by_tokens_gets_whole_batches(text: Counted) -> None:
    source = CropBatches(text, LENGTH, SIZE, SEED)
    for objective in (MaskedLanguageModel(), SupervisedFineTuning()):
        text.read = 0
        own_rows(source, objective, 0, OneOf(0, 2))
        assert text.read == SIZE * (LENGTH + 1)
    packed = PackedBatches([text.mapped[:30], text.mapped[30:90]], LENGTH, SIZE, SEED)
    own, whole = own_rows(packed, CausalLanguageModel(), 0, OneOf(0, 2)), packed.batch(0)
    assert all(torch.equal(own[name], whole[name]) for name in whole)
