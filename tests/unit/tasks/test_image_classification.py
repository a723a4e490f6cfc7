"""Pictures told apart, from fine-tuning to an answer in Python, on the command line and in the report."""

import base64
import json

import numpy as np
import pytest
import torch

import orrery
from orrery.cli.program import run
from orrery.data.pictures.png import write_png
from orrery.errors import UsageError
from orrery.exchange.reading.read import read
from orrery.tasks.image_classification import ImageClassification
from views_toy import language_model_of

SIDE = {"hidden_size": 24, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 48}
KIND = {**SIDE, "image_size": 8, "patch_size": 4, "num_channels": 3, "initializer_range": 0.1}


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    """Pictures that are bright above or bright below."""
    folder, rng = tmp_path_factory.mktemp("pictures"), np.random.default_rng(0)
    for label in ("above", "below"):
        (folder / label).mkdir()
        for number in range(30):
            pixels = rng.integers(0, 120, (3, 10, 9), dtype=np.uint8)
            half = slice(0, 5) if label == "above" else slice(5, 10)
            pixels[:, half] += 130
            (folder / label / f"{number}.png").write_bytes(write_png(torch.from_numpy(pixels)))
    return folder


@pytest.fixture(scope="module")
def finetuned(pictures, tmp_path_factory):
    recipe = {
        "name": "halves",
        "task": "image_classification",
        "model": {"family": "vit", "config": KIND},
        "data": {"kind": "pictures", "train": str(pictures), "split": {"every": 4, "by": "text"}},
        "batches": {"size": 16},
        "objective": "classification",
        "training": {"steps": 60, "optimizer": {"kind": "adamw", "rate": 0.01}, "precision": "float32"},
        "evaluation": {"every": 30},
        "checkpoints": {"every": 60, "keep": 1},
    }
    folder = tmp_path_factory.mktemp("runs") / "halves"
    file = folder.with_suffix(".yaml")
    file.write_text(json.dumps(recipe))
    return orrery.finetune(str(file), output=folder, quiet=True)


@pytest.fixture(scope="module")
def trained(finetuned):
    return finetuned.runs[0]


def test_its_scores_are_a_table_of_pandas(finetuned):
    pytest.importorskip("pandas")
    table = finetuned.to_pandas()
    assert table.index.tolist() == ["halves"]
    assert table["accuracy"].tolist() == [finetuned.findings[0].main.score]
    floors = [f"{name}: {floor.name}" for name, floor in finetuned.findings[0].floors]
    assert floors
    assert set(floors) <= set(table.columns)


def test_it_is_learned_scored_and_reported(trained):
    scores = json.loads((trained / "scores.json").read_text())
    assert scores["scores"][0]["name"] == "accuracy"
    assert scores["scores"][0]["score"] > 0.9
    assert scores["apart"].startswith("Nothing of these examples was trained on")
    report = (trained / "report.html").read_text()
    assert "the label whose mean picture is nearest" in report


def test_the_final_folder_and_its_checkpoint_prepare_pictures_alike(trained, pictures):
    file = pictures / "above" / "0.png"
    answers = []
    for folder in (trained, trained / "final", *(trained / "checkpoints").glob("step-*")):
        assert read(folder).pictures["size"] == {"height": 8, "width": 8}
        answers.append(orrery.pipeline("image-classification", folder)(str(file)))
    assert answers[0] == answers[1] == answers[2]
    assert answers[0][0]["label"] == "above"


def test_answers_are_those_of_the_pipeline_in_transformers(trained, pictures):
    transformers = pytest.importorskip("transformers", reason="transformers, the oracle, is not installed")
    image = pytest.importorskip("PIL.Image", reason="Pillow, of the extra vision, is not installed")
    theirs = transformers.AutoModelForImageClassification.from_pretrained(trained / "final").eval()
    processor = transformers.ViTImageProcessorPil.from_pretrained(trained / "final")
    ask = orrery.pipeline("image-classification", trained, batch_size=4)
    files = sorted(pictures.rglob("*.png"))[::7]
    found = ask([str(file) for file in files])
    for file, answer in zip(files, found, strict=True):
        with torch.no_grad():
            logits = theirs(processor(image.open(file), return_tensors="pt")["pixel_values"]).logits[0]
        expected = logits.softmax(-1)
        told = {each["label"]: each["score"] for each in answer}
        assert list(told) == [theirs.config.id2label[n] for n in expected.argsort(descending=True).tolist()]
        for number, name in theirs.config.id2label.items():
            assert told[name] == pytest.approx(float(expected[number]), abs=1e-6)


def test_one_picture_has_a_list_and_several_have_a_list_each(trained, pictures):
    ask = orrery.pipeline("image-classification", trained)
    file = pictures / "below" / "3.png"
    one = ask(str(file))
    assert [each["label"] for each in one] == ["below", "above"]
    assert ask([str(file)]) == [one]
    assert ask(str(file), top_k=1) == one[:1]
    content = "data:image/png;base64," + base64.b64encode(file.read_bytes()).decode()
    assert ask(content) == one
    image = pytest.importorskip("PIL.Image", reason="Pillow, of the extra vision, is not installed")
    assert ask(image.open(file)) == one
    assert ask(np.array(image.open(file))) == one
    raw = ask(str(file), function_to_apply="none")
    assert sum(each["score"] for each in one) == pytest.approx(1)
    assert raw[0]["score"] - raw[1]["score"] == pytest.approx(
        float(np.log(one[0]["score"] / one[1]["score"])), abs=1e-4
    )


def test_the_verb_classify_takes_pictures(trained, pictures, capsys):
    files = [str(pictures / label / "1.png") for label in ("above", "below")]
    assert run(["classify", str(trained), *files]) == 0
    printed = capsys.readouterr()
    assert [line.split()[0] for line in printed.out.splitlines()] == ["above", "below"]
    assert "is the name of a file" not in printed.err
    assert run(["classify", str(trained), str(pictures / "nowhere.png")]) == 3
    assert "nowhere.png cannot be read" in capsys.readouterr().err


def test_a_model_goes_on_to_other_pictures(trained, pictures, tmp_path):
    done = orrery.finetune(
        "image-classification",
        trained,
        pictures,
        recipe={"training": {"steps": 20, "optimizer": {"rate": 0.01}}},
        mode="frozen",
        output=tmp_path / "again",
        quiet=True,
    )
    assert json.loads((done.runs[0] / "scores.json").read_text())["scores"][0]["score"] > 0.8
    assert read(done.runs[0]).pictures == read(trained).pictures


def test_a_client_sends_content_and_no_path():
    assert ImageClassification.from_client("data:image/png;base64,AA==").startswith("data:")
    for given in ("/etc/passwd", "https://example.org/a.png", "file:///a.png", {"text": "a"}, ""):
        with pytest.raises(UsageError, match="sent as its content"):
            ImageClassification.from_client(given)


def test_it_fits_models_of_pictures_alone():
    assert ImageClassification.fits(language_model_of("vit"))
    assert not ImageClassification.fits(language_model_of("bert"))
    with pytest.raises(UsageError, match="reads tokens, not images"):
        ImageClassification(language_model_of("gpt2"), "image-classification")("x.png")
