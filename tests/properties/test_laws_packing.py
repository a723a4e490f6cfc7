"""The laws of padding and packing over random shapes."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from orrery.laws.evidence import deviation
from orrery.laws.models import random_ids, tiny, ways_of
from properties.representatives import DECODERS, ENCODERS

lengths = st.lists(st.integers(0, 7), min_size=1, max_size=4)


@pytest.mark.parametrize("family", DECODERS + ENCODERS)
@given(lengths=lengths, before=st.integers(0, 3), after=st.integers(0, 3), data=st.data())
@torch.no_grad()
def test_padding_anywhere_changes_nothing(family, lengths, before, after, data):
    way = data.draw(st.sampled_from(list(ways_of(family).values())))
    model, total = tiny(family), before + max(lengths) + after
    if not total:
        return
    ids = random_ids(len(lengths), total)
    places = torch.arange(total)
    real = (places >= before) & (places < before + torch.tensor(lengths)[:, None])
    logits = model.logits(ids, real=real, **way)
    assert logits.isfinite().all()
    for row, keep, row_logits in zip(ids, real, logits, strict=True):
        if keep.any():
            assert deviation(row_logits[keep], model.logits(row[keep][None])[0]) < 1e-9


@pytest.mark.parametrize("family", [name for name in DECODERS + ENCODERS if name != "t5"])
@given(lengths=st.lists(st.integers(1, 7), min_size=1, max_size=5), data=st.data())
@torch.no_grad()
def test_packing_changes_nothing(family, lengths, data):
    way = data.draw(st.sampled_from(list(ways_of(family).values())))
    model, ids = tiny(family), random_ids(1, sum(lengths))
    documents = torch.repeat_interleave(torch.arange(len(lengths)), torch.tensor(lengths))[None]
    positions = torch.cat([torch.arange(length) for length in lengths])[None]
    logits = model.logits(ids, documents=documents, positions=positions, **way)
    for part, row_logits in zip(ids[0].split(lengths), logits[0].split(lengths), strict=True):
        assert deviation(row_logits, model.logits(part[None])[0]) < 1e-9
