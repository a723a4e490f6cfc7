"""``orrery train`` from a recipe and a text file to a trained model, and its refusals."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from orrery.cli.program import run
from orrery.training.optimizers import KINDS

RECIPE = {
    "name": "small",
    "model": {"family": "gpt2", "config": {"n_layer": 1, "n_embd": 16, "n_head": 2, "n_positions": 16}},
    "tokenizer": {"kind": "character"},
    "data": {"train": "text.txt", "split": {"tail": 0.1}},
    "batches": {"length": 16, "size": 4},
    "training": {"steps": 4, "micro_batch": 2, "optimizer": {"rate": 0.01}, "precision": "float32"},
    "logging": {"every": 1},
}


@pytest.fixture
def recipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "text.txt").write_text("the list is sorted; the queue is not. " * 50)
    (tmp_path / "small.yaml").write_text(yaml.safe_dump(RECIPE))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ORRERY_RUNS", "runs")
    return "small.yaml"


def steps(folder: str) -> list[int]:
    return [json.loads(line)["step"] for line in Path(folder, "metrics.jsonl").read_text().splitlines()]


def test_trains_resumes_and_leaves_a_model(recipe: str) -> None:
    assert run(["train", recipe, "--training.steps", "2"]) == 0
    assert run(["train", recipe, "--resume", "--training.steps=4"]) == 0
    assert steps("runs/small") == [1, 2, 3, 4]
    last = json.loads(Path("runs/small/metrics.jsonl").read_text().splitlines()[-1])
    assert last["val/bpb"] < 8
    assert last["mfu"] > 0
    names = {path.name for path in Path("runs/small/final").iterdir()}
    assert {"model.safetensors", "config.json", "tokenizer.json"} <= names


def test_names_no_share_of_the_peak_where_the_head_works_at_masked_tokens_only(recipe: str) -> None:
    sizes = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    bert = {"family": "bert", "config": {**sizes, "max_position_embeddings": 32}}
    flags = ["--model", json.dumps(bert), "--tokenizer", "{kind: wordpiece, vocabulary: 30, frame: bert}"]
    assert run(["train", recipe, *flags, "--objective", "{kind: masked}"]) == 0
    last = json.loads(Path("runs/small/metrics.jsonl").read_text().splitlines()[-1])
    assert last["tokens_per_second"] > 0
    assert "mfu" not in last


@pytest.mark.parametrize("flags", [["--tokenizer.kind", "unigram"], ["--tokenizer", "{kind: word, lowercase: true}"]])
def test_trains_on_any_kind_of_tokenizer(flags: list[str], recipe: str) -> None:
    assert run(["train", recipe, *flags]) == 0
    assert steps("runs/small") == [1, 2, 3, 4]
    assert json.loads(Path("runs/small/metrics.jsonl").read_text().splitlines()[-1])["val/bpb"] > 0


@pytest.mark.parametrize("kind", KINDS)
def test_trains_and_resumes_with_every_optimizer(kind: str, recipe: str) -> None:
    flags = ["--training.optimizer", f"{{kind: {kind}, rate: 0.01}}"]
    assert run(["train", recipe, *flags, "--training.steps", "2"]) == 0
    assert run(["train", recipe, *flags, "--resume"]) == 0
    assert steps("runs/small") == [1, 2, 3, 4]


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (
            ["--training.optimizer", "{kind: muon, rate: 0.01}", "--model.freeze", "['*.blocks.*']"],
            "no block has a matrix",
        ),
        (["--model.freeze", "['*']"], "freeze"),
    ],
)
def test_what_cannot_be_trained_leaves_no_folder(flags: list[str], told: str, recipe: str, capsys: Any) -> None:
    assert run(["train", recipe, *flags]) == 2
    assert told in capsys.readouterr().err
    assert not Path("runs/small").exists()


@pytest.mark.parametrize("kind", ["packed", "padded"])
def test_trains_on_documents(kind: str, recipe: str) -> None:
    lines = [json.dumps({"text": f"document {number} ends here"}) for number in range(30)]
    Path("text.jsonl").write_text("\n".join(lines))
    flags = ["--data.train", "text.jsonl", "--data.split", "{every: 4}", "--batches.kind", kind]
    assert run(["train", recipe, *flags]) == 0
    assert steps("runs/small") == [1, 2, 3, 4]


def test_dry_run_and_print_config_train_nothing(recipe: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["train", recipe, "--dry-run"]) == 0
    printed = capsys.readouterr().out
    assert "4 steps, 256 tokens" in printed
    assert re.search(r"^activations +about [0-9,]{5,} bytes for 2 rows at once", printed, re.MULTILINE)
    assert run(["train", "--config", recipe, "--print-config", "--seed", "7"]) == 0
    assert yaml.safe_load(capsys.readouterr().out)["seed"] == 7
    assert not Path("runs").exists()


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["--trainng.steps", "4"], 2, "did you mean 'training'?"),
        (["--resum"], 2, "unknown option --resum"),
        (["--resume", "--overwrite"], 2, "exclude each other"),
        (["--tokenizer", "{kind: byte_bpe, lowercase: true}"], 2, "gives back every byte"),
        (["--tokenizer", "{file: x, lowercase: true}"], 2, "from a file decides that itself"),
        (["--tokenizer.kind", "syllable"], 2, "tokenizer.kind"),
        (["--batches.length", "17"], 2, "the model's context 16"),
        (["--model.config.vocab_size", "3"], 2, "vocabulary of 3"),
        (["--data.train", "no.txt"], 3, "no.txt"),
    ],
)
def test_a_mistake_is_an_error_a_hint_and_a_code(
    words: list[str], code: int, message: str, recipe: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["train", recipe, *words]) == code
    printed = capsys.readouterr().err
    assert message in printed
    assert "hint: " in printed


def test_a_resumed_run_must_find_the_same_text(recipe: str, capsys: pytest.CaptureFixture) -> None:
    assert run(["train", recipe, "--training.steps", "2"]) == 0
    text = Path("text.txt")
    text.write_text(text.read_text() + "one more line\n")
    assert run(["train", recipe, "--resume", "--training.steps", "4"]) == 3
    assert "the corpus is not the one this run was started with" in capsys.readouterr().err
