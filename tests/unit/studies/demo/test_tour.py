"""The demo's tour without a training: whose folder it takes, what it asks the model, and what it says of a run."""

import json
import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from demo_toy import findings
from orrery.cli.demo import RECIPE
from orrery.data.records import Document
from orrery.errors import UsageError
from orrery.language_model.model import LanguageModel
from orrery.recipes.read import load_recipe
from orrery.runs.building import Assembled
from orrery.studies.demo import tour
from orrery.studies.demo.floors import aims, floors
from orrery.training.folder import RunFolder
from orrery.training.progress import Silent
from stand_ins import stand_in


@pytest.fixture(scope="module")
def recipe():
    return load_recipe(RECIPE, [], {})


@pytest.mark.parametrize(
    ("report", "run", "ours"),
    [
        (None, None, False),
        ("no JSON", None, False),
        ({"made_by": "orrery demo", "config_hash": "a"}, None, True),
        ({"made_by": "orrery demo", "config_hash": "a"}, {"config_hash": "a"}, True),
        ({"made_by": "orrery demo", "config_hash": "a"}, {"config_hash": "b"}, False),
        ({"made_by": "orrery demo"}, None, False),
        ({"made_by": "orrery demo"}, {}, False),
        ({"made_by": "somebody", "config_hash": "a"}, {"config_hash": "a"}, False),
        ({"config_hash": "a"}, None, False),
    ],
)
def test_a_folder_is_a_demo_s_where_its_run_is_the_one_that_the_report_is_of(report, run, ours, tmp_path):
    for name, content in (("report.json", report), (tour.RUN, run)):
        if content is not None:
            (tmp_path / name).write_text(content if isinstance(content, str) else json.dumps(content))
    assert tour.made_by_demo(tmp_path) is ours


@pytest.mark.parametrize("overwrite", [True, False])
def test_what_no_demo_wrote_is_refused_whatever_is_asked_for(overwrite, recipe, tmp_path):
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(UsageError) as refused, tour.demo_folder(tmp_path, recipe, overwrite):
        pass
    assert refused.value.message == f"{tmp_path} holds something that no demo wrote"
    assert refused.value.hint == "choose another folder with --output, or move this one away"


def test_a_new_folder_is_marked_at_once_and_then_an_earlier_demo(recipe, tmp_path):
    with tour.demo_folder(tmp_path / "new", recipe, False) as folder:
        assert folder.path == tmp_path / "new"
        assert json.loads((tmp_path / "new" / "report.json").read_text()) == tour.mark(recipe)
    assert tour.made_by_demo(tmp_path / "new")
    with pytest.raises(UsageError) as refused, tour.demo_folder(tmp_path / "new", recipe, False):
        pass
    assert refused.value.message == f"{tmp_path / 'new'} holds an earlier demo"
    assert refused.value.hint == "add --overwrite to replace it, or choose another --output"


def test_a_model_without_a_family_is_refused_before_anything_is_made(recipe, tmp_path):
    bare = recipe.model_copy(update={"model": recipe.model.model_copy(update={"family": None})})
    with pytest.raises(UsageError, match="the demo saves its model in its family's layout") as refused:
        tour.demo(bare, tmp_path / "new", print, Silent)
    assert refused.value.hint == "give the recipe a model.family"
    assert not (tmp_path / "new").exists()


def test_the_prompts_are_the_recipe_s_or_suit_the_text(recipe):
    asked = recipe.evaluation.model_copy(update={"sample": "The ring"})
    assert tour.prompts(recipe.model_copy(update={"evaluation": asked})) == ("The ring",)
    none = recipe.evaluation.model_copy(update={"sample": None})
    assert tour.prompts(recipe.model_copy(update={"evaluation": none})) == tour.PROMPTS


