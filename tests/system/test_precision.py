"""Every family learns and writes at every precision that a recipe or a load offers."""

import pytest

from orrery.families import names
from orrery.laws import precision, runs
from orrery.laws.evidence import CannotRunError

SHORT = ("bloom", "cohere", "luong", "vit")
"""One family of each kind that failed once, and one that reads images."""


@pytest.mark.parametrize(
    "family", [name if name in SHORT else pytest.param(name, marks=pytest.mark.slow) for name in names()]
)
def test_every_family_at_every_precision(family):
    evidence = list(precision.check(family))
    assert [e.name for e in evidence if "training" in e.name] == [
        "3 training steps at float32: losses beside float32's",
        "3 training steps at bfloat16: losses beside float32's",
    ]
    assert len(evidence) == 5
    assert [e for e in evidence if not e.passed] == []


def test_a_step_that_never_comes_is_seen(monkeypatch):
    monkeypatch.setattr(precision, "losses", lambda folder: [1.0])
    precision.run.cache_clear()
    with pytest.raises(AssertionError):
        list(precision.check("gpt2"))


def test_without_the_loop_it_says_so(monkeypatch, tmp_path):
    import sys

    monkeypatch.setitem(sys.modules, "orrery.training.loop", None)
    with pytest.raises(CannotRunError, match="the training loop is not there"):
        runs.train("gpt2", tmp_path / "run", steps=1)
