"""What the page shows of mixers with a state: values of the trace, the channels that move, every mixer."""

import pytest
import torch

from orrery.errors import UsageError
from orrery.page.views._view import fitting, shown
from orrery.page.views.recurrence import MOST, mixers_of, moving
from views_toy import subject_of


@pytest.mark.parametrize("family", ["lstm", "mamba", "rwkv", "jamba", "gla"])
def test_the_pictures_are_values_of_the_pass(family):
    subject = subject_of(family)
    mixers = mixers_of(subject.seen)
    for number, (mixer, names) in enumerate(mixers.items()):
        payload = shown("recurrence", subject, {"mixer": number})
        assert payload.facts["mixers"][number] == mixer
        assert list(payload.tensors) == names
        assert all(check.passed for check in payload.checks)
        for name in names:
            value_LE = subject.seen[f"{mixer}.{name}"][0]
            channels = payload.facts["channels"][name]
            assert len(channels) == min(MOST, value_LE.shape[1])
            assert torch.equal(payload.tensors[name], value_LE[:, channels].T.float())


def test_mixers_are_found_in_hybrids_and_nowhere_else():
    assert list(mixers_of(subject_of("jamba").seen)) == ["blocks.0.mixer", "blocks.2.mixer"]
    assert list(mixers_of(subject_of("rwkv").seen))[:2] == ["blocks.0.time_mix", "blocks.0.channel_mix"]
    assert "recurrence" not in {view.kind for view in fitting(subject_of("gpt2"))}
    with pytest.raises(UsageError, match="there is no mixer 4"):
        shown("recurrence", subject_of("lstm"), {"mixer": 4})


def test_the_channels_are_those_that_change_most():
    value_LE = torch.stack([torch.tensor([0.0, 1.0, 2.0]) * (n % 3 == 0) for n in range(90)], 1)
    assert moving(value_LE).tolist() == sorted(moving(value_LE).tolist())
    assert all(channel % 3 == 0 for channel in moving(value_LE).tolist())
