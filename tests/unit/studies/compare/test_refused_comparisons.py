"""What cannot be compared, swept, probed or gone on with: what is wrong with it, and what to do."""

import json
from dataclasses import replace
from types import SimpleNamespace

import pytest

from orrery.errors import DataError, RunError, UsageError
from orrery.studies.compare import run as lab
from orrery.studies.compare import texts
from orrery.studies.compare.budgets import Budget
from orrery.studies.compare.findings import Comparison, SweepResult, Trial, comparison_from
from orrery.studies.compare.models import MODELS, refuse_unknown
from orrery.studies.compare.plan import ComparisonPlan, ProbeOptions
from orrery.studies.compare.probes.table import PROBES, chosen
from orrery.studies.compare.sweep import Sweep
from orrery.studies.compare.trials import Trials
from orrery.training.progress import Silent
from stand_ins import stand_in
from training_toy import toy_recipe

MINUTES = (Budget(1, "steps"), Budget(2, "steps"))


def plan(**changed):
    return replace(ComparisonPlan(toy_recipe(), ("lstm", "gru"), 20_000, MINUTES, (0, 1)), **changed)


def other(**dotted):
    return {"recipes": (toy_recipe(name="own", **dotted),)}


def choosing(section, **values):
    """Return a recipe of its own that chooses on the text held back, which a recipe without one could not say."""
    recipe = toy_recipe(name="own")
    changed = getattr(recipe, section).model_copy(update=values)
    return {"recipes": (recipe.model_copy(update={section: changed}),)}


REFUSED = {
    "no models": (lambda: plan(models=()).check(), "cannot compare no models", "give models with different names"),
    "one name twice": (
        lambda: plan(recipes=(toy_recipe(name="gru"),)).check(),
        "cannot compare lstm, gru, gru", "give models with different names"),
    "a seed twice": (lambda: plan(seeds=(1, 1)).check(), "--seeds: one of 1, 1 is named twice", "name each once"),
    "a budget twice": (
        lambda: plan(budgets=(MINUTES[0], MINUTES[0])).check(),
        "budgets: one of 1, 1 is named twice", "name each once"),
    "another text": (
        lambda: plan(**other(data__train="another")).check(),
        "own: its data is not that of toy", "only models on the same data can be compared"),
    "another tokenizer": (
        lambda: plan(**other(tokenizer__kind="word")).check(),
        "own: its tokenizer is not that of toy", "only models on the same tokenizer can be compared"),
    "the best checkpoint": (
        lambda: plan(**choosing("training", final="best")).check(),
        "own: training.final best chooses on the text that the table is measured on",
        "leave it out of a recipe that is compared"),
    "a patience": (
        lambda: plan(**choosing("evaluation", patience=2)).check(),
        "own: evaluation.patience chooses on the text that the table is measured on",
        "leave it out of a recipe that is compared"),
    "no warm-ups": (
        lambda: plan(sweep=Sweep(warmups=())).check(),
        "--warmups: () are not different", "give parts of a training, such as 0.05 0"),
    "a warm-up below 0": (
        lambda: Sweep(warmups=(-0.1,)).check(),
        "--warmups: -0.1 is no part of a training", "give parts from 0 to below 1"),
    "no share": (
        lambda: Sweep(share=0.0).check(),
        "--sweep-share: 0 is no part of the budget", "give one above 0, at most 1"),
    "an unknown model": (
        lambda: refuse_unknown(["bert"]),
        "--models: 'bert' is not a model that can be compared", f"there are: {', '.join(MODELS)}"),
    "a model twice": (
        lambda: refuse_unknown(["lstm", "lstm"]), "--models: 'lstm' is twice", f"there are: {', '.join(MODELS)}"),
    "an unknown probe": (
        lambda: chosen("memory,speed"),
        "--probes: 'speed' is no probe", f"there are: all, none, {', '.join(PROBES)}"),
    "a probe twice": (
        lambda: chosen("memory,recall,memory"),
        "--probes: 'memory' is named twice", f"there are: all, none, {', '.join(PROBES)}"),
}  # fmt: skip


