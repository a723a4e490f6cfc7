"""Mixers that read backwards: every document by itself, from its end."""

from dataclasses import replace

import pytest
import torch

from orrery.errors import UsageError
from orrery.families import load_family
from orrery.models.initialise import initialise
from orrery.nn.linear.backward import Backward, turned
from orrery.nn.recurrent.lstm import LSTM
from orrery.nn.segments import PackedSegments


def test_each_document_is_turned_by_itself_and_padding_stays():
    documents = torch.tensor([[0, 0, 0, 1, 1, -1], [-1, 2, 2, 3, 2, 3], [-1, -1, -1, -1, -1, 4]])
    x = torch.arange(18.0).view(3, 6, 1)
    reversed_rows = turned(x, PackedSegments.of(documents >= 0, documents))
    expected = [[2, 1, 0, 4, 3, 5], [6, 10, 8, 11, 7, 9], [12, 13, 14, 15, 16, 17]]
    assert reversed_rows[..., 0].tolist() == expected
    assert torch.equal(turned(reversed_rows, PackedSegments.of(documents >= 0, documents)), x)
    assert torch.equal(turned(x, None), x.flip(1))


@pytest.mark.parametrize("form", ["step", "parallel", "chunked"])
def test_an_encoder_sees_a_text_from_both_ends(form):
    rules = load_family("bimamba")
    model = rules.spec(rules.TINY).build(0).double()
    initialise(model, 2, seed=0)
    ids = torch.randint(61, (1, 9), generator=torch.Generator().manual_seed(0))
    seen = model.logits(ids, scan=form)
    for place in (0, 4, 8):
        other = ids.clone()
        other[0, place] = (ids[0, place] + 1) % 61
        assert ((model.logits(other, scan=form) - seen).abs().amax(-1) > 1e-9).all()
    # Turned around, with the two directions in each other's place, a text says the same.
    for block in model.stack.blocks:
        onward, backward = block.mixer.branch.left_to_right, block.mixer.branch.right_to_left.mixer
        kept = {name: value.clone() for name, value in onward.state_dict().items()}
        onward.load_state_dict(backward.state_dict())
        backward.load_state_dict(kept)
    torch.testing.assert_close(model.logits(ids.flip(1), scan=form).flip(1), seen, rtol=0, atol=1e-9)


def test_what_cannot_be_turned_is_refused():
    with pytest.raises(UsageError, match="cannot read backwards under the mask 'past'"):
        Backward.Spec(mixer=LSTM.Spec(mask="other")).build(8)


def test_a_session_cannot_read_backwards():
    rules = load_family("lstm")
    spec = rules.spec(rules.TINY)
    residual = spec.stack.blocks[0].residuals["recurrence"]
    block = replace(
        spec.stack.blocks[0], residuals={"recurrence": replace(residual, branch=Backward.Spec(mixer=LSTM.Spec()))}
    )
    model = replace(spec, stack=replace(spec.stack, blocks=(block,))).build(0)
    with pytest.raises(UsageError, match="cannot go on from what came before"):
        model.start(torch.zeros(1, 3, dtype=torch.long), capacity=8)
