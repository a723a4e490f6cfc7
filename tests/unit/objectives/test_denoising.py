"""Denoising: each of the five noises as a distribution, and what they may not change."""

import copy
import math

import pytest
import torch
from pydantic import ValidationError

from objectives_toy import TEXT, bound, generator, split_deviation, text_rows, tiny, tokenizer_of
from orrery.errors import UsageError
from orrery.objectives.denoising import Denoising, infill, permute, rotate, span_lengths
from orrery.training.contract import finished_batch

ROBERTA = tokenizer_of("roberta")
MASK, END = ROBERTA.special("mask"), ROBERTA.special("end")
NONE = {"permutation": 0.0, "infilling": 0.0}


def model(family="bart", **config):
    return tiny(family, ROBERTA, decoder_start_token_id=END, **config)


def denoising(**settings):
    return bound("denoising", model(), ROBERTA, **{**NONE, **settings})


def close(share, expected, of):
    return abs(float(share) - expected) < 5 * math.sqrt(expected * (1 - expected) / of)


def test_masking_hides_its_share_and_nothing_else():
    ids = text_rows(ROBERTA, 1, 1_000_000)[0]
    masked_ids = denoising(masking=0.15).noisy(ids, generator())
    hidden = masked_ids == MASK
    assert close(hidden.double().mean(), 0.15, len(ids))
    assert torch.equal(masked_ids[~hidden], ids[~hidden])


def test_deletion_takes_its_share_and_keeps_the_order():
    places = torch.arange(1_000_000)
    left = denoising(deletion=0.15).noisy(places, generator())
    assert close(1 - len(left) / len(places), 0.15, len(places))
    assert (left.diff() > 0).all()


@pytest.mark.parametrize("mean", [3.0, 0.5])
def test_infilling_takes_exactly_its_share_in_poisson_spans(mean):
    lengths = span_lengths(300_000, mean, generator())
    assert int(lengths.sum()) == 300_000
    for size in range(8):
        share = math.exp(-mean) * mean**size / math.factorial(size)
        assert close((lengths == size).double().mean(), share, len(lengths))
    places = torch.arange(10_000)
    filled = infill(places, 3000, mean, -1, generator())
    kept = filled[filled >= 0]
    assert len(kept) == 7000
    assert (kept.diff() > 0).all()
    assert abs(float(kept.double().mean()) - 5000) < 5 * 10_000 / math.sqrt(12 * 1000 / max(mean, 1))
    # Every gap has at least one mask in its place.
    gaps = (kept.diff() > 1).nonzero()[:, 0]
    where = (filled >= 0).nonzero()[:, 0]
    assert (where[gaps + 1] - where[gaps] > 1).all()


def test_infilling_everything_or_nothing():
    assert torch.equal(infill(torch.arange(5), 0, 3.0, -1, generator()), torch.arange(5))
    assert (infill(torch.arange(5), 5, 3.0, -1, generator()) == -1).all()


def test_sentences_change_places_and_stay_whole():
    ids = torch.tensor([1, 2, 9, 3, 9, 4, 5])
    ends, rng, seen = ids == 9, generator(), {}
    for _ in range(6000):
        permuted = tuple(permute(ids, ends, rng).tolist())
        seen[permuted] = seen.get(permuted, 0) + 1
    parts = [(1, 2, 9), (3, 9), (4, 5)]
    orders = [(a, b, c) for a in parts for b in parts for c in parts if len({a, b, c}) == 3]
    assert set(seen) == {sum(order, ()) for order in orders}
    assert max(abs(number - 1000) for number in seen.values()) < 5 * math.sqrt(6000 * 5 / 36)


def test_a_document_begins_at_any_of_its_tokens():
    ids, rng = torch.arange(5), generator()
    begun = torch.tensor([int(rotate(ids, rng)[0]) for _ in range(5000)])
    assert all(close(often / 5000, 0.2, 5000) for often in begun.bincount(minlength=5))
    rotated = rotate(ids, generator(3))
    assert torch.equal(rotated, (torch.arange(5) + rotated[0]) % 5)


