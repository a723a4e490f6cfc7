"""A task that is one file (``docs/examples/spotting.py``) is fine-tuned on, asked everywhere, scored and reported."""

import json
import sys

import pytest

import orrery
from orrery.cli.program import run
from orrery.tasks import NO_TEXT, TASKS
from pages import ROOT
from serving_toy import post, running
from tiny_models import saved

FILE = ROOT / "docs" / "examples" / "spotting.py"
TEXTS = {"capital": "the {} is the capital of the {}", "language": "the {} speaks to the {}"}
ANIMALS = ("cat", "dog", "cow", "hen", "pig", "ant")


@pytest.fixture(autouse=True)
def forgotten():
    path = list(sys.path)
    yield
    TASKS._parts.pop("spotting", None)
    sys.modules.pop("spotting", None)
    sys.path[:] = path


@pytest.fixture
def learned(tmp_path, capsys):
    """Fine-tune on the command line, and return the folder of the run and what was said."""
    rows = [(text.format(one, two), label) for one in ANIMALS for two in ANIMALS for label, text in TEXTS.items()]
    data = tmp_path / "rows.jsonl"
    data.write_text("".join(json.dumps({"text": text, "label": label}) + "\n" for text, label in rows))
    words = ["--from", str(saved(tmp_path / "llama", "llama")), "--train", str(data), "--output", str(tmp_path / "run")]
    overrides = ["--training.steps=60", "--training.precision=float32", "--training.optimizer.rate=0.01"]
    code = run(["with", str(FILE), "finetune", "spotting", *words, *overrides])
    out, err = capsys.readouterr()
    assert code == 0, err
    assert f"orrery with {FILE} spotting {tmp_path / 'run'} TEXT uses the model" in err
    return tmp_path / "run", out


def test_one_file_is_enough(learned, capsys):
    folder, told = learned
    scores = json.loads((folder / "scores.json").read_text())
    assert scores["scores"][0]["name"] == "accuracy"
    assert scores["scores"][0]["score"] > 0.9
    assert [one["method"] for one in scores["floors"]] == ["always no"]
    assert "floor, always no" in told
    assert "texts held back" in (folder / "report.html").read_text()

    texts = ["the cat is the capital of a cat", "a cat speaks to the cat"]
    expected = orrery.pipeline("spotting", folder, device="cpu")(texts)
    assert [one["is"] for one in expected] == [True, False]
    again = orrery.finetune(
        "spotting", folder, folder.parent / "rows.jsonl", output=folder.parent / "again", quiet=True,
        recipe={"training": {"steps": 2, "precision": "float32"}},
    )  # fmt: skip
    assert again.findings[0].main.name == "accuracy"

    own = ["with", str(FILE), "spotting", str(folder), *texts, "--device=cpu"]
    assert run(own) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"{'yes' if one['is'] else 'no '} {one['score']:.4f}  {text}" for one, text in zip(expected, texts, strict=True)
    ]
    assert run([*own, "--json", "--sure=1"]) == 0
    assert [json.loads(line)["found"]["is"] for line in capsys.readouterr().out.splitlines()] == [False, False]
    assert run([*own, "--shure=1"]) == 2
    assert "did you mean --sure?" in capsys.readouterr().err

    with running(folder, "float32") as toy:
        status, answer = post(toy, {"input": texts}, "/v1/tasks/spotting")
        assert (status, [one["found"] for one in answer["data"]]) == (200, expected)
        assert post(toy, {"input": texts[0], "sure": 1.0}, "/v1/tasks/spotting")[1]["data"][0]["found"]["is"] is False
        assert post(toy, {"input": "a", "sure": 2}, "/v1/tasks/spotting")[0] == 400
        assert post(toy, {"input": "a", "model": "other"}, "/v1/tasks/spotting")[0] == 404
        assert "/v1/tasks/spotting" in toy.served.routes


def test_its_pages_of_help(capsys):
    assert run(["with", str(FILE), "--help"]) == 0
    listed = capsys.readouterr().out
    assert "Say of each text whether it is of one label." in listed
    assert run(["with", str(FILE), "spotting", "--help"]) == 0
    assert "--sure" in capsys.readouterr().out
    assert run(["with", str(FILE)]) == 0
    assert capsys.readouterr().out == listed


