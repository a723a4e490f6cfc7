"""Rows join and leave a storage without a copy of those that stay."""

import random

import torch

from orrery.laws.models import random_ids, tiny
from orrery.nn.cache.row_buffer import RowBuffer


def buffer_of(rows):
    buffer = RowBuffer()
    buffer.put(0, torch.tensor(rows, dtype=torch.float64)[:, None].repeat(1, 3))
    return buffer


def numbers(buffer):
    assert buffer.depths[0].is_contiguous()
    assert (buffer.depths[0] == buffer.depths[0][:, :1]).all()
    return buffer.depths[0][:, 0].tolist()


def test_rows_are_those_of_a_list_whatever_comes_and_goes():
    rng = random.Random(1)
    buffer, expected, fresh = buffer_of([0.0, 1.0]), [0.0, 1.0], 2.0
    for _ in range(300):
        if rng.random() < 0.4 or not expected:
            more = [fresh + i for i in range(rng.randint(1, 3))]
            buffer.append(buffer_of(more))
            expected, fresh = expected + more, fresh + 3
        else:
            order = [rng.randrange(len(expected)) for _ in range(rng.randint(0, len(expected)))]
            if rng.random() < 0.5:
                order = list(range(len(expected)))[: rng.randint(0, len(expected))]
            copy = buffer.copy(order)
            buffer.select(order)
            expected = [expected[row] for row in order]
            assert numbers(copy) == expected
        assert numbers(buffer) == expected
        assert len(buffer._whole[0]) <= max(6, 8 * len(expected))


def test_a_row_that_joins_or_leaves_moves_no_other():
    buffer = buffer_of([0.0, 1.0, 2.0, 3.0])
    buffer.append(buffer_of([4.0]))
    where = buffer.depths[0].data_ptr()
    buffer.append(buffer_of([5.0]))
    buffer.select([0, 5, 2, 3, 4])
    assert buffer.depths[0].data_ptr() == where
    assert numbers(buffer) == [0.0, 5.0, 2.0, 3.0, 4.0]
    copy = buffer.copy()
    copy.depths[0].fill_(9.0)
    assert numbers(buffer) == [0.0, 5.0, 2.0, 3.0, 4.0]


@torch.no_grad()
def test_a_session_of_joined_rows_has_room_for_more():
    model = tiny("llama")
    session = model.start(random_ids(1, 5), 40)[1]
    where = set()
    for number in range(1, 12):
        session = session.join(model.start(random_ids(1, 5), 40)[1])
        where.add(session.cache.stores[""].keys[0].data_ptr())
        assert len(session.lengths) == number + 1
    assert len(where) == 4  # 2, 4, 8 and 16 rows
