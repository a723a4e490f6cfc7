"""Layouts: what lies where in a published tensor, and that taking apart undoes putting together."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from orrery.checkpoints.layouts import (
    ROWS,
    TURNED,
    Column,
    Depthwise,
    FirstLessSecond,
    Grouped,
    GroupInterleaved,
    HalvesExchanged,
    NegativeExponential,
    Reshaped,
    Stacked,
)

small = st.integers(1, 4)


def numbered(*shapes):
    """Return tensors in which every number is another."""
    sizes = [torch.Size(shape).numel() for shape in shapes]
    pieces = torch.arange(float(sum(sizes))).split(sizes)
    return [piece.view(shape) for piece, shape in zip(pieces, shapes, strict=True)]


def assert_undone(layout, parts):
    joined = layout.join(parts)
    assert joined.numel() == sum(part.numel() for part in parts)
    back = layout.split(joined, [part.shape for part in parts])
    assert all(torch.equal(a, b) for a, b in zip(back, parts, strict=True))
    assert torch.equal(layout.join(back), joined)


@given(st.lists(small, min_size=1, max_size=4), small)
def test_rows_are_undone_straight_and_turned(rows, columns):
    parts = numbered(*[(n, columns) for n in rows])
    assert_undone(ROWS, parts)
    assert_undone(TURNED, parts)


@given(small, st.lists(small, min_size=1, max_size=4), st.lists(small, max_size=1))
def test_groups_are_undone_for_matrices_and_biases(groups, rows, columns):
    assert_undone(GroupInterleaved(groups), numbered(*[(groups * n, *columns) for n in rows]))


@given(small, st.lists(small, min_size=1, max_size=3))
def test_added_axes_are_undone(axes, shape):
    assert_undone(Reshaped(axes), numbered(tuple(shape)))


@given(small, small, st.integers(1, 3), small, st.booleans(), st.booleans())
def test_stacked_experts_are_undone(experts, rows, across, columns, interleaved, turned):
    parts = numbered(*[(rows, columns)] * (experts * across))
    assert_undone(Stacked(across=across, interleaved=interleaved, turned=turned), parts)


def test_groups_put_the_parts_of_a_head_together():
    q, k, v = torch.tensor([0, 1, 10, 11]), torch.tensor([2, 12]), torch.tensor([3, 13])
    assert GroupInterleaved(2).join([q, k, v]).tolist() == [0, 1, 2, 3, 10, 11, 12, 13]
    assert GroupInterleaved(1).join([q, k, v]).tolist() == ROWS.join([q, k, v]).tolist()


def test_stacked_experts_lie_side_by_side_or_in_turns():
    gate, up = torch.tensor([[1.0], [2.0]]), torch.tensor([[3.0], [4.0]])
    assert Stacked(across=2).join([gate, up])[0].flatten().tolist() == [1, 2, 3, 4]
    assert Stacked(across=2, interleaved=True).join([gate, up])[0].flatten().tolist() == [1, 3, 2, 4]
    assert Stacked(across=2, turned=True).join([gate, up]).shape == (1, 1, 4)


@given(small, small, st.lists(small, max_size=1))
def test_exchanged_halves_are_undone(heads, half, columns):
    assert_undone(HalvesExchanged(heads), numbered((heads * 2 * half, *columns)))


def test_the_second_half_of_each_head_comes_first():
    assert HalvesExchanged(2).join(numbered((8,))).tolist() == [2, 3, 0, 1, 6, 7, 4, 5]


def test_what_state_spaces_are_stored_as_is_undone():
    heads, filters = torch.arange(1.0, 7.0), torch.randn(6, 1, 4)
    assert_undone(Column(), [heads])
    assert_undone(Grouped(3), [heads])
    assert_undone(Depthwise(), [filters])
    assert Column().join([heads]).tolist() == [[x] for x in heads.tolist()]
    assert Grouped(3).join([heads]).tolist() == [[1, 2], [3, 4], [5, 6]]
    assert torch.equal(Depthwise().join([filters]), filters[:, 0])
    for axes in (0, 1):
        layout = NegativeExponential(axes)
        rates = layout.join([heads.double().log()])
        assert rates.shape == (6,) + (1,) * axes
        assert torch.allclose(rates.flatten(), -heads.double(), rtol=1e-15, atol=0)
        assert torch.allclose(layout.split(rates, [heads.shape])[0], heads.double().log(), rtol=1e-14, atol=1e-15)


@given(st.lists(st.floats(-8, 8, width=16), min_size=2, max_size=8))
def test_the_sigmoid_of_one_row_is_the_softmax_of_two(numbers):
    rows = torch.tensor([numbers, numbers[::-1]])
    (ours,) = FirstLessSecond().split(rows.half(), [torch.Size([1, len(numbers)])])
    x = torch.linspace(-1, 1, len(numbers))
    assert torch.allclose((ours @ x).sigmoid(), (rows @ x).softmax(0)[:1], atol=1e-5)
    assert torch.equal(FirstLessSecond().split(FirstLessSecond().join([ours]), [ours.shape])[0], ours)
