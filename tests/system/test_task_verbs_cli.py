"""The verbs of tasks: texts of the command line, files and pipes in, lines or JSON out, bad lines named."""

import io
import json
import sys

import numpy as np
import pytest
import torch
from tests.parity.picture_folders import captioner, contrasted, picture
from tests.parity.pipelines import LABELS, folder, named

import orrery
from orrery.cli.program import run
from orrery.errors import DataError
from orrery.exchange.saving.save import save_model
from orrery.families import load_family
from orrery.tasks import NO_TEXT
from tiny_models import prepared_for, smallest

TEXTS = ["The cat sat near London.", "Ada wrote", "Öl in 日本 🙂"]


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    place = tmp_path_factory.mktemp("models")
    nli = named(["contradiction", "neutral", "entailment"])
    folder(place / "classes", "bert", "AutoModelForSequenceClassification", **nli)
    folder(place / "tags", "bert", "AutoModelForTokenClassification", **named(LABELS))
    folder(place / "spans", "bert", "AutoModelForQuestionAnswering")
    folder(place / "masks", "bert", "AutoModelForMaskedLM")
    folder(place / "writes", "t5", "AutoModelForSeq2SeqLM")
    folder(place / "gpt2", "gpt2", "AutoModelForCausalLM")
    return {path.name: str(path) for path in place.iterdir()}


def lines(capsys, *words):
    assert run([*words, "--device", "cpu"]) == 0, capsys.readouterr().err
    return capsys.readouterr().out.splitlines()


def objects(capsys, *words):
    return [json.loads(line) for line in lines(capsys, *words, "--json")]


def refused(capsys, code, *words):
    assert run([*words]) == code, capsys.readouterr()
    said = capsys.readouterr().err
    assert "error: " in said
    assert "hint: " in said
    return said


def files(folder):
    """Write the same texts in each format."""
    (folder / "a.txt").write_text("\n".join(TEXTS) + "\n", encoding="utf-8")
    rows = [json.dumps({"text": text, "other": "Ada"}, ensure_ascii=False) for text in TEXTS]
    (folder / "a.jsonl").write_text("\n".join(rows) + "\n", encoding="utf-8")
    (folder / "a.csv").write_text("text,other\n" + "".join(f'"{text}",Ada\n' for text in TEXTS), encoding="utf-8")
    return [folder / name for name in ("a.txt", "a.jsonl", "a.csv")]


def test_classify(models, tmp_path, capsys):
    pipe = orrery.pipeline("text-classification", models["classes"], device="cpu")
    expected = pipe(TEXTS, top_k=2)
    assert [one["labels"] for one in objects(capsys, "classify", models["classes"], *TEXTS, "--top-k", "2")] == [
        [{"label": a["label"], "score": pytest.approx(a["score"], abs=1e-6)} for a in answer] for answer in expected
    ]
    shown = [f"{a[0]['label']} {a[0]['score']:.4f}  {t}" for a, t in zip(expected, TEXTS, strict=True)]
    for file in files(tmp_path):
        assert lines(capsys, "classify", models["classes"], "--file", str(file)) == shown
    pairs = objects(capsys, "classify", models["classes"], "--file", str(tmp_path / "a.csv"), "--pair", "other")
    alone = pipe({"text": TEXTS[0], "text_pair": "Ada"})
    assert pairs[0]["labels"][0]["score"] == pytest.approx(alone["score"], abs=1e-6)
    zero = objects(capsys, "classify", models["classes"], TEXTS[0], "--labels", "art, sport", "--top-k", "2")
    assert {one["label"] for one in zero[0]["labels"]} == {"art", "sport"}


def test_standard_input(models, capsys, monkeypatch):
    expected = lines(capsys, "classify", models["classes"], *TEXTS)
    bytes_in = io.TextIOWrapper(io.BytesIO("\n".join(TEXTS).encode()))
    monkeypatch.setattr(sys, "stdin", bytes_in)
    assert lines(capsys, "classify", models["classes"]) == expected
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b'{"text": "a"}\n{"text": 3}\n')))
    said = refused(capsys, DataError.exit_code, "classify", models["classes"], "--format", "jsonl")
    assert "standard input:2: text is '3'" in said


