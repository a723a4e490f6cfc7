"""No token sees the future: whatever positions and masks a call is given, it is refused or looks back only."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from cover import specs
from orrery.errors import UsageError
from orrery.families import names
from orrery.laws.models import VOCABULARY, TargetModel, random_ids, tiny
from orrery.models.decoder import Decoder
from orrery.nn.cache.kinds import cache_for
from properties.representatives import CAUSAL, WRITERS

LENGTH = 8
EVERY = [name for name, spec in specs().items() if spec.writes]

rising = st.lists(st.integers(0, 30), min_size=LENGTH, max_size=LENGTH, unique=True).map(sorted)
counted = st.integers(0, 9).map(lambda first: list(range(first, first + LENGTH)))
restarted = st.integers(1, LENGTH - 1).map(lambda cut: [*range(cut), *range(LENGTH - cut)])
anything = st.lists(st.integers(0, 12), min_size=LENGTH, max_size=LENGTH)
rows_of_positions = st.one_of(st.none(), counted, rising, restarted, anything)
rows_of_documents = st.one_of(
    st.none(),
    st.lists(st.integers(-1, 2), min_size=LENGTH, max_size=LENGTH).map(sorted),
    st.lists(st.integers(0, 1), min_size=LENGTH, max_size=LENGTH),
)
rows_of_real = st.one_of(
    st.none(),
    st.integers(1, LENGTH).map(lambda n: [i < n for i in range(LENGTH)]),
    st.integers(1, LENGTH).map(lambda n: [i >= LENGTH - n for i in range(LENGTH)]),
    st.lists(st.booleans(), min_size=LENGTH, max_size=LENGTH),
)


def as_row(values):
    return None if values is None else torch.tensor([values])


@pytest.mark.parametrize("family", [*CAUSAL, *WRITERS])
@given(positions=rows_of_positions, documents=rows_of_documents, real=rows_of_real, seed=st.integers(0, 999))
@torch.no_grad()
def test_no_later_token_moves_an_earlier_one(family, positions, documents, real, seed):
    model = tiny(family)
    documents = None if isinstance(model, TargetModel) else documents  # targets are not packed: each row has one source
    call = {"positions": as_row(positions), "real": as_row(real)}
    call |= {} if documents is None else {"documents": as_row(documents)}
    ids = random_ids(1, LENGTH, seed=seed)
    try:
        before = model.logits(ids, **call)
    except UsageError:
        return
    keep = call["real"] if real is not None else torch.ones(1, LENGTH, dtype=torch.bool)
    keep = keep if documents is None else keep & (call["documents"] >= 0)
    for place in range(1, LENGTH):
        other = ids.clone()
        other[0, place:] = (ids[0, place:] + 1 + seed % 7) % VOCABULARY
        seen = keep[0, :place]
        torch.testing.assert_close(
            model.logits(other, **call)[0, :place][seen], before[0, :place][seen], rtol=0, atol=1e-12
        )


def test_every_family_that_has_a_future_is_among_them():
    assert [name for name in names() if isinstance(tiny(name), Decoder | TargetModel)] == EVERY


@pytest.mark.parametrize("family", EVERY)
@torch.no_grad()
def test_positions_that_do_not_rise_are_refused_without_documents(family):
    model, ids = tiny(family), random_ids(2, LENGTH)
    for row in ([0, 1, 2, 3, 0, 1, 2, 3], [7, 6, 5, 4, 3, 2, 1, 0], [0, 1, 2, 2, 3, 4, 5, 6]):
        positions = torch.tensor([row])
        with pytest.raises(UsageError, match="do not rise"):
            model.logits(ids, positions=positions)
        with pytest.raises(UsageError, match="do not rise"):
            model.hidden(ids, positions=positions.expand(2, -1), real=torch.ones(2, LENGTH, dtype=torch.bool))


@pytest.mark.parametrize("family", CAUSAL)
@torch.no_grad()
def test_packed_documents_are_counted_and_a_document_may_not_go_back(family):
    model, ids = tiny(family), random_ids(1, LENGTH)
    documents = torch.tensor([[0, 0, 0, 1, 1, 2, -1, -1]])
    positions = torch.tensor([[0, 1, 2, 0, 1, 0, 0, 0]])
    given = model.logits(ids, documents=documents, positions=positions, real=documents >= 0)[:, :6]
    torch.testing.assert_close(model.logits(ids, documents=documents)[:, :6], given, rtol=0, atol=1e-12)
    with pytest.raises(UsageError, match="do not rise"):
        model.logits(ids, documents=documents, positions=torch.tensor([[0, 1, 2, 0, 0, 0, 0, 0]]))
    with pytest.raises(UsageError, match="in several pieces"):
        model.logits(ids, documents=torch.tensor([[0, 0, 1, 1, 0, 0, 2, 2]]))


@pytest.mark.parametrize("family", CAUSAL)
@torch.no_grad()
def test_a_cached_row_counts_its_tokens_itself(family):
    model, ids = tiny(family), random_ids(2, 5)
    cache = cache_for(model.stack.masks, 2, 12)
    model.stack(*model.prepare(ids, positions=torch.arange(5)[None], cache=cache))
    with pytest.raises(UsageError, match="counts its tokens itself"):
        model.prepare(ids, positions=torch.arange(5)[None], cache=cache)
    with pytest.raises(UsageError, match="counts its tokens itself"):
        model.prepare(ids, positions=torch.arange(9, 14)[None], cache=cache)
    model.prepare(ids, positions=torch.arange(5, 10)[None], cache=cache)


@pytest.mark.parametrize("family", ["gpt2", "llama", "gemma2", "bert", "modernbert"])
@torch.no_grad()
def test_padding_inside_a_row_is_refused_unless_the_positions_say_where_its_tokens_stand(family):
    model, ids = tiny(family), random_ids(1, LENGTH)
    real = torch.tensor([[False, True, True, False, True, True, True, False]])
    with pytest.raises(UsageError, match="padding inside a row: row 0, token 4"):
        model.logits(ids, real=real)
    logits = model.logits(ids, real=real, positions=torch.arange(LENGTH)[None])
    changed = ids.masked_fill(~real, 3)
    assert torch.equal(model.logits(changed, real=real, positions=torch.arange(LENGTH)[None])[real], logits[real])


@pytest.mark.parametrize("family", ["mistral", "gemma2", "modernbert"])
def test_positions_with_gaps_are_refused_under_a_window(family):
    model, ids = tiny(family), random_ids(1, LENGTH)
    with pytest.raises(UsageError, match="positions with gaps"):
        model.logits(ids, positions=torch.tensor([[0, 1, 2, 3, 9, 10, 11, 12]]))


def test_numbers_that_are_no_positions_are_refused():
    model, ids = tiny("llama"), random_ids(2, LENGTH)
    for fault, call in {
        "below zero": {"positions": torch.arange(-1, LENGTH - 1)[None]},
        "no mask with a prefix": {"prefix": torch.tensor([3, 3])},
    }.items():
        with pytest.raises(UsageError, match=fault):
            model.logits(ids, **call)
