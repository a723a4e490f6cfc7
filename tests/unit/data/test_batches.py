from collections import Counter

import numpy as np
import pytest
import torch

from orrery.data.batches.order import Shuffled
from orrery.data.batches.packing import pack, pieces
from orrery.data.batches.token_windows import (
    IGNORE,
    CropBatches,
    PackedBatches,
    PaddedBatches,
    SequentialWindows,
)
from orrery.errors import DataError, UsageError

RNG = np.random.default_rng(0)
# Every token is a number of its own, so that tests can count it.
LENGTHS = [int(length) for length in RNG.integers(1, 40, 57)] + [64, 65, 130]
STARTS = np.cumsum([0, *LENGTHS])
DOCUMENTS = [list(range(start, start + length)) for start, length in zip(STARTS, LENGTHS, strict=False)]

SOURCES = {
    "crops": lambda seed: CropBatches(np.arange(500), 16, 4, seed),
    "packed": lambda seed: PackedBatches(DOCUMENTS, 64, 4, seed),
    "padded": lambda seed: PaddedBatches(DOCUMENTS, 4, seed, 32),
}


def equal(one, other):
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)
def test_a_batch_depends_on_seed_and_step_alone(source):
    steps = [0, 1, 2, 30, 31, 200, 201]
    running = source(1)
    batches = [running.batch(step) for step in steps]
    restarted = source(1)
    restarted.restore(running.state())
    assert all(equal(restarted.batch(step), batch) for step, batch in reversed(list(zip(steps, batches, strict=True))))
    assert not any(equal(source(2).batch(step), batch) for step, batch in zip(steps, batches, strict=True))
    assert len({tuple(batch["ids"].flatten().tolist()) for batch in batches}) == len(steps)


@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)
def test_targets_are_the_next_tokens(source):
    batch = source(3).batch(5)
    counted = batch["targets"] != IGNORE
    assert (batch["targets"] == batch["ids"] + 1)[counted].all()
    assert batch["ids"].dtype == batch["targets"].dtype == torch.int64
    assert counted.any()


def test_every_crop_is_equally_likely():
    batches = CropBatches(np.arange(8), 4, 1000, 0)
    starts = Counter(batches.batch(0)["ids"][:, 0].tolist())
    assert sorted(starts) == [0, 1, 2, 3]
    assert all(200 < count < 300 for count in starts.values())


def test_packing_covers_each_token_and_target_once_an_epoch():
    source = PackedBatches(DOCUMENTS, 64, 1, 0)
    seen, predicted = Counter(), Counter()
    for step in range(len(source.rows)):
        batch = source.batch(step)
        real = batch["documents"] >= 0
        seen.update(batch["ids"][real].tolist())
        predicted.update(batch["targets"][batch["targets"] != IGNORE].tolist())
        assert (batch["targets"][~real] == IGNORE).all()
        for number in batch["documents"][real].unique():
            here = batch["documents"] == number
            assert batch["positions"][here].tolist() == list(range(int(here.sum())))
    assert seen == Counter(range(sum(LENGTHS)))
    assert predicted == Counter(id for document in DOCUMENTS for id in document[1:])


def test_packing_keeps_documents_whole_and_wastes_little():
    rows = pack(pieces(LENGTHS, 64), 64)
    sizes = [sum(piece.stop - piece.start for piece in row) for row in rows]
    assert max(sizes) <= 64
    assert sum(sizes) == sum(LENGTHS)
    assert len(rows) <= 11 / 9 * -(-sum(LENGTHS) // 64) + 1
    whole = [piece.document for row in rows for piece in row if LENGTHS[piece.document] <= 64]
    assert len(whole) == len(set(whole))


def test_padding_visits_each_document_once_and_buckets_by_length():
    source = PaddedBatches(DOCUMENTS, 4, 0, 32, pad=9999, pool=15)
    batches = [source.batch(step) for step in range(15)]
    first = Counter(start for batch in batches for start in batch["ids"][:, 0].tolist())
    assert first == Counter(document[0] for document in DOCUMENTS)
    for batch in batches:
        lengths = batch["real"].sum(1)
        assert batch["real"].shape[1] == lengths.max() <= 32
        assert (batch["real"].int().diff(dim=1) <= 0).all()
        assert (batch["ids"][~batch["real"]] == 9999).all()
        assert (batch["targets"][~batch["real"]] == IGNORE).all()
    padding = sum(int((~batch["real"]).sum()) for batch in batches)
    assert padding < 0.1 * sum(batch["real"].numel() for batch in batches)


@pytest.mark.parametrize("count", [2, 9, 10, 11, 12, 50, 51])
@pytest.mark.parametrize(("length", "stride"), [(10, None), (10, 10), (10, 3), (10, 1)])
def test_evaluation_counts_each_target_once_with_its_context(count, length, stride):
    windows = SequentialWindows(np.arange(count), length, 3, stride)
    seen = []
    for batch in windows:
        counted = batch["targets"] != IGNORE
        seen += batch["targets"][counted].tolist()
        assert (batch["targets"] == batch["ids"] + 1)[counted].all()
        places = torch.arange(length).expand_as(counted)[counted]
        context = torch.minimum(batch["targets"][counted] - 1, torch.tensor(length - (stride or length)))
        assert (places >= context).all()
    assert seen == list(range(1, count))
    with pytest.raises(UsageError):
        windows.batch(len(windows))


def test_a_corpus_shorter_than_one_crop_says_what_is_needed():
    with pytest.raises(DataError, match="the corpus has 16 tokens, 17 are needed"):
        CropBatches(np.arange(16), 16, 1, 0)
    with pytest.raises(DataError, match="1 tokens, 2 are needed"):
        SequentialWindows([1], 16, 1)
    with pytest.raises(DataError, match="documents of two tokens"):
        PackedBatches([[1], []], 8, 1, 0)
    with pytest.raises(DataError, match="0 tokens"):
        PaddedBatches([[1], []], 1, 0, 8)


def test_every_epoch_is_a_permutation_of_its_own():
    order = Shuffled(10, 0)
    epochs = [order.items(start, start + 10).tolist() for start in (0, 10, 20)]
    assert all(sorted(epoch) == list(range(10)) for epoch in epochs)
    assert len({tuple(epoch) for epoch in epochs}) == 3
    assert order.items(5, 25).tolist() == epochs[0][5:] + epochs[1] + epochs[2][:5]