def test_tag(models, capsys):
    expected = orrery.pipeline("ner", models["tags"], device="cpu", aggregation_strategy="simple")(TEXTS[0])
    entities = objects(capsys, "tag", models["tags"], TEXTS[0])[0]["entities"]
    assert [(one["entity_group"], one["start"], one["end"]) for one in entities] == [
        (one["entity_group"], one["start"], one["end"]) for one in expected
    ]
    shown = lines(capsys, "tag", models["tags"], *TEXTS, "--group", "first", "--everything")
    assert shown[0] == f"# {TEXTS[0]}"
    assert len([line for line in shown if line.startswith("# ")]) == 3
    long = "Ada wrote " * 40
    assert "longer than" in refused(capsys, 2, "tag", models["tags"], long)
    assert lines(capsys, "tag", models["tags"], long, "--stride", "4", "--everything")
    assert lines(capsys, "tag", models["tags"], long, "--truncation", "--everything")


def test_answer(models, tmp_path, capsys):
    pipe = orrery.pipeline("question-answering", models["spans"], device="cpu")
    expected = pipe(question="Who?", context=TEXTS[0])
    answers_given = objects(capsys, "answer", models["spans"], "Who?", "--context", TEXTS[0])[0]["answers"]
    assert answers_given[0] == {**expected, "score": pytest.approx(expected["score"], abs=1e-6)}
    rows = tmp_path / "rows.jsonl"
    rows.write_text("".join(json.dumps({"question": "Who?", "context": text}) + "\n" for text in TEXTS))
    assert len(lines(capsys, "answer", models["spans"], "--file", str(rows), "--top-k", "2")) > 3
    rows.write_text('{"question": "Who?", "context": "a"}\n{"question": "Who?"}\n')
    assert f"{rows}:2: " in refused(capsys, DataError.exit_code, "answer", models["spans"], "--file", str(rows))
    refused(capsys, 2, "answer", models["spans"], "Who?")


def test_summarise(models, capsys):
    how = {"max_new_tokens": 9, "num_beams": 2, "min_new_tokens": 7, "length_penalty": 2.0, "no_repeat_ngram_size": 2}
    pipe = orrery.pipeline("summarization", models["writes"], device="cpu")
    flags = [word for key, value in how.items() for word in ("--" + key.replace("_", "-"), str(value))]
    words = ["summarise", models["writes"], *TEXTS, *flags]
    assert [one["summary"] for one in objects(capsys, *words)] == [one["summary_text"] for one in pipe(TEXTS, **how)]
    assert len(lines(capsys, *words)) == 3


def test_caption(tmp_path, capsys):
    captioner(tmp_path / "model")
    model, files = str(tmp_path / "model"), [str(tmp_path / name) for name in ("a.png", "b.jpg")]
    for number, file in enumerate(files):
        picture("RGB", (20, 30), number).save(file)
    how = {"max_new_tokens": 9, "num_beams": 2, "min_new_tokens": 7, "length_penalty": 2.0, "no_repeat_ngram_size": 2}
    flags = [word for key, value in how.items() for word in ("--" + key.replace("_", "-"), str(value))]
    expected = [one[0]["generated_text"] for one in orrery.pipeline("image-to-text", model, device="cpu")(files, **how)]
    found = objects(capsys, "caption", model, *files, *flags, "--batch-size", "1")
    assert found == [{"picture": file, "caption": text} for file, text in zip(files, expected, strict=True)]
    assert len(lines(capsys, "caption", model, *files, *flags)) == 2
    (tmp_path / "b.jpg").write_bytes(b"\xff\xd8\xff no more")
    assert "picture 2: " in refused(capsys, DataError.exit_code, "caption", model, *files)
    assert "there is no picture" in refused(capsys, 2, "caption", model)
    assert "no such file" in refused(capsys, 3, "caption", model, str(tmp_path / "c.png"))
    assert lines(capsys, "generate", model, files[0], "--temperature", "0", "--max-new-tokens", "3")


