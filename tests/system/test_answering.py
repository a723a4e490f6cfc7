"""Learning from one's own answers as a user does: verbs, resume, pages, what goes wrong."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch

import orrery
from orrery.checkpoints.tensors import read_tensors
from orrery.cli.program import run
from orrery.errors import UsageError

MODEL = {
    "hidden_size": 16,
    "intermediate_size": 24,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "max_position_embeddings": 24,
}


def recipe(kind: str = "grpo", **training: Any) -> dict[str, Any]:
    return {
        "name": "answers",
        "model": {"family": "llama", "config": MODEL},
        "tokenizer": {"kind": "character", "train": "addition"},
        "data": {
            "kind": "rollouts", "train": "addition", "val": "addition/val", "max_new_tokens": 3, "samples": 2,
            "minibatches": 2, "passes": 2,
        },
        "batches": {"length": 12, "size": 8},
        "objective": {"kind": kind},
        "rewards": ["arithmetic", {"kind": "length", "tokens": 2, "weight": 0.5}],
        "training": {"steps": 6, "precision": "float32", "micro_batch": 3, "optimizer": {"rate": 0.01}, **training},
        "evaluation": {"every": 3, "batches": 1},
        "checkpoints": {"every": 3},
        "logging": {"every": 2},
    }  # fmt: skip


@pytest.fixture(scope="module")
def base(tmp_path_factory) -> Path:
    return orrery.train(recipe(), tmp_path_factory.mktemp("answers") / "base", quiet=True).folder


@pytest.mark.parametrize("kind", ["ppo", "grpo"])
def test_stopped_in_the_midst_of_a_rollout_and_resumed_is_the_whole_run(kind: str, tmp_path: Path) -> None:
    constant = {"schedule": {"kind": "constant"}}
    whole = orrery.train(recipe(kind, **constant), tmp_path / "whole", quiet=True)
    for steps in (3, 6):  # a rollout serves four steps
        orrery.train(recipe(kind, **constant, steps=steps), tmp_path / "parts", quiet=True, resume=True)
    for name in ("model.safetensors", "optimizer.safetensors", "objective.safetensors"):
        states = [read_tensors(tmp_path / run_ / "checkpoints" / "step-000006" / name) for run_ in ("whole", "parts")]
        assert states[0].keys() == states[1].keys()
        assert all(torch.equal(states[0][key], states[1][key]) for key in states[0])
    records = whole.records()
    assert {"train/reward", "train/kl_k3", "train/length", "train/entropy", "train/clipped", "train/ratio"} <= set(
        records[-1]
    )
    assert records[-1]["val/reward"] <= 1
    page = (tmp_path / "whole" / "progress.html").read_text()
    assert "6 of 6 steps" in page
    assert 'http-equiv="refresh"' not in page
    assert page.count("<svg") >= 6


def test_the_verb_finds_settings_and_scores_beside_the_base(base: Path, tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    flags = ["--train=addition/few", "--val=addition/val", "--reward=arithmetic", "--data.max_new_tokens=3"]
    few = ["--training.steps=2", "--batches.size=8", "--evaluation.batches=1", "--output=run"]
    assert run(["grpo", str(base), *flags[:-1], *few, "--print-config"]) == 0
    fitting = next(line for line in capsys.readouterr().out.splitlines() if "max_new_tokens" in line)
    assert int(fitting.split()[-1]) == MODEL["max_position_embeddings"] // 2  # more than the 3 that are asked for below
    assert run(["grpo", str(base), *flags, *few, "--print-config"]) == 0
    printed = capsys.readouterr().out
    assert "task: grpo" in printed
    assert "samples: 8" in printed
    assert not Path("run").exists()
    assert run(["grpo", str(base), *flags, *few]) == 0
    scores = json.loads(Path("run/scores.json").read_text())
    assert [score["name"] for score in scores["scores"]] == ["reward", "length", "ends"]
    assert scores["floors"][0]["method"] == "the model that it began from"
    assert "Divergence from the reference" in Path("run/report.html").read_text()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["grpo", "BASE", "--train=addition"], "what is an answer worth"),
        (["ppo", "BASE", "--reward=exact"], "answers which prompts"),
        (["ppo", "BASE", "--train=addition", "--reward=good"], "neither a reward nor the folder"),
        (["grpo", "BASE", "--train=addition", "--reward=format", "--output=x"], "pattern"),
        (["grpo", "BASE", "--train=addition", "--reward=exact", "--batches.size=7", "--output=x"], "of data.samples"),
        (["grpo", "BASE", "--train=empty.jsonl", "--reward=exact", "--output=x"], "empty.jsonl"),
        (["grpo", "BASE", "--train=long.jsonl", "--val=addition/val", "--reward=exact", "--output=x"], "long.jsonl:1"),
        (["grpo", "BASE", "--train=addition", "--reward=exact", "--model.dropout=0.1", "--output=x"], "dropout"),
        (["ppo", "BASE", "--train=addition", "--reward=BASE", "--output=x"], "no reward model"),
        (["distil", "BASE", "--prompts=addition/val", "--output=x.jsonl", "--reward=good"], "neither a reward"),
        (["distil", "BASE", "--prompts=empty.jsonl", "--output=x.jsonl"], "empty.jsonl"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_by_name(words, message, base, tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    Path("empty.jsonl").write_text("")
    Path("long.jsonl").write_text(json.dumps({"prompt": "1+" * 20, "answer": "1"}) + "\n")
    code = run([word.replace("BASE", str(base)) for word in words])
    told = capsys.readouterr().err
    assert code in (2, 3, 4)
    assert message in told
    assert "Traceback" not in told
    assert not Path("x").exists()


def test_a_teachers_answers_are_data(base: Path, tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    Path("prompts.jsonl").write_text(
        "".join(json.dumps({"prompt": f"{n}+1=", "answer": str(n + 1)}) + "\n" for n in range(6))
    )
    words = ["distil", str(base), "--prompts=prompts.jsonl", "--output=out.jsonl", "--max-new-tokens=12"]
    assert run([*words, "--samples=4", "--reward=exact"]) == 0
    rows = [json.loads(line) for line in Path("out.jsonl").read_text().splitlines()]
    assert rows
    assert all(row["prompt"].endswith("+1=") and row["completion"] and row["reward"] in (0, 1) for row in rows)
    assert "of 6 prompts" in capsys.readouterr().out
    assert run(words) == 2  # it is there
    assert run([*words, "--overwrite", "--least=5", "--reward=exact"]) == 0
    assert Path("out.jsonl").read_text() == ""


def test_distillation_by_logits(base: Path, tmp_path: Path) -> None:
    values = {
        "name": "student",
        "model": {"from": str(base)},
        "data": {"train": "text.txt", "val": "text.txt"},
        "batches": {"kind": "crops", "length": 12, "size": 4},
        "objective": {"kind": "distillation", "teacher": str(base), "temperature": 2.0, "weight": 0.5},
        "training": {"steps": 2, "precision": "float32", "optimizer": {"rate": 0.01}},
        "logging": {"every": 1},
    }
    (tmp_path / "text.txt").write_text("17+25=42 " * 60)
    values["data"] = {"train": str(tmp_path / "text.txt"), "split": {"tail": 0.2}}
    done = orrery.train(values, tmp_path / "student", quiet=True)
    first, second = done.records()
    assert first["train/divergence"] == pytest.approx(0, abs=1e-6)  # the student begins as its teacher
    assert second["train/divergence"] > 0
    assert second["train/next_token"] < first["train/next_token"]
    other = {**MODEL, "vocab_size": 400}
    with pytest.raises(UsageError, match="no decoder with the student's"):
        orrery.train(
            {**values, "model": {"family": "llama", "config": other}, "tokenizer": {"kind": "character"}},
            tmp_path / "x",
            quiet=True,
        )
