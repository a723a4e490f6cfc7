"""The task many-labels, whole: fine-tuned on a file, scored, asked by verb and over HTTP; what it refuses."""

import json
import random
import shutil

import pytest
import torch

import orrery
from orrery.cli.program import run as command
from orrery.data.batches.drawn_labels import with_labels
from orrery.data.sources.many_labels import ManyLabelsSettings, ManyLabelsSource
from orrery.errors import DataError, ModelFileError
from orrery.recipes.read import load_recipe
from orrery.tasks.finetuning.recipe import Request, recipe_for
from orrery.tasks.xbert.reading import row_of
from orrery.tasks.xbert.saved import NAMES, NUMBERS, load
from orrery.tasks.xbert.scoring import findings, ranked_by_model
from serving_toy import post, running

WORDS = ["ox", "elk", "hen", "cod", "ant", "bee", "owl", "pig", "cow", "dog"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Texts of two animals of ten: a label is which one is before which, ninety in all, and some have a second one."""
    place = tmp_path_factory.mktemp("animals")
    rng = random.Random(0)
    lines = []
    for number in range(1300):
        one, other = rng.sample(WORDS, 2)
        labels = [f"{one} {one}_{other}", *(["has ox"] if "ox" in (one, other) and number % 2 else [])]
        lines.append(json.dumps({"text": f"{one} {rng.choice('xyz')} {other}", "labels": labels}))
    (place / "train.jsonl").write_text("\n".join(lines[:1200]) + "\n")
    lines[-1] = json.dumps({"text": "ox x elk", "labels": ["never seen", "ox ox_elk"]})
    (place / "val.jsonl").write_text("\n".join(lines[1200:]) + "\n")
    return place


def settings(folder, **more):
    sides = {"train": str(folder / "train.jsonl"), "val": str(folder / "val.jsonl")}
    return ManyLabelsSettings(**{**sides, "cluster": 6, "vectors": "names", **more})


@pytest.fixture(scope="module")
def trained(folder):
    """A small encoder, trained for some seconds, with its ranker."""
    config = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 64,
              "max_position_embeddings": 8, "hidden_dropout_prob": 0.0}  # fmt: skip
    recipe = {
        "name": "animals", "task": "many_labels", "seed": 1,
        "model": {"family": "bert", "config": config, "heads": {"sequence": {"kind": "sequence", "pool": "mean"}}},
        "tokenizer": {"kind": "word", "frame": "bert"},
        "data": {"kind": "many_labels", **settings(folder).model_dump(exclude_unset=True)},
        "batches": {"kind": "padded", "length": 8, "size": 64},
        "objective": "classification",
        "training": {"steps": 100, "optimizer": {"kind": "adamw", "rate": 1e-2}, "precision": "float32"},
        "evaluation": {"every": 100}, "checkpoints": {"every": 100, "keep": 1},
    }  # fmt: skip
    (folder / "animals.yaml").write_text(json.dumps(recipe))
    return orrery.finetune(str(folder / "animals.yaml"), output=folder / "run", quiet=True)


def test_the_encoder_resolves_the_order_that_counting_words_cannot(trained):
    found = trained.findings[0]
    floors = {name: floor.score for name, floor in found.floors}
    assert set(floors) == {"popularity", "TF-IDF kNN", "XR-Linear"}
    assert found.main.name == "precision@1"
    assert found.main.score > max(floors.values()) + 0.2
    assert json.loads((trained.folder / "scores.json").read_text())["scores"][0]["score"] == found.main.score


def test_the_scores_are_those_of_the_answers(trained, folder):
    source = ManyLabelsSource.read(settings(folder))
    ask = orrery.pipeline("many-labels", trained.folder, device="cpu", batch_size=7, top_k=3)
    answers = ask([row.text for row in source.held_back])
    assert all(len(each) == 3 for each in answers)
    right = [each[0]["label"] in row.classes for each, row in zip(answers, source.held_back, strict=True)]
    assert trained.findings[0].main.score == pytest.approx(sum(right) / len(right))
    one = ask("cow x pig")
    assert one[0]["label"] == "cow cow_pig"
    assert 1 >= one[0]["score"] >= one[1]["score"] >= one[2]["score"] >= 0


def test_fewer_clusters_read_fewer_labels(trained, folder):
    lm = trained.load(device="cpu")
    _, read = ranked_by_model(lm, ["ox x elk"], 2)
    saved = load(lm.stored.folder)
    assert read[0] <= 2 * 6 / len(saved.labels)
    assert len(orrery.pipeline("many-labels", lm, clusters=1, top_k=100)("ox x elk")) <= 6


def test_a_broken_encoder_has_lower_scores(trained, folder):
    lm, source = trained.load(device="cpu"), ManyLabelsSource.read(settings(folder))
    with torch.no_grad():
        for parameter in lm.model.stack.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=torch.Generator().manual_seed(0)))
    assert findings(lm, source).main.score < trained.findings[0].main.score - 0.1


def test_the_verb_and_the_server_answer_as_python_does(trained, folder, capsys):
    answer = orrery.pipeline("many-labels", trained.folder, device="cpu", top_k=2)("cow x pig")
    assert command(["label", str(trained.folder), "cow x pig", "--top-k", "2", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [each["label"] for each in told["labels"]] == [each["label"] for each in answer]
    assert command(["label", str(trained.folder), "cow x pig", "--top-k", "1"]) == 0
    assert capsys.readouterr().out.startswith("cow cow_pig 0.")
    with running(trained.folder, dtype="float32") as server:
        status, reply = post(server, {"model": "toy", "input": ["cow x pig", "ox x elk"], "top_k": 2}, "/v1/label")
        assert status == 200
        assert [each["label"] for each in reply["data"][0]["labels"]] == [each["label"] for each in answer]
        assert post(server, {"model": "toy", "input": "ox", "top_k": 0}, "/v1/label")[0] == 400


def test_a_long_text_is_cut_for_the_encoder_and_an_empty_one_is_answered(trained):
    lm = trained.load(device="cpu")
    assert len(row_of(lm, "ox " * 50, 8).ids) == 8
    ask = orrery.pipeline("many-labels", lm)
    assert len(ask("elk " * 50)) == len(ask("")) == 5


def test_a_folder_without_a_ranker_or_with_a_damaged_one_says_so(trained, tmp_path):
    shutil.copytree(trained.folder / "final", tmp_path / "model")
    place = tmp_path / "model"
    assert len(orrery.pipeline("many-labels", place, device="cpu")("ox x elk")) == 5
    names = (place / NAMES).read_text()
    for change in ({"version": 9}, {"length": "x"}, {"words": 3}):
        (place / NAMES).write_text(json.dumps({**json.loads(names), **change}))
        with pytest.raises(ModelFileError):
            orrery.pipeline("many-labels", place, device="cpu")("ox")
    (place / NAMES).write_text(names)
    whole = (place / NUMBERS).read_bytes()
    (place / NUMBERS).write_bytes(whole[:-8])
    with pytest.raises(ModelFileError):
        orrery.pipeline("many-labels", place, device="cpu")("ox")
    (place / NUMBERS).unlink()
    with pytest.raises(ModelFileError, match="has no ranker of labels"):
        orrery.pipeline("many-labels", place, device="cpu")("ox")


def test_bad_data_are_refused_and_rare_and_unseen_labels_are_not(folder, tmp_path):
    source = ManyLabelsSource.read(settings(folder))
    assert any("1 labels are held back and never trained on" in note for note in source.remarks())
    file = tmp_path / "rows.jsonl"

    def read(*rows, **more):
        file.write_text("".join(json.dumps({"text": text, "labels": own}) + "\n" for text, own in rows))
        return ManyLabelsSource.read(ManyLabelsSettings(train=str(file), **more))

    with pytest.raises(DataError, match=r"rows.jsonl:2: the text has no label"):
        read(("a", ["x"]), ("b", []), ("c", ["y"]))
    assert len(read(("a", ["x"]), ("b", []), ("c", ["y"]), skip_bad=1).train) == 2
    with pytest.raises(DataError, match="every text is labelled 'x'"):
        read(("a", ["x"]), ("b", ["x"]))
    with pytest.raises(DataError, match="one text to learn from"):
        read(("a", ["x", "y"]))
    with pytest.raises(DataError, match="neither 0 nor 1"):
        read(("a", ["x"]), ("b", {"y": "much"}))
    two = read(("a", ["x"]), ("b", ["y"]))
    assert dict(two.labels) == {"0": 1, "1": 1}


def test_two_texts_that_share_no_word_are_learned_and_answered(tmp_path):
    """No word is counted then, so that the ranker has the encoder's vector alone."""
    rows = [{"text": "elk ox", "labels": ["x", "y"]}, {"text": "hen cod", "labels": ["x"]}]
    (tmp_path / "two.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    file = str(tmp_path / "two.jsonl")
    done = orrery.finetune("many-labels", train=file, val=file, recipe={"training": {"steps": 2}},
                           output=tmp_path / "run", quiet=True)  # fmt: skip
    assert load(done.folder / "final").features.numbers == {}
    answer = orrery.pipeline("many-labels", done.folder, device="cpu")("elk ox")
    assert {each["label"] for each in answer} == {"x", "y"}


def test_names_of_labels_are_learned_from_and_not_counted(folder):
    plain, named = ManyLabelsSource.read(settings(folder)), ManyLabelsSource.read(settings(folder, names=2))
    assert named.counts == plain.counts
    assert len(named.train) == len(plain.train)
    assert list(named.texts()) == [*plain.texts(), *plain.counts, *plain.counts]
    assert list(named.own) == [*plain.own, *[[n] for n in range(len(plain.counts))] * 2]
    assert len(named.rows) == len(named.own)
    assert sum(named.labels.values()) == sum(map(len, named.own))
    assert named.fingerprint == plain.fingerprint


def test_a_cluster_of_each_text_is_drawn_evenly_and_again_the_same(folder):
    labels = [[3], [0, 1], [1, 2, 4]]
    batch = {"place": torch.tensor([2, 0, 1]), "ids": torch.zeros(3, 2)}
    drawn = torch.stack([with_labels(batch, labels, seed)["labels"] for seed in range(900)])
    assert "place" not in with_labels(batch, labels, 0)
    assert drawn[:, 1].unique().tolist() == [3]
    assert drawn[:, 2].float().mean() == pytest.approx(0.5, abs=0.1)
    assert torch.bincount(drawn[:, 0]).tolist() == pytest.approx([0, 300, 300, 0, 300], abs=60)
    assert torch.equal(drawn[7], with_labels(batch, labels, 7)["labels"])


def test_a_model_is_made_where_none_is_named(folder):
    request = Request("many-labels", train=str(folder / "train.jsonl"), val=str(folder / "val.jsonl"))
    recipe = recipe_for(request, ["--training.steps", "60", "--data.cluster", "6"])
    assert (recipe.task, recipe.model.family, recipe.evaluation.best) == ("many_labels", "bert", "accuracy")
    assert recipe.batches.length == recipe.model.config["max_position_embeddings"] == 16
    assert load_recipe(folder / "animals.yaml").task == "many_labels"