def test_classify_a_picture_by_labels_that_are_named(tmp_path, capsys):
    contrasted(tmp_path / "clip")
    model, files, wanted = str(tmp_path / "clip"), [str(tmp_path / f"{n}.png") for n in range(2)], "cat, dog"
    for number, file in enumerate(files):
        picture("RGB", (20, 30), number).save(file)
    ask = orrery.pipeline("zero-shot-image-classification", model, device="cpu")
    flags = ("--labels", wanted, "--top-k", "2")
    found = objects(capsys, "classify", model, *files, *flags)
    assert [each["labels"] for each in found] == ask(files, candidate_labels=wanted, top_k=2, batch_size=8)
    assert "--multi-label is of texts" in refused(capsys, 2, "classify", model, *files, *flags, "--multi-label")
    (tmp_path / "1.png").write_bytes(b"none")
    assert "picture 2: " in refused(capsys, DataError.exit_code, "classify", model, *files, *flags)
    (tmp_path / "d.png").mkdir()
    assert "is a folder" in refused(capsys, 3, "segment", model, str(tmp_path / "d.png"))


@pytest.mark.parametrize(("verb", "family"), [("detect", "yolos"), ("segment", "segformer")])
def test_things_and_parts_of_pictures_are_told(verb, family, tmp_path, capsys):
    task, flags, how = {
        "detect": ("object-detection", ["--threshold", "0.2"], {"threshold": 0.2}),
        "segment": ("image-segmentation", [], {}),
    }[verb]
    model, files = str(tmp_path / "model"), [str(tmp_path / name) for name in ("a.png", "b.png")]
    made = smallest(family, torch.float32)
    save_model(model, made, family, load_family(family).TINY, pictures=prepared_for(made))
    for number, file in enumerate(files):
        picture("RGB", (20, 30), number).save(file)
    pipe = orrery.pipeline(task, model, device="cpu")
    expected = pipe(files, **how)
    found = objects(capsys, verb, model, *files, *flags, "--batch-size", "1")
    assert [each["picture"] for each in found] == files
    assert [each[pipe.said] for each in found] == [pipe.told(answer) for answer in expected]
    assert any(each[pipe.said] for each in found)
    told = [line for file, answer in zip(files, expected, strict=True) for line in pipe.lines(file, answer)]
    assert lines(capsys, verb, model, *files, *flags) == told
    assert "there is no picture" in refused(capsys, 2, verb, model)


VERBS = {
    "classify": ("classes", []),
    "classify pairs": ("classes", ["--pair", "context"]),
    "tag": ("tags", ["--everything"]),
    "answer": ("spans", []),
    "summarise": ("writes", ["--max-new-tokens", "3"]),
    "embed": ("masks", []),
    "cloze": ("masks", ["--candidates", "cat, dog"]),
}


@pytest.mark.parametrize("blank", ["", " \t", None])
@pytest.mark.parametrize("verb", VERBS)
def test_a_row_without_a_text_is_passed_over_by_every_verb(models, tmp_path, capsys, verb, blank):
    model, flags = VERBS[verb]
    texts = ["The __ sat.", blank, "Ada __ wrote."]
    rows = tmp_path / "rows.jsonl"
    rows.write_text("".join(json.dumps({"text": t, "question": t, "context": t}) + "\n" for t in texts))
    words = [verb.split()[0], models[model], "--file", str(rows), *flags, "--device", "cpu", "--json"]
    assert run(words) == 0, capsys.readouterr()
    out, err = capsys.readouterr()
    assert err.count("without a text, and passed over: 1 of 3 rows (line 2)") == 1
    printed = [json.loads(line) for line in out.splitlines()]
    assert len(printed) == 3
    answers = [[value for key, value in row.items() if key not in ("text", "question", "context")] for row in printed]
    assert [bool(answer[0]) for answer in answers] == [True, False, True]
    if verb != "embed":
        assert run(words[:-1]) == 0
        assert ("# " if verb == "tag" else NO_TEXT) in capsys.readouterr().out


