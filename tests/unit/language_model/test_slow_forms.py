"""From Python too a form is bounded in time: one that is slow is refused, and ordinary ones answer as before."""

import os
import signal
import time
from contextlib import suppress
from typing import Any

import pytest

from orrery.errors import UsageError
from orrery.generation.form_process import BEGINNING
from orrery.generation.forms_apart import FormedApart
from orrery.generation.grammar import Form, Formed
from orrery.generation.vocabulary import TokenVocabulary
from orrery.language_model import guides
from orrery.language_model.guides import held
from orrery.language_model.load import load
from orrery.language_model.model import LanguageModel
from slow_requests import patterns
from tiny_models import saved

# What one process compiles for seconds, each in its way.
SLOW = [*(pattern for pattern in patterns() if pattern.startswith("((") and "1000" in pattern)]
ORDINARY: list[dict[str, Any]] = [
    {"regex": "ab{2,4}c|x*"}, {"regex": r"\d{4}-\d{2}"}, {"regex": ""}, {"regex": "a"}, {"regex": "é+"},
    {"json_schema": {}}, {"json_schema": {"enum": ["a", "ab"]}}, {"json_schema": {"type": "integer", "minimum": 10}},
    {"json_schema": {"type": "array", "items": {"type": "boolean"}, "maxItems": 3}},
    {"grammar": 'start: a | "x"\na: "(" start ")"\n'}, {"grammar": "start: A+\nA: /[ab]/\n"},
]  # fmt: skip


@pytest.fixture(scope="module")
def lm(tmp_path_factory: pytest.TempPathFactory) -> LanguageModel:
    return load(saved(tmp_path_factory.mktemp("lm"), "llama"), say=lambda line: None)


@pytest.mark.parametrize("number", range(len(SLOW)))
def test_a_slow_form_answers_or_is_refused_in_its_time(number: int, lm: LanguageModel) -> None:
    began = time.monotonic()
    with suppress(UsageError):
        assert lm.generate("a", regex=SLOW[number], max_new_tokens=2)
    assert time.monotonic() - began < BEGINNING + 3


def test_the_slowest_is_refused(lm: LanguageModel) -> None:
    with pytest.raises(UsageError, match=f"this form takes more than {BEGINNING:g} s to begin with"):
        lm.generate("a", json_schema={"type": "integer", "multipleOf": 9_999_991, "minimum": -(10**15)})


@pytest.mark.parametrize("number", range(len(ORDINARY)))
def test_an_ordinary_form_has_the_answers_that_it_has_here(
    number: int, lm: LanguageModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    how: dict[str, Any] = {"max_new_tokens": 12, "seed": 3, "temperature": 1.5, **ORDINARY[number]}
    prompts = ["a", "the cat", "a"]
    answers = lm.generations(prompts, **how)
    monkeypatch.setattr(guides, "_forms", lambda: Here())
    wanted = lm.generations(prompts, **how)
    assert [(one.text, one.ids, one.finish_reason) for one in answers] == [
        (one.text, one.ids, one.finish_reason) for one in wanted
    ]


class Here:
    """Holds forms in this process."""

    def begin(self, form: Form, vocabulary: Any) -> Any:
        return Formed.begin(form, vocabulary).copy


def test_the_second_form_begins_at_once(lm: LanguageModel) -> None:
    lm.generate("a", regex="a", max_new_tokens=2)
    began = time.monotonic()
    for number in range(10):
        lm.generate("a", regex=f"[ab]{{{number + 1}}}", max_new_tokens=2)
    assert time.monotonic() - began < 5  # about 0.02 s each


def vocabulary(lm: LanguageModel) -> TokenVocabulary:
    tokenizer = lm.tokenizer
    assert tokenizer is not None
    return guides._vocabulary(tokenizer, frozenset({tokenizer.special("end")}))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_a_process_that_was_forked_has_forms_of_its_own(lm: LanguageModel) -> None:
    own = vocabulary(lm)
    guide, ours = held(Form(regex="[ab]{3}"), own)(), guides._forms()
    child = os.fork()
    if child == 0:  # torch itself does not bear to be forked: only guides are asked here
        code = 1
        try:
            signal.alarm(20)
            code = 0 if guides._forms() is not ours and held(Form(regex="ab"), own)().allowed().any() else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert guides._forms() is ours
    guide.push(int(guide.allowed().nonzero()[0, 0]))
    assert guide.allowed().any()
    assert held(Form(regex="ab"), own)().allowed().any()


def test_what_holds_a_form_is_another_process(lm: LanguageModel) -> None:
    assert isinstance(held(Form(regex="ab"), vocabulary(lm))(), FormedApart)
