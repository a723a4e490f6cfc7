"""Pages: rows that begin alike hold the same, who writes takes a copy, and what nobody holds is taken again."""

import gc

import pytest
import torch

from orrery.errors import RunError
from orrery.laws.evidence import deviation
from orrery.laws.models import random_ids, tiny
from orrery.nn.cache.kinds import cache_for, paged
from orrery.nn.cache.paged import PagedStore
from orrery.nn.cache.pages import PagePool

CAPACITY = 40


def started(model, pool, ids, lengths=None):
    cache = cache_for(model.stack.masks, len(ids), CAPACITY, pool=pool)
    return model.start(ids, CAPACITY, lengths, cache=cache)[1]


def pages_of(session):
    return session.cache.stores[""].pages


@torch.no_grad()
def test_forks_hold_the_same_pages_until_one_of_them_writes():
    model, pool = tiny("llama"), PagePool(4)
    session = started(model, pool, random_ids(1, 10))
    assert pool.taken == 3
    fork = session.fork()
    twice = session.fork().select([0, 0])
    assert pool.taken == 3
    assert pages_of(twice) == [*pages_of(fork), *pages_of(session)]
    model.step(random_ids(1, 1, seed=3), fork)
    assert pool.taken == 4
    assert pages_of(fork)[0][:2] == pages_of(session)[0][:2]
    assert pages_of(fork)[0][2] != pages_of(session)[0][2]
    model.step(random_ids(2, 3, seed=4), twice)
    assert pool.taken == 3 + 1 + 2 * 2  # each its own third page, and a fourth
    joined = session.join(fork).join(twice)
    assert len(pages_of(joined)) == 4
    assert pool.taken == 8


@torch.no_grad()
def test_pages_that_nobody_holds_are_taken_again():
    model, pool = tiny("llama"), PagePool(4)
    session = started(model, pool, random_ids(3, 9))
    assert (pool.taken, session.cache.bytes()) == (9, 9 * pool.page_bytes)
    session = session.select([2])
    assert pool.taken == 3
    session = session.truncate([5])
    assert pool.taken == 2
    other = started(model, pool, random_ids(2, 9))
    assert pool.taken == 8
    assert len(pool._holders) == 1 + 9
    del other, session
    gc.collect()
    assert pool.taken == 0


@torch.no_grad()
def test_what_stood_in_a_page_before_is_never_seen():
    model, pool = tiny("llama", torch.float32), PagePool(8)
    session = started(model, pool, random_ids(1, 8))
    for storage in (*pool.keys.values(), *pool.values.values()):
        storage.fill_(float("nan"))
    del session
    gc.collect()
    for storage in (*pool.keys.values(), *pool.values.values()):
        storage[:, 0] = 0
    ids = random_ids(1, 5)
    logits = model.step(random_ids(1, 1), started(model, pool, ids))
    expected = model.step(random_ids(1, 1), model.start(ids, CAPACITY)[1])
    assert deviation(logits, expected) <= 1e-5


@torch.no_grad()
def test_a_pool_has_no_more_pages_than_it_may_have():
    model, pool = tiny("llama"), PagePool(4, most=5)
    session = started(model, pool, random_ids(2, 8))
    assert pool.taken == 4
    with pytest.raises(RunError, match="all 5 pages"):
        model.step(random_ids(2, 1), session)
    alone = session.select([1])
    model.step(random_ids(1, 5), alone)
    assert pool.taken == 4
    assert {storage.shape[1] for storage in pool.keys.values()} == {6}


@torch.no_grad()
def test_rows_of_another_pool_bring_their_pages():
    model = tiny("llama")
    ids = random_ids(2, 9)
    sessions = [model.start(row[None, :7], CAPACITY, cache=paged(1, CAPACITY))[1] for row in ids]
    pool = sessions[0].cache.stores[""].pool
    assert isinstance(sessions[0].cache.stores[""], PagedStore)
    joined = sessions[0].join(sessions[1].select([0, 0]))
    assert pool.taken == 2
    logits = model.step(torch.cat([ids[:, 7:], ids[1:, 7:]]), joined)
    assert pool.taken == 3
    for row, number in enumerate((0, 1, 1)):
        assert deviation(logits[row], model.logits(ids[number : number + 1])[0, 7:]) <= 1e-9
