"""Prefix language modelling: the draw of the prefix, what the model sees, and what is refused."""

import math
from dataclasses import replace

import pytest
import torch

from objectives_toy import bound, generator, split_deviation, text_rows, tiny, tokenizer_of
from orrery.errors import UsageError
from orrery.models.prefix_mask import with_prefix
from orrery.nn.masks import LocalWindow, Prefix

PLAIN = tokenizer_of(None)


def model(family="llama"):
    plain = tiny(family, PLAIN)
    prefixed = with_prefix(plain.spec).build().double()
    prefixed.load_state_dict(plain.state_dict())
    return prefixed


def crops(rows, length, seed=0):
    ids = text_rows(PLAIN, rows, length + 1, seed)
    return {"ids": ids[:, :-1], "targets": ids[:, 1:]}


def test_every_length_of_the_prefix_is_as_likely():
    rows, length = 100_000, 10
    prepared = bound("prefix", model(), PLAIN).prepare(crops(rows, length), generator())
    often = prepared["prefix"].bincount(minlength=length + 1)
    share = 1 / (length - 1)
    assert often[0] == often[length] == 0
    assert float((often[1:length] / rows - share).abs().max()) < 5 * math.sqrt(share * (1 - share) / rows)


def test_targets_begin_behind_the_prefix():
    batch = crops(50, 12)
    prepared = bound("prefix", model(), PLAIN).prepare(batch, generator())
    for row, prefix in enumerate(prepared["prefix"].tolist()):
        assert (prepared["targets"][row, : prefix - 1] == -100).all()
        assert torch.equal(prepared["targets"][row, prefix - 1 :], batch["targets"][row, prefix - 1 :])
    assert torch.equal(prepared["ids"], batch["ids"])


def test_a_prefix_ends_before_the_padding():
    batch = crops(60, 12)
    real = torch.arange(12) < torch.arange(1, 13).repeat(5)[:, None]
    batch = {**batch, "targets": batch["targets"].masked_fill(~real, -100), "real": real}
    prepared = bound("prefix", model(), PLAIN).prepare(batch, generator())
    lengths = real.sum(1)
    assert (prepared["prefix"] >= 1).all()
    assert (prepared["prefix"] <= (lengths - 1).clamp(min=1)).all()
    assert ((prepared["targets"] != -100).sum(1) > 0).all()


@pytest.mark.parametrize("family", ["llama", "gpt2"])
def test_the_loss_is_what_the_definition_says_and_no_split_changes_it(family):
    learner = model(family)
    objective = bound("prefix", learner, PLAIN)
    batch = objective.prepare(crops(4, 10), generator(3))
    assert split_deviation(learner, objective, batch) < 1e-12
    logits = learner.eval().logits(batch["ids"], prefix=batch["prefix"]).log_softmax(-1)
    expected = 0.0
    for row, prefix in enumerate(batch["prefix"].tolist()):
        for place in range(prefix, 11):
            target = batch["targets"][row, place - 1] if place == 10 else batch["ids"][row, place]
            expected -= logits[row, place - 1, target].item()
    term = objective.loss(learner, batch)["next_token"]
    assert term.sum.item() == pytest.approx(expected, abs=1e-9)
    assert objective.counts(batch)["next_token"] == int((10 - batch["prefix"] + 1).sum())


def test_nothing_that_is_predicted_has_been_seen():
    learner = model().eval()
    objective = bound("prefix", learner, PLAIN)
    batch = objective.prepare(crops(1, 10), generator(3))
    prefix = int(batch["prefix"])
    logits = learner.logits(batch["ids"], prefix=batch["prefix"])
    for place in range(prefix, 10):
        other = batch["ids"].clone()
        other[0, place] = (other[0, place] + 1) % PLAIN.size
        moved = (learner.logits(other, prefix=batch["prefix"]) - logits).abs().amax(-1)[0] > 1e-12
        assert not moved[prefix - 1 : place].any()


def test_what_cannot_learn_this_is_refused():
    with pytest.raises(UsageError, match="prefix needs a mask with a prefix") as error:
        bound("prefix", tiny("llama", PLAIN), PLAIN)
    assert "model.mask: prefix" in error.value.hint
    for family in ("bert", "t5"):
        with pytest.raises(UsageError, match="prefix needs a decoder"):
            bound("prefix", tiny(family, PLAIN), PLAIN)
    packed = {**crops(2, 6), "documents": torch.zeros(2, 6, dtype=torch.long)}
    with pytest.raises(UsageError, match="packed rows have several texts"):
        bound("prefix", model(), PLAIN).prepare(packed, generator())


def test_only_causal_masks_get_a_prefix():
    spec = tiny("llama", PLAIN).spec
    assert set(with_prefix(spec).stack.masks.values()) == {Prefix()}
    windowed = replace(spec, stack=replace(spec.stack, masks={"causal": LocalWindow(distance=3)}))
    for other in (windowed, tiny("bert", PLAIN).spec):
        with pytest.raises(UsageError, match=r"model\.mask: prefix needs a decoder"):
            with_prefix(other)
