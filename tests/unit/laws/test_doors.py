"""The law of the doors holds, and sees a door that reads a text otherwise, in whichever way."""

import dataclasses
from collections.abc import Callable
from importlib import import_module
from typing import Any

import pytest

from orrery.errors import OrreryError
from orrery.language_model import cloze, likelihoods, texts
from orrery.laws import doors
from orrery.laws.evidence import CannotRunError
from orrery.text.tokenizer import Tokenizer


@pytest.mark.parametrize("family", ["llama", "gpt2", "mamba", "t5", "transformer", "bert"])
def test_holds(family: str) -> None:
    evidence = list(doors.check(family))
    assert len(evidence) == len(doors.CONVENTIONS)
    assert [one for one in evidence if not one.passed] == []
    assert {(one.law, one.family) for one in evidence} == {("doors", family)}


def test_a_model_of_images_has_no_door_for_a_text() -> None:
    with pytest.raises(CannotRunError):
        list(doors.check("vit"))


def _failed(family: str = "llama") -> set[str]:
    """Return the doors that the law names in what failed."""
    names = [one.name for one in doors.check(family) if not one.passed]
    return {door for name in names for door in name.partition("otherwise: ")[2].split(", ")}


BROKEN = {
    "language_model.sources:prompts": {"generate", "speculate", "contrastive_search", "generations", "search", "tree"},
    "language_model.trace:prompt": {"trace"},
    "language_model.outputs:read": {"score"},
    "language_model.outputs:before_text": {"score"},
    "language_model.cloze:before_text": {"cloze"},
    "language_model.likelihoods:before_text": {"likelihoods", "text_likelihoods"},
    "language_model.likelihoods:opening_of": {"likelihoods behind a context"},
    "evaluation.perplexity:before_text": {"perplexity"},
    "tasks.text_generation:whole": {"pipeline"},
}
"""Places where a door takes its ids from the one way, and the doors that one other id there is seen behind."""


def _with_one_more(read: Callable[..., Any]) -> Callable[..., Any]:
    """Return a way from text to ids that puts one more id behind them."""

    def reads(*given: Any, **settings: Any) -> Any:
        outcome = read(*given, **settings)
        if not isinstance(outcome, list):
            return dataclasses.replace(outcome, ids=[*outcome.ids, 9])
        return [[*row, 9] for row in outcome] if outcome and isinstance(outcome[0], list) else [*outcome, 9]

    return reads


@pytest.mark.parametrize("place", BROKEN)
def test_a_door_with_a_way_of_its_own_is_the_one_that_is_named(place: str, monkeypatch) -> None:
    module = import_module(f"orrery.{place.partition(':')[0]}")
    name = place.partition(":")[2]
    monkeypatch.setattr(module, name, _with_one_more(getattr(module, name)))
    assert _failed() == BROKEN[place]


def test_every_door_of_a_decoder_is_broken_by_one_of_them() -> None:
    decoder = {*doors.WRITING, *doors.DECODING, *doors.PREDICTING, *doors.BEHIND, *doors.IN_A_ROW, "trace"}
    assert set.union(*BROKEN.values()) == decoder


def test_prompts_without_the_tokens_around_them_are_seen(monkeypatch) -> None:
    monkeypatch.setattr(texts, "framed", lambda stored, ids, *cut: ids)
    assert _failed() >= {"generate", "generations", "search", "tree", "speculate", "contrastive_search", "trace"}
    assert "pipeline" not in _failed()


def test_likelihoods_behind_no_start_token_are_seen(monkeypatch) -> None:
    monkeypatch.setattr(likelihoods, "opening_of", lambda tokenizer: [])
    assert _failed() == {"likelihoods behind a context"}


def test_a_start_token_that_is_put_twice_is_seen(monkeypatch) -> None:
    twice = lambda stored: [*texts.opening_of(stored.tokenizer), *texts.opening_of(stored.tokenizer)]  # noqa: E731
    monkeypatch.setattr(cloze, "before_text", twice)
    assert _failed() == {"cloze"}


def test_a_pipeline_with_ids_of_its_own_is_seen(monkeypatch) -> None:
    encode = Tokenizer.around
    monkeypatch.setattr(Tokenizer, "around", lambda self, *ids: encode(self, [9, *ids[0]], *ids[1:]))
    assert "pipeline" in _failed("bert")


def test_a_door_that_fails_is_no_door_that_passes(monkeypatch) -> None:
    def refused(*given: object) -> None:
        raise OrreryError("no", "none")

    monkeypatch.setattr(texts, "encode", refused)
    with pytest.raises(OrreryError):
        list(doors.check("llama"))
