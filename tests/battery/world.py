"""The small world that every case starts from: texts, models, a run, vectors, shards, a conversation."""

import contextlib
import io
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import torch
import yaml

import tiny_models
from orrery.cli import program
from orrery.data.many_labels.features import TfIdf
from orrery.data.pictures.png import write_png
from orrery.exchange.saving.save import save_model
from orrery.families import load_family
from orrery.tasks.xbert.linear import Block
from orrery.tasks.xbert.ranker import Ranker
from orrery.tasks.xbert.saved import SavedRanker, save
from orrery.tasks.xbert.words import encoder_alone
from orrery.text.train import train_tokenizer

RECIPE: dict[str, Any] = {
    "name": "small",
    "model": {"family": "gpt2", "config": {"n_layer": 1, "n_embd": 8, "n_head": 2, "n_positions": 16}},
    "tokenizer": {"kind": "character"},
    "data": {"train": "text.txt", "split": {"tail": 0.2}},
    "batches": {"length": 8, "size": 2},
    "training": {"steps": 2, "optimizer": {"rate": 0.01}, "schedule": {"kind": "constant"}, "precision": "float32"},
    "logging": {"every": 1},
    "expect": {"metric": "val/loss", "bound": 9.0, "minutes": 1.0},
}
PAIRS: dict[str, Any] = {
    "name": "pairs",
    "model": {"family": "rnnsearch", "config": {"hidden_size": 8, "max_position_embeddings": 32}},
    "tokenizer": {"kind": "word"},
    "data": {"pairs": {"source": "source.txt", "target": "target.txt"}},
    "batches": {"kind": "pairs", "length": 16, "size": 2},
    "objective": {"kind": "seq2seq"},
    "training": {"steps": 1, "optimizer": {"rate": 0.01}, "schedule": {"kind": "constant"}},
}
VECTORS: dict[str, Any] = {
    "kind": "word2vec",
    "name": "words",
    "data": {"train": "text.txt"},
    "words": {"min_count": 1},
    "model": {"width": 8},
    "objective": {"kind": "full"},
    "training": {"epochs": 1},
}
HEADS = {"classes": "SequenceClassification", "tags": "TokenClassification", "spans": "QuestionAnswering"}
TEXT = "".join(
    f"The {animal} sat on the {place}; it was sorted, and the queue was not.\n"
    for animal in ("cat", "dog", "horse", "cow")
    for place in ("mat", "log", "field", "barn", "wall")
)
ITEMS: dict[str, list[dict[str, Any]]] = {
    "found.jsonl": [{"query": "the cat", "passage": f"a {animal} sat"} for animal in ("cat", "dog")],
    "judged.jsonl": [{"sentence1": "the cat", "sentence2": f"{n} cats", "score": n} for n in range(2)],
    "ordered.jsonl": [{"query": "the cat", "positive": ["a cat sat"], "negative": ["the wall"]}] * 2,
    "choices.jsonl": [{"question": "The cat sat on the", "choices": ["mat", "log"], "answer": "A"}] * 2,
    "swag.jsonl": [
        {"activity_label": "Cats", "ctx_a": "A cat.", "ctx_b": "it", "endings": ["sat", "ran"], "label": 0}
    ] * 2,
    "pairs.jsonl": [{"uid": "p", "term": "t", "good": "the cat sat", "bad": "the cat sit"}] * 2,
    "sums.jsonl": [{"question": "1 and 1?", "answer": "#### 2"}] * 2,
    "functions.jsonl": [{"text": "Add one.", "code": "def f(x):\n    return 2", "test_list": ["assert f(1) == 2"]}] * 2,
    "bodies.jsonl": [
        {
            "task_id": "a", "prompt": "def f(x):\n", "entry_point": "f", "canonical_solution": "    return x\n",
            "test": "def check(c):\n    assert c(1) == 1\n",
        }
    ] * 2,
    "exam/dev.jsonl": [{"subject": "cats", "question": "Who sat?", "choices": ["cat", "log"], "answer": 0}] * 2,
    "exam/test.jsonl": [{"subject": "cats", "question": "Who ran?", "choices": ["dog", "mat"], "answer": 0}] * 2,
}  # fmt: skip
"""What models are measured on, by file."""

TALK = [{"role": "user", "content": "hello"}, {"role": "assistant", "content": "good day"}]


