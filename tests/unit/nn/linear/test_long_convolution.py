"""Systems that are kept from token to token are those of the parameters as they are."""

import pytest
import torch

from orrery.families import load_family
from orrery.models.initialise import initialise


@pytest.mark.parametrize("family", ["s4", "s4d", "hyena"])
def test_a_system_is_made_once_and_anew_when_a_parameter_changes(family):
    rules = load_family(family)
    model = rules.spec({**rules.TINY, "num_hidden_layers": 1}).build(0).double().eval()
    initialise(model, 1, seed=0)
    mixer, ids = model.stack.blocks[0].mixer.branch, torch.arange(6)[None]
    with torch.no_grad():
        first = model.logits(ids)
        assert mixer.discretised(torch.float64) is mixer.discretised(torch.float64)
        assert mixer.discretised(torch.float32) is not mixer.discretised(torch.float64)
        for parameter in mixer.parameters():
            parameter.mul_(1.1)
        changed = model.logits(ids)
        mixer._kept = None
        assert torch.equal(model.logits(ids), changed)
        assert (changed - first).abs().max() > 1e-6
    assert mixer.discretised(torch.float64) is not mixer.discretised(torch.float64)
    model.logits(ids).sum().backward()
    assert all(parameter.grad is not None for parameter in mixer.parameters())
