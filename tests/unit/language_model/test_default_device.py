"""Whatever ``torch.set_default_device`` a program has called, every door answers as it does without it."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

import orrery
from orrery.language_model.load import load
from orrery.models.default_device import cpu_by_default
from tiny_models import saved

RECIPE: dict[str, Any] = {
    "name": "small",
    "model": {"family": "gpt2", "config": {"n_layer": 1, "n_embd": 8, "n_head": 2, "n_positions": 16}},
    "tokenizer": {"kind": "character"},
    "batches": {"length": 8, "size": 2},
    "training": {
        "steps": 2, "optimizer": {"rate": 0.01}, "schedule": {"kind": "constant"}, "precision": "float32",
        "device": "cpu",
    },
}  # fmt: skip
PAIR = ("the", " cat")
FAMILIES = {"llama": "", "gpt2": "", "rnnsearch": "", "bert": "", "classes": "SequenceClassification",
            "tags": "TokenClassification", "spans": "QuestionAnswering"}  # fmt: skip


def lm(place: Path, name: str) -> Any:
    return load(place / name, "cpu", "float32", say=lambda line: None)


def piped(task: str, name: str, **asked: Any) -> Callable[[Path], Any]:
    def ask(place: Path) -> Any:
        pipe = orrery.pipeline(task, str(place / name), device="cpu")
        return pipe(**asked) if asked else pipe(["the cat", "a"])

    return ask


def trained(place: Path, folder: Path, kind: str) -> list[float]:
    batches = {**RECIPE["batches"], "kind": kind}
    data = {"train": str(place / "text.txt"), "split": {"tail": 0.2}}
    run = orrery.train({**RECIPE, "batches": batches, "data": data}, folder, quiet=True)
    return [json.loads(line)["train/loss"] for line in (run.folder / "metrics.jsonl").read_text().splitlines()]


DOORS: dict[str, Callable[[Path], Any]] = {
    "weights": lambda place: sum(float(p.detach().double().sum()) for p in lm(place, "llama").model.parameters()),
    "generate": lambda place: lm(place, "llama").generate("the cat", max_new_tokens=4),
    "generate, limited": lambda place: lm(place, "gpt2").generate(
        "the cat", max_new_tokens=4, top_k=3, top_p=0.9, repetition_penalty=1.2, bad_words=["a"]
    ),
    "a form": lambda place: lm(place, "llama").generate("a", regex="ab|cd", max_new_tokens=4),
    "search": lambda place: lm(place, "llama").search(["the cat"], num_beams=3, max_new_tokens=4)[0][0].text,
    "contrastive search": lambda place: lm(place, "llama").contrastive_search("the cat", max_new_tokens=4).text,
    "speculate": lambda place: lm(place, "llama").speculate("the cat", "lookup", max_new_tokens=4).answer.text,
    "score": lambda place: lm(place, "llama").score("the cat").total,
    "likelihoods": lambda place: str(lm(place, "llama").likelihoods([PAIR])),
    "logits": lambda place: lm(place, "llama").logits([[1, 2, 3]]).sum().item(),
    "hidden": lambda place: lm(place, "bert").hidden([[1, 2, 3]]).sum().item(),
    "trace": lambda place: lm(place, "llama").trace("the cat")["blocks.0.attention.pattern"].sum().item(),
    "checks": lambda place: str(lm(place, "llama").trace("the cat").checks),
    "translate": lambda place: lm(place, "rnnsearch").translate(["the cat", "a"], max_new_tokens=4),
    "cloze": lambda place: str(lm(place, "llama").cloze("the __ sat", ["cat", "dog"])),
    "see": lambda place: len(str(orrery.see(lm(place, "llama"), "the cat"))),
    "classify": piped("text-classification", "classes"),
    "tag": piped("ner", "tags"),
    "answer": piped("question-answering", "spans", question="the?", context="the cat sat"),
    "embed": piped("feature-extraction", "bert"),
    "write": piped("text-generation", "llama"),
}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    for name, head in FAMILIES.items():
        more = {"architectures": [f"BertFor{head}"]} if head else {}
        saved(folder / name, "bert" if head else name, **more)
    (folder / "text.txt").write_text("the cat sat on the mat\n" * 40)
    return folder


@pytest.fixture
def elsewhere() -> Iterator[Callable[[], None]]:
    """Return what makes another device the default, on which nothing can be computed."""
    yield lambda: torch.set_default_device("meta")
    torch.set_default_device(None)


@pytest.mark.parametrize("door", DOORS)
def test_a_door_answers_whatever_the_default_device(door: str, place: Path, elsewhere: Callable[[], None]) -> None:
    expected = DOORS[door](place)
    elsewhere()
    assert DOORS[door](place) == expected
    assert torch.get_default_device().type == "meta"


@pytest.mark.parametrize("kind", ["crops", "packed", "padded"])
def test_a_run_learns_the_same(kind: str, place: Path, tmp_path: Path, elsewhere: Callable[[], None]) -> None:
    expected = trained(place, tmp_path / "one", kind)
    elsewhere()
    assert trained(place, tmp_path / "two", kind) == expected


def test_where_the_default_is_the_cpu_nothing_is_entered() -> None:
    with cpu_by_default() as entered:
        assert entered is None
