"""A recipe with a mixture: it learns from each corpus by weight, says so, and resumes with the same bytes."""

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from orrery.checkpoints.store import CheckpointStore
from orrery.cli.train.app import plan, run
from orrery.errors import UsageError
from orrery.recipes.config import Recipe
from orrery.recipes.read import as_yaml, check_recipe, load_recipe, set_dotted
from orrery.runs.assemble import assemble
from orrery.runs.conclusion import conclusion, epochs
from orrery.runs.execute import execute
from orrery.training.progress import Silent

LETTERS = {"abc": "abcabdcab ", "xyz": "xyzzyxzyx "}


@pytest.fixture
def texts(tmp_path: Path) -> dict[str, Path]:
    paths = {name: tmp_path / f"{name}.jsonl" for name in LETTERS}
    for (name, path), count in zip(paths.items(), (40, 7), strict=True):
        rows = [json.dumps({"text": LETTERS[name] * (1 + i % 3)}) for i in range(count)]
        path.write_text("\n".join(rows))
    return paths


def recipe(texts: dict[str, Path], **dotted: Any) -> Recipe:
    mixture = [
        {"train": str(path), "weight": w, "name": name} for (name, path), w in zip(texts.items(), (1, 3), strict=True)
    ]
    values: dict[str, Any] = {
        "name": "mixed",
        "model": {"family": "llama", "dropout": 0.1},
        "tokenizer": {"kind": "character"},
        "data": {"mixture": mixture, "split": {"every": 5}},
        "batches": {"kind": "packed", "length": 32, "size": 4},
        "training": {"steps": 6, "precision": "float32", "device": "cpu"},
        "evaluation": {"every": 3},
        "checkpoints": {"every": 3, "keep": 3},
        "logging": {"every": 1},
    }
    size = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
    set_dotted(values, "model.config", {**size, "max_position_embeddings": 32})
    set_dotted(values, "training.optimizer", {"kind": "adamw", "rate": 0.01})
    set_dotted(values, "training.schedule", {"kind": "constant"})
    for key, value in dotted.items():
        set_dotted(values, key.replace("__", "."), value)
    return check_recipe(values, "mixed")


