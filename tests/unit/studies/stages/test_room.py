"""Prompts of stages keep room for their answers, whatever the context; what is finished, and which data there are."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from orrery.errors import UsageError
from orrery.language_model.model import LanguageModel
from orrery.recipes.config import Recipe
from orrery.studies.stages import measure, plan, run, talks
from orrery.studies.stages.folder import StagesFolder
from orrery.studies.stages.recipe import Stage
from orrery.text.chat.render import ChatTemplate
from stand_ins import stand_in


@pytest.mark.parametrize(("answer", "kept"), [(4, 6), (9, 1), (10, 1), (30, 1)])
def test_a_prompt_loses_its_beginning_and_never_all_of_it(answer: int, kept: int, monkeypatch) -> None:
    rows = {1: list(range(20)), 2: [7]}
    monkeypatch.setattr(measure, "template_of", lambda lm: None)
    monkeypatch.setattr(measure, "render_prompt", lambda template, prompt: rows[prompt])
    material = stand_in(measure.Material, settings=SimpleNamespace(max_new_tokens=answer), prompts=[1, 2])
    prompts = measure.prompt_rows(stand_in(LanguageModel, context=10), material)
    assert prompts == [list(range(20))[-kept:], [7]]


@pytest.mark.parametrize("room", [0, 4, 9, 10, 30])
def test_a_talk_forgets_its_earliest_turns(room: int, monkeypatch) -> None:
    monkeypatch.setattr(talks, "render_prompt", lambda template, talk: list(range(3 * len(talk.messages))))
    said = [{"role": role, "content": "x"} for role in ("user", "assistant", "user", "assistant", "user")]
    talk = stand_in(talks.Talk, messages=list(said), forgotten=0)
    ids = talks._fitting(stand_in(LanguageModel, context=10), stand_in(ChatTemplate), talk, room)
    assert 0 < len(ids) <= max(1, 10 - room)
    assert ids[-1] == 3 * len(talk.messages) - 1
    assert talk.messages == said[2 * talk.forgotten :]


def test_a_stage_without_known_data_is_refused_by_its_name(tmp_path: Path) -> None:
    recipe = SimpleNamespace(data=SimpleNamespace(kind="nothing"))
    stage = stand_in(Stage, name="sft", recipe=lambda folder: recipe)
    with pytest.raises(UsageError, match=r"stages.sft: no data of kind nothing"):
        plan._lines(stage, tmp_path)


@pytest.mark.parametrize(("weights", "final", "done"), [(None, True, False), ("x", False, False)])
def test_a_stage_without_its_final_model_is_not_finished(weights, final, done, tmp_path: Path) -> None:
    if final:
        (tmp_path / "final").mkdir()
    state = {"sft": SimpleNamespace(begun={}, weights=weights)}
    folder = stand_in(
        StagesFolder,
        state=lambda: state,
        holds=lambda stage: True,
        replaced=lambda stage: False,
        begun=lambda stage: {},
        of=lambda stage: tmp_path,
        path=tmp_path,
    )
    assert run.finished(folder, stand_in(Stage, name="sft"), stand_in(Recipe)) is done
