"""The law of ranks holds, fails on each of several faults, and says so where a process is lost."""

import pytest
import torch

import broken_ranks
from orrery.errors import RunError
from orrery.laws import ranks
from orrery.laws.evidence import CannotRunError


def test_the_law_holds_and_sees_what_is_shared_wrongly(monkeypatch: pytest.MonkeyPatch) -> None:
    found = ranks.outcome(broken_ranks.right_and_wrong)
    wrong = {what: value for (what, _), value in found.items() if what in broken_ranks.FAULTS}
    assert len(wrong) == len(broken_ranks.FAULTS)
    assert min(wrong.values()) > 1e-3, wrong
    right = {each: value for each, value in found.items() if each[0] not in wrong}
    monkeypatch.setattr(ranks, "outcome", lambda measure: right)
    told = list(ranks.check())
    assert len(told) == len(ranks.FAMILIES) * len(ranks.LAYOUTS) - len(ranks.LACKS)
    assert all(each.passed for each in told), told
    assert {each.family for each in told} == set(ranks.FAMILIES)


@pytest.mark.long
def test_two_processes_are_started() -> None:
    assert all(each.passed for each in ranks.check())


@pytest.mark.long
def test_a_lost_process_and_a_torch_without_gloo_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(RunError, match="ended before it was done"):
        ranks.outcome(broken_ranks.lost)
    monkeypatch.setattr(torch.distributed, "is_gloo_available", lambda: False)
    with pytest.raises(CannotRunError, match="gloo"):
        list(ranks.check())