def test_a_row_without_a_text_has_no_numbers_in_an_array(models, tmp_path, capsys):
    rows = tmp_path / "rows.txt"
    rows.write_text("The cat\n\nAda\n")
    told = lines(capsys, "embed", models["masks"], "--file", str(rows), "--output", str(tmp_path / "v.npy"))
    assert "2 vectors of" in told[-1]
    assert np.isnan(np.load(tmp_path / "v.npy")).all(axis=1).tolist() == [False, True, False]
    rows.write_text("\n\n")
    assert "no row has a text" in refused(
        capsys, 3, "embed", models["masks"], "--file", str(rows), "--output", str(tmp_path / "w.npy")
    )
    assert not (tmp_path / "w.npy").exists()


def test_embed(models, tmp_path, capsys):
    hidden = orrery.pipeline("feature-extraction", models["masks"], device="cpu", return_tensors=True)(TEXTS)
    expected = np.stack([x[0].mean(0).numpy() for x in hidden])
    words = ["embed", models["masks"], *TEXTS, "--batch-size", "1"]
    printed = [json.loads(line)["vector"] for line in lines(capsys, *words)]
    np.testing.assert_allclose(printed, expected, atol=1e-5)
    for name in ("v.npy", "v.jsonl"):
        lines(capsys, *words, "--normalise", "--output", str(tmp_path / name))
        assert "exists already" in refused(capsys, 2, *words, "--output", str(tmp_path / name))
    array = np.load(tmp_path / "v.npy")
    np.testing.assert_allclose(array, expected / np.linalg.norm(expected, axis=1, keepdims=True), atol=1e-5)
    read = [json.loads(line) for line in (tmp_path / "v.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [one["text"] for one in read] == TEXTS
    np.testing.assert_allclose([one["vector"] for one in read], array, atol=1e-6)
    assert "neither" in refused(capsys, 2, *words, "--output", "v.txt")


@pytest.mark.parametrize("name", ["gpt2", "masks"])
def test_cloze(models, name, capsys):
    lm = orrery.load(models[name], "cpu", say=str)
    text, candidates = "Ada was eating __ near London", ["an apple", "a banana"]
    expected = {one.candidate: one for one in lm.cloze(text, candidates)}
    words = ["cloze", models[name], text, "--candidates", ", ".join(candidates)]
    for one in objects(capsys, *words)[0]["candidates"]:
        assert one["log_probability"] == pytest.approx(expected[one["candidate"]].log_probability, abs=1e-5)
        assert one["log_probability"] == pytest.approx(sum(one["log_probabilities"]), abs=1e-6)
    shown = lines(capsys, *words, "--mean", *(["--left-only"] if name == "gpt2" else []))
    assert shown[0].startswith("score")
    assert len(shown) == 3
    if name == "masks":
        assert "both sides" in refused(capsys, 2, *words, "--left-only")
    assert "text 2: the text has no gap" in refused(capsys, 2, *words[:3], "no gap", *words[3:])


def test_what_is_refused(models, tmp_path, capsys, monkeypatch):
    (tmp_path / "empty").write_text("")
    (tmp_path / "bad.txt").write_bytes(b"fine\n\xff\xfe\xfa\n")
    (tmp_path / "table.csv").write_text("words\na\n")
    classes = models["classes"]
    assert f"{tmp_path / 'bad.txt'}:2" in refused(capsys, 3, "classify", classes, "--file", str(tmp_path / "bad.txt"))
    assert "no lines" in refused(capsys, 3, "classify", classes, "--file", str(tmp_path / "empty"))
    refused(capsys, 3, "classify", classes, "--file", str(tmp_path / "table.csv"))
    assert len(lines(capsys, "classify", classes, "--file", str(tmp_path / "table.csv"), "--column", "words")) == 1
    refused(capsys, 3, "classify", classes, "--file", str(tmp_path / "missing"))
    refused(capsys, 2, "classify", classes, "a", "--file", str(tmp_path / "table.csv"))
    refused(capsys, 2, "classify", classes, "a", "--batch-size", "0")
    refused(capsys, 2, "classify", models["tags"], "a")
    refused(capsys, 2, "tag", classes, "a")
    refused(capsys, 2, "summarise", classes, "a")
    refused(capsys, 2, "cloze", models["gpt2"], "a __", "--candidates", "a,,b")
    refused(capsys, 3, "answer", models["spans"], "--file", str(tmp_path / "bad.txt"))
    refused(capsys, 2, "classify", classes, "a", "--multi-label")
