"""How to write is declared once: a line of one file is a setting of every door, refused by the same words."""

import json
import os
import subprocess
import sys
import typing
from inspect import signature
from pathlib import Path

import pytest

import orrery
from orrery.errors import UsageError
from orrery.generation.samplers import sampler
from orrery.language_model.model import LanguageModel
from orrery.recipes.generation import GenerationSettings
from orrery.schema import writing
from orrery.schema.writing import DRAWING, SETTINGS, at
from orrery.serving.schema.completions import CompletionRequest
from orrery.tasks.pipelines._writing import WritingSettings
from tiny_models import TOKENIZER, saved

ROOT = Path(__file__).parents[3]
LIKED = 33
LINE = """
    liking: Annotated[
        float | None,
        About("Is added to one logit.", least=0, most=100, off=(0,), filter="liking:Liking", foreign=False),
    ]
"""
FILTER = f"""
import torch

class Liking:
    def __init__(self, value):
        self.value = value

    def __call__(self, logits_BV, history):
        return logits_BV.index_add(1, torch.tensor([{LIKED}]), torch.full((len(logits_BV), 1), self.value))
"""


@pytest.fixture(scope="module")
def made_up(tmp_path_factory):
    """What a program finds whose ``schema/writing.py`` has one line more; all other files are the real ones."""
    folder = tmp_path_factory.mktemp("made_up")
    package = folder / "orrery"
    (package / "schema").mkdir(parents=True)
    for below in ("", "schema"):
        for one in (Path(orrery.__file__).parent / below).iterdir():
            if one.name not in ("schema", "writing.py", "__pycache__"):
                (package / below / one.name).symlink_to(one)
    head, group, rest = Path(writing.__file__).read_text().partition("class Form(TypedDict")
    (package / "schema" / "writing.py").write_text(f"{head.rstrip()}{LINE}\n\n{group}{rest}")
    (folder / "liking.py").write_text(FILTER)
    model = saved(folder / "model", "llama")
    words = [sys.executable, str(Path(__file__).parent / "made_up_setting.py"), str(model), str(ROOT)]
    done = subprocess.run(words, env={**os.environ, "PYTHONPATH": str(folder)}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("door", ["python", "pipeline", "http", "recipe", "flag"])
def test_a_setting_of_one_file_is_followed_at_every_door(made_up, door):
    assert made_up["doors"][door][0] == {"text": TOKENIZER.decode([LIKED] * 3)}


@pytest.mark.parametrize("door", ["python", "pipeline", "http", "recipe"])
def test_a_setting_of_one_file_is_refused_by_the_same_words(made_up, door):
    assert "liking = 101.0 is not possible: it must be from 0 to 100" in made_up["doors"][door][1]["refused"]


def test_a_setting_of_one_file_is_shown(made_up):
    assert "out of range" in made_up["doors"]["flag"][1]["refused"]
    assert "liking" in made_up["signature"]
    assert "liking: is added to one logit." in made_up["help"]
    assert "| `liking` | Is added to one logit | from 0 to 100 | everywhere |" in made_up["table"]


PYDANTIC = {"recipe": GenerationSettings, "pipeline": WritingSettings, "http": CompletionRequest}
WRONG = {
    "temperature": -1.0, "top_k": -2, "top_p": 0.0, "min_p": 1.5, "typical_p": 0.0, "logit_bias": {3: 10_001.0},
    "repetition_penalty": 0.0, "repetition_window": 0, "presence_penalty": -10_001.0, "frequency_penalty": 10_001.0,
}  # fmt: skip


@pytest.mark.parametrize("name", DRAWING)
def test_what_is_out_of_range_is_refused_everywhere_by_the_same_words(name):
    with pytest.raises(UsageError) as error:
        sampler(**{name: WRONG[name]})
    words = f"{error.value.message}: {error.value.hint}"
    for door, kind in PYDANTIC.items():
        prompt = {"prompt": "a"} if door == "http" else {}
        with pytest.raises(ValueError, match=name) as refused:
            kind(**{name: WRONG[name]}, **prompt)
        assert words in str(refused.value)


@pytest.mark.parametrize("value", [0, -1])
def test_no_limit_of_tokens_is_one_thing_everywhere(value):
    assert sampler(temperature=1.0, top_k=value).filters == sampler(temperature=1.0).filters
    assert GenerationSettings(top_k=value).said == {"top_k": 0}
    assert WritingSettings(top_k=value).top_k == CompletionRequest(prompt="a", top_k=value).top_k == 0


def test_every_door_has_the_settings_that_are_said_there():
    for door, kind in PYDANTIC.items():
        own = set(kind.model_fields) & set(SETTINGS)
        assert own == set(at(door)), door


@pytest.mark.parametrize("method", ["generate", "search", "translate", "tree", "speculate", "reply", "generations"])
def test_what_a_method_spells_out_is_as_declared(method):
    """An argument that stands in a signature by itself has the type of its line in ``schema/writing.py``."""
    own = getattr(LanguageModel, method)
    hints = typing.get_type_hints(own)
    shared = set(signature(own).parameters) & set(SETTINGS)
    assert shared
    for name in shared & set(hints):
        kinds = {kind for kind in typing.get_args(hints[name]) or (hints[name],) if kind is not type(None)}
        setting = SETTINGS[name]
        wanted = {int} if setting.whole else {float, int} if setting.number else None
        assert wanted is None or kinds == wanted, name
        assert "python" in setting.about.doors, name


def test_a_setting_of_drawing_says_what_follows_it():
    followed = {beside for name in DRAWING for beside in SETTINGS[name].about.beside}
    assert all(SETTINGS[name].about.filter or name in followed for name in DRAWING)
