"""The encoder-decoder: its session can be selected, reordered, joined and cut, and cached equals full."""

import pytest
import torch

from orrery.errors import UsageError
from orrery.families import load_family
from orrery.laws.evidence import deviation
from orrery.laws.models import random_ids, tiny
from orrery.nn.cache.kinds import static

FAMILIES = ["transformer", "t5", "mbart"]
LENGTHS = torch.tensor([7, 4, 1])


def model_of(family):
    """Return the tiny model behind the one that the laws see, which has read its source already."""
    return tiny(family).model


def rows(model, count=3, seed=1):
    """Return right-padded sources and targets that begin as targets do."""
    source, target = random_ids(count, 7, seed=seed), random_ids(count, 6, seed=seed + 10)
    target[:, 0] = model.spec.start
    return source, target


def full(model, source, target, lengths):
    """Return the logits of every row read alone and without padding."""
    pairs = zip(source, target, lengths, strict=True)
    return torch.cat([model.logits(s[None, : int(n)], t[None]) for s, t, n in pairs])


def written(model, source, target, lengths, upto=3):
    """Return the session after the first target tokens."""
    _, session = model.start(source, 8, lengths)
    model.step(target[:, 1:upto], session)
    return session


@pytest.fixture(autouse=True)
def no_gradients():
    with torch.no_grad():
        yield


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("kind", ["growing", "static"])
def test_cached_equals_full(family, kind):
    model = model_of(family)
    source, target = rows(model)
    cache = static(3, 8) if kind == "static" else None
    logits, session = model.start(source, 8, LENGTHS, cache=cache)
    steps = [logits[:, None]]
    for tokens in target[:, 1:].split([1, 3, 1], dim=1):
        logits = model.step(tokens, session)
        steps.append(logits)
    assert deviation(torch.cat(steps, 1), full(model, source, target, LENGTHS)) < 1e-9
    assert session.lengths == (6, 6, 6)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_prompt_and_ragged_steps(family):
    model = model_of(family)
    source, target = rows(model)
    logits, session = model.start(source, 8, LENGTHS, prompt=target[:, :3])
    expected = full(model, source, target, LENGTHS)
    assert deviation(logits, expected[:, 2]) < 1e-9
    logits = model.step(target[:, 3:], session, torch.tensor([3, 1, 2]))
    assert session.lengths == (6, 4, 5)
    for row, n in enumerate((3, 1, 2)):
        assert deviation(logits[row, :n], expected[row, 3 : 3 + n]) < 1e-9


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("order", [[2, 0, 1], [1, 1, 0]], ids=str)
def test_reorder_and_select(family, order):
    model = model_of(family)
    source, target = rows(model)
    order = torch.tensor(order)
    session = written(model, source, target, LENGTHS)
    expected = full(model, source, target, LENGTHS)[order]
    logits = model.step(target[order, 3:], session.fork().reorder(order))
    assert deviation(logits, expected[:, 3:]) < 1e-9
    logits = model.step(target[order[:2], 3:], session.select(order[:2]))
    assert deviation(logits, expected[:2, 3:]) < 1e-9


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("lengths", [LENGTHS, None], ids=["padded", "whole"])
def test_join_sources_of_different_lengths(family, lengths):
    model = model_of(family)
    source, target = rows(model)
    other, answer = rows(model, count=2, seed=5)
    first = written(model, source, target, lengths)
    second = written(model, other[:, :3], answer, None, upto=2)
    joined = first.join(second)
    assert joined.lengths == (3, 3, 3, 2, 2)
    tokens = torch.cat([target[:, 3:5], answer[:, 2:4]])
    logits = model.step(tokens, joined)
    whole = torch.full((3,), 7) if lengths is None else lengths
    assert deviation(logits[:3], full(model, source, target[:, :5], whole)[:, 3:]) < 1e-9
    assert deviation(logits[3:], model.logits(other[:, :3], answer[:, :4])[:, 2:]) < 1e-9


@pytest.mark.parametrize("family", FAMILIES)
def test_truncate_forgets_what_was_written_and_keeps_what_was_read(family):
    model = model_of(family)
    source, target = rows(model)
    session = written(model, source, target.flip(1).clone(), LENGTHS, upto=6)
    session = session.truncate(torch.tensor([1, 1, 1]))
    logits = model.step(target[:, 1:], session)
    assert session.lengths == (6, 6, 6)
    assert deviation(logits, full(model, source, target, LENGTHS)[:, 1:]) < 1e-9


def test_bytes_are_those_of_both_caches_and_of_the_source():
    model = model_of("transformer")
    source, target = rows(model)
    _, session = model.start(source, 8, LENGTHS, cache=static(3, 8))
    floats, layers, width = 8, 2, 24
    own, crossed = 2 * layers * 3 * (8 + 1) * width, 2 * layers * 3 * 7 * width  # keys and values; a spare slot a row
    assert session.bytes() == floats * (own + crossed + 3 * 7 * width)
    model.step(target[:, 1:], session)
    assert session.bytes() == floats * (own + crossed + 3 * 7 * width)


def test_joining_different_capacities_and_passing_the_end_are_refused():
    model = model_of("transformer")
    source, target = rows(model)
    with pytest.raises(UsageError, match="cannot be joined"):
        written(model, source, target, LENGTHS).join(model.start(source, 9)[1])
    with pytest.raises(UsageError, match="does not fit a cache of 8"):
        model.step(random_ids(3, 6), written(model, source, target, LENGTHS))


@pytest.mark.parametrize("family", FAMILIES)
def test_a_source_without_a_token_gives_numbers(family):
    """A row of padding alone leaves cross-attention nothing to see: it adds what its projection adds to zeros."""
    model = model_of(family)
    source, target = rows(model)
    real = torch.arange(7) < torch.tensor([[7], [0], [3]])
    logits = model.logits(source, target, source_real=real)
    assert logits.isfinite().all()
    assert deviation(logits[[0, 2]], full(model, source[[0, 2]], target[[0, 2]], torch.tensor([7, 3]))) < 1e-9


def test_a_vocabulary_for_each_side():
    rules = load_family("marian")
    model = rules.spec({**rules.TINY, "decoder_vocab_size": 67}).build(0).eval()
    assert model.head.vocabulary.weight is model.target.token.weight
    assert model.reader.embed.token.weight.shape == (61, 24)
    assert model.logits(random_ids(2, 5), random_ids(2, 3)).shape == (2, 3, 67)
