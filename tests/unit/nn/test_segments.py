"""Segments against the dense matrix of the mask that they stand for, and what is laid out by them."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from orrery.errors import UsageError
from orrery.families import load_family
from orrery.nn.masks import EMPTY_SLOT, RecurrentPast, SameDocument, TokenPositions, bind, bind_past
from orrery.nn.segments import PackedSegments

rows = st.integers(1, 3).flatmap(
    lambda tokens: st.lists(
        st.lists(st.integers(-1, 2), min_size=4 * tokens, max_size=4 * tokens), min_size=1, max_size=3
    )
)


def by_the_matrix(documents_BL):
    """Return segment and place of each token, the row and the length of each segment, from every pair of tokens."""
    places = torch.arange(documents_BL.shape[1]).expand_as(documents_BL)
    key = TokenPositions(places.masked_fill(documents_BL < 0, EMPTY_SLOT), documents_BL)
    seen_BLL = bind(RecurrentPast() & SameDocument(), TokenPositions(places, documents_BL), key).dense[:, 0]
    segments, lengths, keys_seen = {}, [], []
    for row, seen_LL in enumerate(seen_BLL):
        for token, seen_L in enumerate(seen_LL):
            if not seen_L[token]:
                keys_seen.append(None)
                continue
            number = segments.setdefault((row, int(seen_L.int().argmax())), len(segments))
            lengths[number : number + 1] = [int(seen_L.sum())]
            keys_seen.append((number, int(seen_L.sum()) - 1))
    return keys_seen, [row for row, _ in segments], lengths


@given(rows)
def test_segments_are_what_the_mask_allows(given_rows):
    documents_BL = torch.tensor(given_rows)
    keys_seen, rows, lengths = by_the_matrix(documents_BL)
    segments = PackedSegments.of(documents_BL >= 0, documents_BL)
    if segments is None:  # every row is one document, and nothing is padding
        assert lengths == [documents_BL.shape[1]] * len(documents_BL)
        return
    assert segments.row_N.tolist() == rows
    assert segments.length_N.tolist() == list(segments.lengths) == lengths
    numbers = zip(segments.segment_BL.flatten().tolist(), segments.place_BL.flatten().tolist(), strict=True)
    for real, expected, number in zip(segments.real_BL.flatten(), keys_seen, numbers, strict=True):
        assert bool(real) == (expected is not None)
        assert expected is None or number == expected


@given(rows)
def test_every_layout_comes_back(given_rows):
    documents_BL = torch.tensor(given_rows)
    segments = PackedSegments.of(documents_BL >= 0, documents_BL)
    if segments is None:
        return
    x_BLD = torch.arange(documents_BL.numel() * 2.0).view(*documents_BL.shape, 2) + 1
    kept_BLD = x_BLD * segments.real_BL[..., None]
    assert torch.equal(segments.join(segments.split(x_BLD)), kept_BLD)
    assert torch.equal(segments.unpack(segments.pack(x_BLD).data), kept_BLD)
    back_PD = torch.zeros_like(x_BLD.flatten(0, 1))
    taken = []
    for one_N, token_NT, held_NT in segments.alike():
        taken += one_N.tolist()
        assert held_NT.sum(1).tolist() == segments.length_N[one_N].tolist()
        assert held_NT.numel() < 2 * int(held_NT.sum())
        back_PD[token_NT[held_NT]] = x_BLD.flatten(0, 1)[token_NT[held_NT]]
    assert sorted(taken) == list(range(len(segments.length_N)))
    assert torch.equal(back_PD.view_as(x_BLD), kept_BLD)


def test_packed_tokens_are_in_the_order_of_torch():
    documents_BL = torch.tensor([[0, 0, 0, 1, 1], [0, 1, 1, 1, 1]])
    segments = PackedSegments.of(None, documents_BL)
    x_BLD = torch.randn(2, 5, 3)
    expected = torch.nn.utils.rnn.pack_padded_sequence(
        segments.split(x_BLD), segments.length_N, batch_first=True, enforce_sorted=False
    )
    for ours, theirs in zip(segments.pack(x_BLD), expected, strict=True):
        assert torch.equal(ours, theirs)


def test_whole_rows_have_no_segments():
    whole = torch.ones(2, 3, dtype=torch.bool)
    assert PackedSegments.of(None) is None
    assert PackedSegments.of(whole) is None
    assert PackedSegments.of(whole, torch.tensor([[4] * 3, [7] * 3])) is None
    assert PackedSegments.of(whole, torch.tensor([[4] * 3, [7, 8, 8]])) is not None


def test_documents_in_a_cached_row_are_refused():
    places = TokenPositions(torch.arange(3)[None], torch.zeros(1, 3, dtype=torch.long))
    with pytest.raises(UsageError, match="no documents to go by"):
        bind_past(places, TokenPositions(torch.arange(3)[None]), None)


def test_a_document_in_pieces_is_one_segment_where_positions_say_so():
    rules = load_family("gru")
    model = rules.spec(rules.TINY).build(0).double().eval()
    ids, documents = torch.randint(61, (1, 6)), torch.tensor([[0, 1, 0, 1, 1, 0]])
    positions = torch.tensor([[0, 0, 1, 1, 2, 2]])
    with torch.no_grad():
        logits = model.logits(ids, documents=documents, positions=positions)[0]
        for number in (0, 1):
            alone = model.logits(ids[documents == number][None])[0]
            torch.testing.assert_close(logits[documents[0] == number], alone, rtol=0, atol=1e-12)
