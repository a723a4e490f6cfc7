"""Prefix language models: the prefix is seen whole, the rest from left to right, in every way through the model."""

from dataclasses import replace

import pytest
import torch

from orrery.errors import UsageError
from orrery.families import load_family
from orrery.laws.evidence import deviation
from orrery.laws.models import KERNELS, random_ids
from orrery.models.initialise import initialise
from orrery.nn.masks import Causal, Full, Prefix
from orrery.nn.spec import from_json, to_json
from orrery.objectives.causal import CausalLanguageModel


def model_of(family="llama", mask=None):
    """Return a tiny decoder whose only mask has a prefix, or another mask with the same weights."""
    module = load_family(family)
    spec = module.spec(module.TINY)
    spec = replace(spec, stack=replace(spec.stack, masks={"causal": mask or Prefix()}))
    model = from_json(to_json(spec)).build(0).double().eval()
    initialise(model, depth=2, seed=3, std=0.4)
    return model


@pytest.fixture(autouse=True)
def no_gradients():
    with torch.no_grad():
        yield


FAMILIES = ["llama", "gpt2", "bloom"]


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS.keys())
def test_the_ends_are_the_causal_and_the_full_mask(family, kernel):
    model, ids = model_of(family), random_ids(2, 7)
    none, all_of_it = torch.tensor([0, 0]), torch.tensor([7, 7])
    assert deviation(model.logits(ids, prefix=none, kernel=kernel), model_of(family, Causal()).logits(ids)) < 1e-12
    assert deviation(model.logits(ids, prefix=all_of_it, kernel=kernel), model_of(family, Full()).logits(ids)) < 1e-12


@pytest.mark.parametrize("family", FAMILIES)
def test_a_prefix_token_moves_all_and_a_later_one_only_what_follows(family):
    model, ids, prefix = model_of(family), random_ids(1, 8), torch.tensor([4])
    plain = model.logits(ids, prefix=prefix)
    for place in range(8):
        other = ids.clone()
        other[0, place] = (ids[0, place] + 1) % 61
        moved = ((model.logits(other, prefix=prefix) - plain).abs().amax(-1) > 1e-12)[0].nonzero()[:, 0].tolist()
        assert moved == list(range(0 if place < 4 else place, 8))


@pytest.mark.parametrize("family", FAMILIES)
def test_padding_and_packing_change_nothing(family):
    model, ids = model_of(family), random_ids(2, 9)
    real = torch.arange(9) >= torch.tensor([[0], [4]])
    for keep, rows in ((real, ids), (real.flip(1), ids)):
        of_rows = model.logits(rows, real=keep, prefix=torch.tensor([3, 2]))
        for row, of, logits, prefix in zip(rows, keep, of_rows, (3, 2), strict=True):
            assert deviation(logits[of], model.logits(row[of][None], prefix=torch.tensor([prefix]))[0]) < 1e-9
    documents = torch.tensor([[0, 0, 0, 0, 1, 1, 1, 2, 2]])
    prefixes = torch.tensor([[2, 2, 2, 2, 3, 3, 3, 0, 0]])
    packed = model.logits(ids[:1], documents=documents, prefix=prefixes)[0]
    for number, prefix in enumerate((2, 3, 0)):
        of = documents[0] == number
        assert deviation(packed[of], model.logits(ids[:1, of], prefix=torch.tensor([prefix]))[0]) < 1e-9


@pytest.mark.parametrize("family", FAMILIES)
def test_a_prompt_is_the_prefix_and_cached_equals_full(family):
    model, ids, lengths = model_of(family), random_ids(3, 10), torch.tensor([6, 3, 1])
    logits, session = model.start(ids[:, :6], 12, lengths)
    stepped = model.step(ids[:, 6:], session, torch.tensor([4, 2, 4]))
    for row, (length, more) in enumerate(((6, 4), (3, 2), (1, 4))):
        whole = torch.cat([ids[row, :length], ids[row, 6 : 6 + more]])[None]
        expected = model.logits(whole, prefix=torch.tensor([length]))[0]
        assert deviation(logits[row], expected[length - 1]) < 1e-9
        assert deviation(stepped[row, :more], expected[length:]) < 1e-9
    joined = session.select(torch.tensor([1])).join(model.start(ids[:1, :2], 12, prefix=torch.tensor([1]))[1])
    again = model.step(ids[:2, 8:9], joined.truncate(torch.tensor([4, 1])))
    expected = model.logits(torch.cat([ids[1, :3], ids[1, 6:7], ids[0, 8:9]])[None], prefix=torch.tensor([3]))
    assert deviation(again[0, 0], expected[0, -1]) < 1e-9


def test_a_prefix_cannot_be_cut():
    model = model_of()
    _, session = model.start(random_ids(2, 5), 12)
    with pytest.raises(UsageError, match="a prefix cannot be cut"):
        session.truncate(torch.tensor([4, 5]))


def test_a_call_without_a_prefix_and_a_prefix_without_a_mask_are_refused():
    ids = random_ids(2, 5)
    with pytest.raises(UsageError, match="no prefix to go by") as missing:
        model_of().logits(ids)
    assert "prefix=" in missing.value.hint
    with pytest.raises(UsageError, match="no mask with a prefix"):
        model_of(mask=Causal()).logits(ids, prefix=torch.tensor([1, 1]))


def test_training_hands_the_prefix_to_the_model():
    model, ids = model_of().requires_grad_(False), random_ids(2, 6)
    batch = {"ids": ids, "targets": ids.roll(-1, 1)}
    losses = {n: CausalLanguageModel().loss(model, {**batch, "prefix": torch.tensor([n, n])}) for n in (0, 6)}
    assert losses[0]["next_token"].sum != losses[6]["next_token"].sum
