"""Settings that are right alone and mean nothing together are refused, with the numbers."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from battery import world
from orrery.data.sources.text import SplitSettings, TextSettings, TextSource
from orrery.errors import DataError, MachineError, ModelFileError, OrreryError, RunError, UsageError
from orrery.recipes.config import TokenizerSettings
from orrery.recipes.read import check_as, check_recipe, set_dotted
from orrery.recipes.word_vectors import WordVectorRecipe
from orrery.runs.building import make_tokenizer
from orrery.runs.conclusion import conclusion
from orrery.runs.word_vectors import train_word_vectors
from orrery.training.folder import RunFolder
from orrery.training.precision import find_device
from orrery.training.progress import Silent
from training_toy import toy_recipe


def recipe(base: dict[str, Any] = world.RECIPE, **dotted: Any) -> Any:
    values = json.loads(json.dumps(base))
    for key, value in dotted.items():
        set_dotted(values, key.replace("__", "."), value)
    schema = check_as if base is world.VECTORS else check_recipe
    return schema(WordVectorRecipe, values, "it") if schema is check_as else check_recipe(values, "it")


@pytest.mark.parametrize(
    ("dotted", "reason"),
    [
        ({"training__steps": True}, "training.steps: true is no number"),
        ({"training__optimizer__betas": [0.9]}, "training.optimizer.betas"),
        ({"training__schedule": {"kind": "constant", "warmup": 3}}, "warmup 3 and decay 0 does not fit into 2 steps"),
        ({"training__schedule": {"kind": "wsd", "warmup": 1, "decay": 2}}, "does not fit into 2 steps"),
        ({"training__schedule": {"kind": "noam", "width": 8}}, "warmup 4,000"),
        ({"expect__metric": "val/accuracy"}, "val/accuracy is never measured here; known: .*val/bpb"),
        ({"data": {"train": "text.txt"}}, "val/loss is never measured here"),
        ({"seed": 2**63}, "seed"),
        ({"name": "x" * 300}, "name"),
    ],
)
def test_a_recipe_that_cannot_be_meant(dotted: dict[str, Any], reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        recipe(**dotted)


NOTHING_HELD_BACK = {
    "text": {"train": "text.txt"},
    "several": {"mixture": [{"train": "a", "weight": 1}, {"train": "b", "weight": 2}]},
    "conversations": {"kind": "conversations", "train": "chats.jsonl"},
}
MEASURING = {
    "best": "loss",
    "patience": 3,
    "metrics": [{"kind": "accuracy"}],
    "sample": "the cat",
}


@pytest.mark.parametrize("asked", [*MEASURING, "final"])
@pytest.mark.parametrize("kind", NOTHING_HELD_BACK)
def test_what_is_measured_of_nothing_is_refused(kind: str, asked: str) -> None:
    key = "training__final" if asked == "final" else f"evaluation__{asked}"
    value = MEASURING.get(asked, "best")
    plain: dict[str, Any] = {"data": NOTHING_HELD_BACK[kind], "expect": None, "evaluation": {}}
    if kind == "conversations":
        plain |= {"objective": "sft", "tokenizer": {"file": "folder"}}
    assert recipe(**plain)
    with pytest.raises(
        UsageError, match=rf"{key.replace('__', '.')}.*: no data are held back to measure on; name data.val"
    ):
        recipe(**plain, **{key: value})


def test_metrics_that_are_measured() -> None:
    mixture = {"mixture": [{"train": "a", "weight": 1}, {"train": "b", "weight": 2}], "val": "c"}
    for metric in ("val/bpb", "epochs/a", "train/loss"):
        assert recipe(data=mixture, expect__metric=metric)
    assert recipe(world.PAIRS, expect={"metric": "epochs/pairs", "bound": 1})
    assert recipe(world.VECTORS, expect={"metric": "loss", "bound": 1})
    with pytest.raises(UsageError, match="val/loss is never measured"):
        recipe(world.VECTORS, expect={"metric": "val/loss", "bound": 1})


def test_a_metric_that_is_no_number_is_missed() -> None:
    expecting = recipe()
    assert "missed" in conclusion(expecting, [{"step": 1, "val/loss": None}])[0]
    assert "met" in conclusion(expecting, [{"step": 1, "val/loss": None}, {"step": 2, "val/loss": 1.0}])[0]
    assert "not measured yet" in conclusion(expecting, [{"step": 1}])[0]
    assert conclusion(toy_recipe(), []) == []


@pytest.mark.parametrize("kind", ["byte_bpe", "char_bpe", "word", "character"])
def test_a_vocabulary_that_the_text_cannot_give(kind: str) -> None:
    with pytest.raises(DataError, match=r"tokenizer\.vocabulary asks for 5,000"):
        make_tokenizer(TokenizerSettings(kind=kind, vocabulary=5000), ["the cat sat on the mat"])
    assert make_tokenizer(TokenizerSettings(kind=kind), ["the cat sat on the mat"]).size


def test_a_split_that_holds_nothing_back(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps({"text": f"row {n}"}) + "\n" for n in range(5)))
    settings = TextSettings(train=str(tmp_path / "rows.jsonl"), split=SplitSettings(every=1_000_000))
    with pytest.raises(DataError, match="holds nothing back of 5 documents"):
        TextSource.read(settings)


def test_a_device_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    with pytest.raises(MachineError, match=r"training\.device is cuda"):
        find_device("cuda")
    assert find_device("auto") == find_device("cpu") == "cpu"


@pytest.mark.parametrize(
    "content",
    [b"\xff\xfe\n", b"[1]\n", b'{"loss": 1}\n', b'{"step": "x"}\n', b'{"step": NaN}\n', b"[" * 90_000 + b"\n"],
)
def test_metrics_that_are_none(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "metrics.jsonl").write_bytes(b'{"step": 1}\n' + content + b"\n")
    with pytest.raises(ModelFileError, match="holds no metrics of a run"):
        RunFolder(tmp_path).rewind(2)


def test_metrics_that_are_a_folder(tmp_path: Path) -> None:
    (tmp_path / "metrics.jsonl").mkdir()
    with pytest.raises(OrreryError, match="metrics"):
        RunFolder(tmp_path).records()


def test_word_vectors_that_diverge(tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text(world.TEXT)
    settings = recipe(world.VECTORS, data__train=str(tmp_path / "text.txt"), training__rate=1e6)
    (tmp_path / "run").mkdir()
    with np.errstate(all="ignore"), pytest.raises(RunError, match=r"epoch 1: the loss is no finite number"):
        train_word_vectors(settings, RunFolder(tmp_path / "run"), Silent())