def test_sentences_of_a_text_end_where_they_end():
    ids = torch.tensor(ROBERTA.encode(TEXT[: TEXT.index("\n")]))
    objective = denoising(permutation=1.0)
    assert int(objective.ends_V[ids].sum()) == 4
    text_read = ROBERTA.decode(objective.noisy(ids, generator(1)).tolist())
    assert sorted(text_read.replace("? ", "?|").replace(". ", ".|").replace("! ", "!|")) is not None
    assert {"A dog ran after the cat!", "Did it rain?"} <= {
        part.strip() for part in text_read.replace("!", "!|").replace("?", "?|").replace(".", ".|").split("|")
    }


def test_targets_are_the_text_and_shares_of_rows_are_kept():
    objective = denoising(rotation=0.5)
    real = torch.arange(20) < torch.tensor([20, 1, 7, 13] * 500)[:, None]
    ids = text_rows(ROBERTA, 2000, 20)
    batch = finished_batch(objective, {"ids": ids, "real": real}, generator(), model().spec.inputs)
    for row, here, target, known in zip(ids, real, batch["targets"], batch["targets"] != -100, strict=True):
        assert target[known].tolist() == [*row[here].tolist(), END]
    assert torch.equal(batch["source_real"].sum(1), real.sum(1) + 1)
    long = [0, 3] + [4 * k for k in range(1, 500)]
    same = torch.tensor([torch.equal(batch["source"][row, :20], ids[row]) for row in range(0, 2000, 4)])
    assert long
    assert close(same.double().mean(), 0.5 + 0.5 / 20, 500)


def test_rows_as_long_as_the_context_leave_room_for_the_end():
    learner = model(max_position_embeddings=16)
    objective = bound("denoising", learner, ROBERTA, infilling=0.6, mean_span=0.2)
    batch = objective.prepare({"ids": text_rows(ROBERTA, 40, 16)}, generator())
    assert batch["targets"].shape[1] == 16
    assert batch["source"].shape[1] <= 16
    objective.loss(learner, batch)


@pytest.mark.parametrize("family", ["bart", "t5"])
def test_micro_batches_change_nothing(family):
    learner = model(family)
    settings = {"rotation": 0.5, "masking": 0.1, "deletion": 0.1}
    objective = bound("denoising", learner, ROBERTA, **settings)
    real = torch.arange(24) < torch.tensor([[24], [5], [13], [1]])
    batch = objective.prepare({"ids": text_rows(ROBERTA, 4, 24), "real": real}, generator(4))
    assert split_deviation(learner, objective, batch) < 1e-12
    again = objective.evaluated().prepare({"ids": text_rows(ROBERTA, 4, 24), "real": real}, generator(4))
    assert all(torch.equal(batch[name], again[name]) for name in batch)


def test_what_cannot_learn_this_is_refused():
    with pytest.raises(UsageError, match="the objective denoising needs an encoder-decoder"):
        bound("denoising", tiny("gpt2", ROBERTA), ROBERTA)
    plain = tokenizer_of(None)
    with pytest.raises(UsageError, match="denoising needs a mask token"):
        bound("denoising", tiny("bart", plain, decoder_start_token_id=plain.special("end")), plain)
    with pytest.raises(ValidationError, match="without any noise"):
        Denoising.Settings(permutation=0, infilling=0)


@pytest.mark.parametrize("pad", [None, "<pad>"], ids=["without", "with"])
def test_shorter_rows_are_filled_with_the_pad_token_or_else_the_end(pad):
    tokenizer = copy.copy(ROBERTA)
    tokenizer.roles = {role: token for role, token in ROBERTA.roles.items() if pad or role != "pad"}
    objective = bound("denoising", model(), tokenizer, **NONE)
    rows = text_rows(ROBERTA, 2, 9)
    batch = objective.prepare({"ids": rows, "real": torch.arange(9) < torch.tensor([[9], [4]])}, generator())
    filled = batch["source"][~batch["source_real"]]
    assert filled.tolist() == [ROBERTA.special("pad") if pad else END] * 5
    assert ROBERTA.special("pad") != END
