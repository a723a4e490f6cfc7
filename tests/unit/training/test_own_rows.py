"""A process reads of a batch the rows that it computes, and no token of others; what is learned stays the same."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from orrery.data.batches.mixtures import Component, MixtureBatches
from orrery.data.batches.token_windows import IGNORE, CropBatches, PackedBatches, PaddedBatches
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


def documents_of(text: Counted) -> list[Any]:
    """Return 300 documents of 2 to 14 tokens, which count what is read of them."""

    class Document(Sequence[int]):
        def __init__(self, start: int, length: int) -> None:
            self.start, self.length = start, length

        def __len__(self) -> int:
            return self.length

        def __getitem__(self, places: Any) -> Any:
            if isinstance(places, int):  # asked of by run-time types alone
                return 1
            begin, end, _ = places.indices(self.length)
            return text[self.start + begin : self.start + end]

    return [Document(number * 13, 2 + number % 13) for number in range(300)]


def mixture(documents: list[Any], length: int, size: int, seed: int) -> MixtureBatches:
    """Return padded rows of two corpora."""
    halves = [PaddedBatches(documents[n::2], length=length, size=1, seed=seed) for n in range(2)]
    return MixtureBatches([Component(str(n), half, n + 1) for n, half in enumerate(halves)], size, seed)


@pytest.mark.parametrize("kind", [CropBatches, PackedBatches, PaddedBatches, mixture])
def test_gradients_of_own_rows_add_up_to_those_of_the_batch(kind: Any, text: Counted) -> None:
    source = kind(text if kind is CropBatches else documents_of(text), length=LENGTH, size=SIZE, seed=SEED)
    objective = CausalLanguageModel()
    how = {"micro_batch": None, "seed": (0, 0), "precision": Precision("float32", "plain", "cpu", 1)}

    def learned(ranks: Any) -> list[torch.Tensor]:
        model = toy_model(dropout=0.0).double()
        accumulate(model, objective, own_rows(source, objective, 3, ranks), ranks=ranks, **how)  # type: ignore[arg-type]
        return [each.grad for each in model.parameters() if each.grad is not None]

    whole, shares = learned(Alone()), [learned(OneOf(number, 3)) for number in range(3)]
    assert len(whole) > 1
    for number, gradient in enumerate(whole):
        torch.testing.assert_close(sum(share[number] for share in shares), gradient, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("kind", [PackedBatches, PaddedBatches, mixture])
@pytest.mark.parametrize(("number", "count"), RANKS)
def test_a_process_reads_its_own_documents(kind: Any, number: int, count: int, text: Counted) -> None:
    documents = documents_of(text)
    source = kind(documents, length=LENGTH, size=SIZE, seed=SEED)
    ranks = OneOf(number, count)
    for step in range(3):
        text.read = 0
        whole, all_read = source.batch(step), text.read
        text.read = 0
        own = own_rows(source, CausalLanguageModel(), step, ranks)
        rows = ranks.rows(SIZE)
        for name, values in whole.items():
            assert torch.equal(own[name][rows.start : rows.stop], values[rows.start : rows.stop]), name
            if name not in ("ids", "targets"):
                assert torch.equal(own[name], values), name
        assert torch.equal(own["targets"] == IGNORE, whole["targets"] == IGNORE)
        assert own["ids"].count_nonzero() == whole["ids"][rows.start : rows.stop].count_nonzero()
        assert text.read <= len(rows) * (LENGTH + 1)
        assert (text.read == all_read) == (count == 1)


def test_what_draws_or_counts_by_tokens_gets_whole_batches(text: Counted) -> None:
    source = CropBatches(text, LENGTH, SIZE, SEED)
    for objective in (MaskedLanguageModel(), SupervisedFineTuning()):
        text.read = 0
        own_rows(source, objective, 0, OneOf(0, 2))
        assert text.read == SIZE * (LENGTH + 1)