BOTH = '''
"""A task over two texts."""
from orrery.tasks import Pipeline, PipelineSettings, register
from orrery.tasks.pipelines import whole


class BothSettings(PipelineSettings):
    """What stands between them."""

    between: str


@register
class Both(Pipeline):
    """Say two texts."""

    kind, verb, route, fields, Settings = "both", "pair-up", "/v1/both", ("one", "two"), BothSettings

    def rows(self, item, settings):
        return [whole(self.lm, item["one"], truncation=False)]

    def ask(self, rows, settings):
        return [self.lm.tokenizer.decode(row.ids) for row in rows]

    def answer(self, item, rows, outputs, settings):
        return settings.between.join([outputs[0], item["two"]])
'''


def test_a_task_over_two_texts_that_names_its_verb_and_its_route(tmp_path, capsys):
    model, file, data = saved(tmp_path / "llama", "llama"), tmp_path / "two_texts.py", tmp_path / "rows.jsonl"
    file.write_text(BOTH)
    data.write_text('{"one": "the cat", "two": "a dog"}\n{"one": "", "two": "a dog"}\n')
    own = ["with", str(file), "pair-up", str(model)]
    try:
        assert run([*own, "--file", str(data), "--between=+"]) == 0, capsys.readouterr().err
        assert capsys.readouterr().out.splitlines() == ["the cat+a dog", NO_TEXT]
        assert run([*own, "--file", str(data), "--between=+", "--json"]) == 0
        assert json.loads(capsys.readouterr().out.splitlines()[0]) == {
            "one": "the cat", "two": "a dog", "answer": "the cat+a dog"
        }  # fmt: skip
        assert run([*own, "a text", "--between=+"]) == 2
        assert run([*own, "--file", str(data)]) == 2
        with running(model, "float32") as toy:
            row = {"one": "the cat", "two": "a dog"}
            for given in (row, [row]):
                status, answer = post(toy, {"input": given, "between": "+"}, "/v1/both")
                assert (status, answer["data"]) == (200, [{"index": 0, "answer": "the cat+a dog"}])
            assert post(toy, {"input": row}, "/v1/both")[0] == 400
            assert post(toy, {"input": {"one": "a"}, "between": "+"}, "/v1/both")[0] == 400
    finally:
        TASKS._parts.pop("both")
        sys.modules.pop("two_texts")


OWN = "from orrery.tasks import Pipeline, register\nregister(type('Own', (Pipeline,), {'kind': '%s'}))"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "there is no such Python file"),
        ("1 / 0", "made_up_parts.py, line 1: ZeroDivisionError: division by zero"),
        (OWN % "ner", "ner is taken"),
        (OWN % "score", "Orrery's own"),
    ],
)  # fmt: skip
def test_a_file_that_is_none_is_refused(tmp_path, capsys, text, said):
    file = tmp_path / "made_up_parts.py"
    if text is not None:
        file.write_text(text)
    assert run(["with", str(file), "info"]) != 0
    sys.modules.pop("made_up_parts", None)
    TASKS._parts.pop("score", None)
    assert said in capsys.readouterr().err


def test_what_lies_beside_a_file_stands_for_no_module_of_python(tmp_path, capsys):
    (tmp_path / "colorsys.py").write_text("raise RuntimeError('the wrong one')")
    (tmp_path / "neighbour_of_parts.py").write_text("NUMBER = 3")
    own = tmp_path / "beside_colorsys.py"
    own.write_text("import colorsys, neighbour_of_parts\ncolorsys.hsv_to_rgb(0, 0, neighbour_of_parts.NUMBER)")
    assert run(["with", str(own), "info"]) == 0
    capsys.readouterr()
    assert run(["with", str(tmp_path / "colorsys.py"), "info"]) == 2
    assert "Python knows another module called colorsys" in capsys.readouterr().err


def test_a_file_of_one_s_own_is_taken_where_another_folder_has_one_of_its_name(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(sys, "path", [*sys.path])
    for folder in ("first", "second"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "mine_in_both.py").write_text(f"print('the {folder} is read')\n")
        (tmp_path / folder / f"mine_{folder}.py").write_text("")
    assert run(["with", str(tmp_path / "first" / "mine_first.py"), "info"]) == 0
    assert run(["with", str(tmp_path / "second" / "mine_in_both.py"), "info"]) == 0
    assert "the second is read" in capsys.readouterr().out