@pytest.mark.parametrize(("context", "tokens"), [(1000, tour.NEW_TOKENS), (50, 25)])
def test_every_prompt_is_continued_greedily_and_by_sampling_as_it_is_called(context, tokens):
    asked = []

    def generations(prompts, **settings):
        asked.append((prompts, settings))
        return [SimpleNamespace(text="text", ids=[1, 2], tokens_per_second=7.0)]

    samples = tour.write(stand_in(LanguageModel, context=context, generations=generations), ("a", "b"), 5)
    same = {"max_new_tokens": tokens, "seed": 5, "truncate": "left"}
    (temperature, top_p) = map(float, re.findall(r"[\d.]+", tour.SAMPLED))
    assert asked == [
        *(([prompt], {**same, "temperature": 0.0}) for prompt in "ab"),
        *(([prompt], {**same, "temperature": temperature, "top_p": top_p}) for prompt in "ab"),
    ]
    assert [(one.prompt, one.text, one.method, one.tokens, one.tokens_per_second) for one in samples] == [
        (prompt, "text", method, 2, 7.0) for method in (tour.GREEDY, tour.SAMPLED) for prompt in "ab"
    ]


def test_a_run_is_described_by_its_recipe_its_records_and_its_model(recipe):
    records = [{"step": 1, "tokens": 10}, {"step": 2, "tokens": 20}]
    model = SimpleNamespace(parameters=lambda: [SimpleNamespace(numel=lambda n=n: n) for n in (3, 4)])
    assembly = stand_in(Assembled, required_tokenizer=SimpleNamespace(size=300), parts=SimpleNamespace(model=model))
    folder = stand_in(RunFolder, path=Path("runs/demo"), records=lambda: records)
    described = tour.describe_run(recipe, folder, assembly, "float32", {"text": 1.0})
    assert (described.folder, described.family, described.config) == (
        "runs/demo",
        recipe.model.family,
        recipe.model.config,
    )
    assert (described.parameters, described.vocabulary, described.tokens) == (7, 300, 20)
    assert (described.steps, described.seed) == (recipe.training.steps, recipe.seed)
    assert (described.precision, described.seconds, described.records) == ("float32", {"text": 1.0}, records)


def test_a_corpus_is_described_by_its_documents_and_their_bytes(recipe):
    train, held_back = [Document("a", "ä"), Document("b", "bc")], [Document("c", "d")]
    described = tour.describe_corpus(recipe, "0" * 64, train, held_back, 9)
    assert (described.source, described.fingerprint, described.train_tokens) == (recipe.data.described, "0" * 64, 9)
    assert (described.train_documents, described.train_bytes) == (2, 4)
    assert (described.held_back_documents, described.held_back_bytes) == (1, 1)
    assert tour.content(train) == "äbc".encode()


def test_a_card_has_every_measure_by_its_name():
    made = findings("python-docs")
    card = tour.card(made)
    assert card["evaluation"] == {f"bits per byte, {one.name}": one.bits_per_byte for one in made.measures}
    assert (card["name"], card["tokens"], card["command"]) == (made.run.folder, made.run.tokens, "orrery demo")
    assert made.corpus.fingerprint in str(card["data"])


def test_a_stage_is_told_with_its_seconds(monkeypatch):
    ticks, said = iter((1.0, 3.5)), []
    monkeypatch.setattr(tour.time, "perf_counter", lambda: next(ticks))
    stages = tour.TourStages(said.append)
    with stages.stage("text") as told:
        told += ["2 documents", "1 held back"]
    assert said == ["text       2 documents; 1 held back (2.5 s)"]
    assert stages.seconds == {"text": 2.5}


def test_what_the_model_must_be_below_and_what_it_may_aim_at_are_told_apart():
    text = b"the cat sat on the mat. " * 4
    assert [(one.name, one.role) for one in floors(text, text)] == [
        ("byte unigram", "check"),
        ("byte trigram", "check"),
        ("xz", "check"),
    ]
    ids = [np.array([1, 2, 1, 2, 0], np.uint32)]
    assert [(one.name, one.role) for one in aims(text, text, ids, ids, 3)] == [
        ("token trigram", "aim"),
        ("xz primed with training text", "aim"),
    ]
