"""The curves of what an objective reports beside its loss."""

import pytest

from orrery.reports.measures import charts


@pytest.mark.parametrize(
    ("names", "heading"),
    [(["reward", "entropy"], "Reward, divergence, length, entropy"), (["label", "place"], "Terms of the loss")],
)
def test_curves_stand_under_what_they_are(names, heading):
    records = [{"step": step, **{f"train/{name}": 1.0 / step for name in names}} for step in (1, 2)]
    assert f"<h2>{heading}</h2>" in charts(records)


def test_without_measures_there_is_no_section():
    assert charts([{"step": 1, "train/loss": 1.0}]) == ""