@pytest.mark.parametrize("what", REFUSED)
def test_what_cannot_be_compared_is_refused_with_what_to_do(what):
    ask, message, hint = REFUSED[what]
    with pytest.raises(UsageError) as refused:
        ask()
    assert (refused.value.message, refused.value.hint) == (message, hint)


def test_what_can_be_compared_is_not_refused():
    plan().check()
    plan(models=(), **other()).check()
    plan(sweep=Sweep(warmups=(0.0, 0.99), share=1.0)).check()
    refuse_unknown(MODELS)


def test_a_text_of_which_nothing_is_held_back_is_refused(tmp_path, monkeypatch):
    source = SimpleNamespace(held_back=[SimpleNamespace(text="")])
    monkeypatch.setattr(texts.TextSource, "read", lambda settings: source)
    with pytest.raises(DataError, match="no text is held back to measure on") as refused:
        texts.read(toy_recipe(), tmp_path, print)
    assert refused.value.hint == "give --data.split '{tail: 0.1}', or more documents"


def test_a_text_too_small_for_the_vocabulary_gives_what_it_can_and_that_is_said(tmp_path):
    (tmp_path / "text.txt").write_text("the cat sat on the mat . the dog sat on the rug .\n" * 50)
    recipe = toy_recipe(
        data__train=str(tmp_path / "text.txt"), data__split={"tail": 0.1},
        tokenizer__kind="byte_bpe", tokenizer__vocabulary=2048,
    )  # fmt: skip
    said = []
    size = texts.read(recipe, tmp_path / "tokenizer", said.append).tokenizer.size
    assert 256 < size < 2048
    assert said[1:] == [f"the text gives {size:,} tokens, fewer than tokenizer.vocabulary, 2,048"]


def noted(folder, kept, **corpus):
    """Leave what an earlier call of a plan would, on some text."""
    compared = Comparison(kept.settings(), {"fingerprint": "a", **corpus})
    lab.kept(folder).result.write_text(json.dumps(compared.as_json()))
    return compared


def earlier(folder, asked):
    return lab.kept(folder).earlier(comparison_from, asked.settings(), lab.GROWING)


def test_another_comparison_is_not_gone_on_with(tmp_path):
    assert earlier(tmp_path, plan()) is None
    noted(tmp_path, plan())
    assert earlier(tmp_path, plan()).corpus == {"fingerprint": "a"}
    with pytest.raises(UsageError, match="--resume: parameters was 20000 and is now 30000"):
        earlier(tmp_path, plan(parameters=30_000))
    for content in ("{", "[]", "{}", '{"settings": {}}'):
        lab.kept(tmp_path).result.write_text(content)
        with pytest.raises(UsageError, match=r"is not of a comparison: ") as refused:
            earlier(tmp_path, plan())
        assert refused.value.hint == "choose another folder with --output"


def test_another_text_is_not_gone_on_with(tmp_path):
    before = noted(tmp_path, plan())
    with pytest.raises(DataError, match="the text is not the one that this comparison began with") as refused:
        lab.begin(lab.kept(tmp_path), Comparison({}, {"fingerprint": "b"}), before)
    assert refused.value.hint == "restore it, or begin again"


def test_a_sweep_of_which_every_trial_came_apart_is_an_error(tmp_path):
    swept = SweepResult([Trial(0.1, 0.05, 1, 1, 0.1, None)])
    trials = Trials(
        toy_recipe(), Sweep(rates=1, warmups=(0.05,)), Budget(1, "steps"), 1.0, stand_in(texts.Texts), tmp_path
    )
    with pytest.raises(RunError, match="toy: no trial of its sweep has a loss") as refused:
        trials.run(swept, print, lambda label, steps: Silent(), print)
    assert refused.value.hint == "give a lower rate to begin with, or --sweep 0"


def test_a_plan_begins_without_sweeps_of_recipes_hand_set_rates_and_probes():
    settings = plan().settings()
    assert (settings["sweep"], settings["sweep_recipes"], settings["hand_set"]) == (None, False, False)
    assert (settings["probes"], settings["probe_steps"]) == ([], ProbeOptions().steps)
    assert (settings["models"], settings["seeds"], settings["budgets"]) == (["lstm", "gru"], [0, 1], [1, 2])
    assert plan(**other()).settings()["models"] == ["lstm", "gru", "own"]