def build(folder: Path) -> Path:
    """Make the world in a folder that does not exist yet."""
    folder.mkdir(parents=True)
    write_texts(folder)
    for name in ("llama", "other"):
        tiny_models.saved(folder / name, "llama")
    tiny_models.saved(folder / "rnnsearch", "rnnsearch", max_position_embeddings=96)
    for name, architecture in HEADS.items():
        tiny_models.saved(folder / name, "bert", architectures=[f"BertFor{architecture}"])
    tiny_models.saved(folder / "ranks", "bert", architectures=["BertForSequenceClassification"], id2label={"0": "fits"})
    save_items(folder / "items")
    save_labels(folder / "labels")
    tiny_models.saved(folder / "captions", "vision-encoder-decoder")
    for name, family in (("boxes", "yolos"), ("pixels", "segformer")):
        model = tiny_models.smallest(family, torch.float32)
        prepared = tiny_models.prepared_for(model)
        save_model(folder / name, model, family, load_family(family).TINY, pictures=prepared)
    tiny_models.TOKENIZER.save(folder / "tokenizer")
    for name, recipe in (("recipe", RECIPE), ("pairs", PAIRS), ("words", VECTORS)):
        (folder / f"{name}.yaml").write_text(yaml.safe_dump(recipe, sort_keys=False))
    with inside(folder):
        for words in (
            ["train", "recipe.yaml", "--output", "run"],
            ["train", "words.yaml", "--output", "vectors"],
            ["export", "vectors", "word2vec", "vectors.txt"],
            ["data", "prepare", "text.txt", "--tokenizer", "tokenizer", "-o", "shards"],
        ):
            quietly(words)
    return folder


def save_labels(folder: Path) -> None:
    """Save a classifier of two clusters with a ranker of the four labels in them beside it."""
    tiny_models.saved(folder, "bert", architectures=["BertForSequenceClassification"])
    width = tiny_models.ALL["bert"]["hidden_size"]
    features = TfIdf.learned(["the cat sat", "a dog"])
    columns = np.arange(len(features.numbers) + width + 1)
    blocks = [Block(columns, np.ones((len(columns), 2), np.float32))] * 2
    ranker = Ranker([np.array([0, 1]), np.array([2, 3])], blocks)
    save(folder, SavedRanker(["cat", "dog", "mat", "log"], features, ranker, 16, encoder_alone(2)))


def save_items(folder: Path) -> None:
    """Save a model over items, which are whole words."""
    tokenizer = train_tokenizer("word", ["cat dog mat log the"])
    config = {**tiny_models.CONFIGS["gpt2"], "vocab_size": tokenizer.size}
    save_model(folder, tiny_models.tiny("gpt2", torch.float32, **config), "gpt2", config, tokenizer)


def write_texts(folder: Path) -> None:
    """Write what is read: texts, rows, pairs, a conversation, and files that are no text."""
    (folder / "text.txt").write_text(TEXT)
    rows = [json.dumps({"text": line}) for line in TEXT.splitlines()]
    (folder / "rows.jsonl").write_text("\n".join(rows) + "\n")
    (folder / "table.csv").write_text("text,label\n" + "".join(f'"{line}",1\n' for line in TEXT.splitlines()))
    rows_of_two = "".join(f"{line.replace(',', '')},{n % 2}\n" for n, line in enumerate(TEXT.splitlines()) if line)
    (folder / "labelled.csv").write_text("text,label\n" + rows_of_two)
    short = "".join(f"{line.replace(',', '')[:12]},{n % 2}\n" for n, line in enumerate(TEXT.splitlines()) if line)
    (folder / "asked.csv").write_text("text,label\n" + short)
    (folder / "source.txt").write_text(TEXT)
    (folder / "target.txt").write_text(TEXT.lower())
    for name, items in ITEMS.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("".join(json.dumps(item) + "\n" for item in items))
    (folder / "talk.json").write_text(json.dumps(TALK))
    (folder / "chats.jsonl").write_text((json.dumps({"messages": TALK}) + "\n") * 4)
    pair = {"prompt": "the cat?", "chosen": "sat", "rejected": "the log"}
    (folder / "preferred.jsonl").write_text((json.dumps(pair) + "\n") * 4)
    (folder / "plain.jinja").write_text("{% for message in messages %}{{ message['content'] }}\n{% endfor %}")
    (folder / "parts.py").write_text('"""Parts of one\'s own: none."""\n')
    (folder / "stdin").write_text("hello\nthe cat\n")
    (folder / "picture.png").write_bytes(write_png(torch.full((3, 12, 12), 77, dtype=torch.uint8)))
    (folder / "binary").write_bytes(bytes(range(256)) * 40)
    (folder / "empty").write_bytes(b"")
    (folder / "folder").mkdir()
    (folder / "folder" / "mine.txt").write_text("this is mine")
    (folder / "umlauts.txt").write_text("äöü 日本 🙂\n", encoding="utf-8")
    (folder / "dangling").symlink_to("nowhere/at-all")
    (folder / "loop").symlink_to("loop")


@contextlib.contextmanager
def inside(folder: Path) -> Any:
    """Work in a folder."""
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def quietly(words: list[str]) -> None:
    """Run a command that must succeed."""
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()) as said:
        code = program.run(words)
    assert code == 0, (words, said.getvalue())