def records(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def weights(folder: Path) -> dict[str, bytes]:
    last = CheckpointStore(folder / "checkpoints").path(6)
    return {path.name: path.read_bytes() for path in last.glob("*.safetensors")}


@pytest.mark.parametrize("kind", ["packed", "padded", "crops"])
def test_stopped_and_resumed_equals_uninterrupted(kind: str, texts: dict[str, Path], tmp_path: Path) -> None:
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    run(recipe(texts, batches__kind=kind), whole, resume=False, overwrite=False)
    run(recipe(texts, batches__kind=kind, training__steps=3), cut, resume=False, overwrite=False)
    run(recipe(texts, batches__kind=kind), cut, resume=True, overwrite=False)
    assert weights(cut) == weights(whole)
    assert len(weights(whole)) == 2
    learned = [
        [{k: v for k, v in r.items() if k.startswith(("epochs", "train"))} for r in records(f)] for f in (whole, cut)
    ]
    assert learned[0] == learned[1]


def test_metrics_and_summary_say_the_epochs(texts: dict[str, Path], tmp_path: Path, capsys: Any) -> None:
    run(recipe(texts), tmp_path / "run", resume=False, overwrite=False)
    source = assemble(recipe(texts)).parts.source
    for record in records(tmp_path / "run"):
        drawn = sum(source.shares.draw(n)[0] for n in range(record["step"] * 4))
        assert record["epochs/xyz"] == pytest.approx(drawn / source.components[1].source.rows_per_epoch)
    assert record["epochs/xyz"] > record["epochs/abc"] > 0
    shown = capsys.readouterr().err
    assert f"epochs elapsed: abc {record['epochs/abc']:.3f}, xyz {record['epochs/xyz']:.3f}" in shown
    assert epochs([]) == epochs([{"step": 1}]) == []
    assert conclusion(recipe(texts), []) == []


def test_the_plan_counts_tokens_and_epochs_of_each_corpus(texts: dict[str, Path], tmp_path: Path) -> None:
    assembly = assemble(recipe(texts))
    lines = plan(recipe(texts), assembly, tmp_path)
    for name, count in assembly.parts.epochs(6).items():
        assert f"{count:.2f} of {name}: {assembly.corpus_tokens[name]:,} tokens" in lines
    alone = recipe(texts, data={"train": str(texts["abc"])})
    assert "epochs        0." in plan(alone, assemble(alone), tmp_path)


def test_rows_hold_one_corpus_each_and_both_validate(texts: dict[str, Path]) -> None:
    assembly = assemble(recipe(texts))
    decode = assembly.tokenizer.decode
    for step in range(10):
        for row in assembly.parts.source.batch(step)["ids"]:
            letters = set(decode(row.tolist())) - set(" ")
            assert letters <= set("abcd") or letters <= set("xyz")
    held_back = decode(assembly.parts.validation.source.ids.tolist())
    assert "abc" in held_back
    assert "xyz" in held_back


def test_a_mixture_of_one_is_that_corpus(texts: dict[str, Path]) -> None:
    one = recipe(texts, data={"mixture": [{"train": str(texts["abc"]), "weight": 7}]})
    assert list(assemble(one).parts.epochs(10)) == [str(texts["abc"])]


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({}, "exactly one of train and mixture"),
        ({"train": "a", "mixture": [{"train": "b", "weight": 1}]}, "exactly one of train and mixture"),
        ({"mixture": []}, "a mixture needs corpora"),
        ({"mixture": [{"train": "a", "weight": 1}, {"train": "a", "weight": 2}]}, "different names"),
        ({"mixture": [{"train": "a", "weight": 0}]}, "data.mixture.0.weight"),
        ({"mixture": [{"train": "a", "weight": -1}]}, "data.mixture.0.weight"),
        ({"mixture": [{"train": "a", "weight": float("nan")}]}, "data.mixture.0.weight"),
        ({"mixture": [{"train": "a"}]}, "data.mixture.0.weight"),
        ({"mixture": [{"train": "a", "wieght": 1}]}, "did you mean 'weight'"),
    ],
)
def test_a_mixture_without_meaning_is_refused_by_key(data: dict[str, Any], words: str, texts: dict[str, Path]) -> None:
    with pytest.raises(UsageError) as caught:
        recipe(texts, data=data)
    assert words in caught.value.message


def test_a_resumed_run_keeps_its_mixture(texts: dict[str, Path], tmp_path: Path) -> None:
    run(recipe(texts, training__steps=3), tmp_path / "run", resume=False, overwrite=False)
    path = tmp_path / "other.yaml"
    path.write_text(as_yaml(recipe(texts)).replace("weight: 3.0", "weight: 2.0"))
    with pytest.raises(UsageError, match=r"data\.mixture"):
        run(load_recipe(path), tmp_path / "run", resume=True, overwrite=False)


class Interrupting(Silent):
    """Keeps what is said, and ends the process politely as soon as a loss on examples held back is known."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def line(self, text: str) -> None:
        self.said.append(text)

    def progress(self, step: int, steps: int, record: Any) -> None:
        if step == 3:
            os.kill(os.getpid(), signal.SIGTERM)


def test_a_run_that_was_stopped_is_not_judged_by_its_recipe(texts: dict[str, Path], tmp_path: Path) -> None:
    expecting = recipe(texts, expect={"metric": "val/loss", "bound": 0.001})
    stopped, whole = Interrupting(), Interrupting()
    assert execute(expecting, tmp_path / "run", stopped, resume=False, overwrite=False).signal == signal.SIGTERM
    assert f"orrery train {tmp_path / 'run'} --resume continues" in stopped.said
    assert any(line.startswith("epochs elapsed") for line in stopped.said)
    assert not any("missed" in line for line in stopped.said)
    execute(expecting, tmp_path / "run", whole, resume=True, overwrite=False)
    assert sum("expected at most 0.001: missed" in line for line in whole.said) == 1
