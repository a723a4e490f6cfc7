"""The way of a token: its vectors at every station, whom its heads look at, and what is answered."""

import pytest
import torch

from orrery.errors import UsageError
from orrery.page.views._view import shown
from orrery.page.views.way import HEADS, LOOKED
from views_toy import subject_of


@pytest.mark.parametrize("family", ["gpt2", "t5", "mamba", "rnnsearch", "vit", "gptj"])
def test_stations_are_the_stream_and_what_is_added(family):
    subject = subject_of(family)
    payload = shown("way", subject, {"position": 1})
    seen, stations = subject.seen, payload.facts["stations"]
    assert stations[0]["kind"] == "looked_up"
    for n, station in enumerate(stations):
        vector = seen[station["key"]][0, 1]
        assert station["length"] == pytest.approx(float(vector.norm()), rel=1e-5)
        assert torch.equal(payload.tensors[str(n)], vector)  # so narrow that all its numbers are drawn
    assert any(station["key"].endswith(".added") for station in stations)
    assert payload.checks
    assert all(check.passed for check in payload.checks)


def test_heads_look_where_the_pattern_is_greatest():
    subject = subject_of("gpt2")
    payload = shown("way", subject, {"position": 3})
    (heads,) = [one["heads"] for one in payload.facts["stations"] if one["key"] == "blocks.1.attention.added"]
    pattern_HS = subject.seen["blocks.1.attention.pattern"][0, :, 3]
    assert len(heads) == min(HEADS, len(pattern_HS))
    for head, row_S in zip(heads, pattern_HS, strict=True):
        most = row_S.topk(LOOKED)
        assert [place for place, _ in head] == most.indices.tolist()
        assert [weight for _, weight in head] == pytest.approx(most.values.tolist())


def test_the_end_is_what_the_model_answers():
    subject = subject_of("gpt2")
    said = shown("way", subject, {"position": 2}).facts["answer"]
    shares = subject.seen.first.logits[0, 2].double().softmax(-1)
    assert said["of"] == "tokens"
    assert [one["p"] for one in said["said"]] == pytest.approx(shares.topk(len(said["said"])).values.tolist())
    classes = shown("way", subject_of("vit"), {}).facts["answer"]
    assert classes["of"] == "classes"


def test_a_place_outside_is_refused():
    with pytest.raises(UsageError, match="position 9 of 4"):
        shown("way", subject_of("gpt2"), {"position": 9})
