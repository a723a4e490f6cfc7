"""Trainings of the course that take seconds, as files and recipes: sums of two digits, and kind or unkind words."""

import json
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

RIGHT = ({"kind": "arithmetic"},)
"""The reward: 1 where the sum is right."""
_CONFIG = {
    "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 1, "num_attention_heads": 2,
    "max_position_embeddings": 48, "tie_word_embeddings": True,
}  # fmt: skip
_KINDS = {"sft": ("conversations", "padded"), "reward": ("preferences", "pairs")}


def write_sums(folder: Path) -> None:
    """Write every sum of two digits below five with its answer, a right and a wrong one, and as a prompt."""
    sums = [(f"{a}+{b}=", str(a + b), str(a + b + 1)) for a, b in product(range(5), repeat=2)]
    rows: dict[str, list[dict[str, Any]]] = {
        "conversations": [{"messages": _said(asked, right)} for asked, right, _ in sums],
        "preferences": [{"prompt": asked, "chosen": right, "rejected": wrong} for asked, right, wrong in sums],
        "rollouts": [{"prompt": asked, "answer": right} for asked, right, _ in sums],
    }
    for kind, lines in rows.items():
        text = "".join(json.dumps(line) + "\n" for line in lines)
        (folder / f"{kind}.jsonl").write_text(text, encoding="utf-8")


def _said(asked: str, answer: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": asked}, {"role": "assistant", "content": answer}]


def stage(folder: Path, task: str, steps: int, rewards: Sequence[dict[str, Any]] = ()) -> dict[str, Any]:
    """Return the recipe of one training on what `write_sums` wrote: ``sft``, ``reward``, ``grpo`` or ``ppo``.

    All but ``sft`` begin from the model that ``sft`` left in the folder.
    """
    data, batches = _KINDS.get(task, ("rollouts", "rollouts"))
    template = {"sft": {"template": "chatml"}, "reward": {}}
    drawn = {"max_new_tokens": 3, "samples": 8 if task == "grpo" else 1}
    recipe: dict[str, Any] = {
        "name": task, "task": task, "seed": 1,
        "data": {"kind": data, "train": str(folder / f"{data}.jsonl"), **template.get(task, drawn)},
        "batches": {"kind": batches, "length": 32, "size": 16},
        "objective": {"kind": task},
        "training": {
            "steps": steps, "precision": "float32", "device": "cpu",
            "optimizer": {"kind": "adamw", "rate": 1e-2 if task == "sft" else 1e-3},
        },
        "logging": {"every": 1},
    }  # fmt: skip
    if task == "sft":
        bytes_alone = {"kind": "byte_bpe", "vocabulary": 259}
        return recipe | {"model": {"family": "llama", "config": _CONFIG}, "tokenizer": bytes_alone}
    recipe["model"] = {"from": str(folder / "sft")}
    return recipe | ({"rewards": list(rewards)} if rewards else {})


def sentiment(folder: Path) -> dict[str, Any]:
    """Write sentences with their sentiment, and return the recipe of a small BERT that learns it."""
    words = {"positive": "lovely gentle clever warm", "negative": "fickle cruel dull noisy"}
    rows = [
        {"text": f"{who} are {word} {what}", "label": label}
        for label, named in words.items()
        for who, word, what in product(("Cats", "Dogs", "Birds"), named.split(), ("creatures", "animals", "pets"))
    ]
    file = folder / "sentences.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    config = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 64}
    return {
        "name": "sentiment", "task": "classification", "seed": 1,
        "model": {"family": "bert", "config": {**config, "max_position_embeddings": 16}},
        "tokenizer": {"kind": "word", "frame": "bert"},
        "data": {"kind": "labelled", "train": str(file)},
        "batches": {"kind": "padded", "length": 12, "size": 32},
        "objective": {"kind": "classification"},
        "training": {
            "steps": 60, "precision": "float32", "device": "cpu", "optimizer": {"kind": "adamw", "rate": 3e-3},
        },
    }  # fmt: skip
