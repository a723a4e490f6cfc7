"""A tiny recipe of stages over a few lines of text: base, fine-tuning, reward model, DPO, PPO and GRPO."""

import json
from pathlib import Path
from typing import Any

import yaml

WORDS = ["cat", "dog", "mat", "log", "sun", "sea", "cup", "map"]
CONFIG = {
    "hidden_size": 16,
    "intermediate_size": 32,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "max_position_embeddings": 96,
    "tie_word_embeddings": True,
}


def rows(file: Path, content: list[dict[str, Any]]) -> str:
    """Write rows as JSON lines, and return the file."""
    file.write_text("".join(json.dumps(row) + "\n" for row in content), encoding="utf-8")
    return str(file)


def training(steps: int, rate: float = 3e-3, **more: Any) -> dict[str, Any]:
    """Return the sections of a stage that say how long it learns."""
    return {
        "training": {"steps": steps, "precision": "float32", "optimizer": {"kind": "adamw", "rate": rate}},
        "evaluation": {"every": steps},
        "checkpoints": {"every": more.pop("save", steps), "keep": 1},
        "logging": {"every": 1},
        **more,
    }


def values(folder: Path, steps: int = 4, save: int | None = None) -> dict[str, Any]:
    """Write the data, and return the recipe."""
    text = folder / "text.txt"
    text.write_text("\n".join(f"the {a} sees the {b}, and the {b} sees the {a}." for a in WORDS for b in WORDS) + "\n")
    pairs = [
        {"prompt": f"{a} {b}?", "chosen": f"the {b}", "rejected": f"no {a} no"} for a in WORDS for b in WORDS if a != b
    ]
    turns = [
        [{"role": role, "content": said} for a in (one, two) for role, said in (("user", a), ("assistant", f"the {a}"))]
        for one in WORDS
        for two in WORDS[:3]
    ]
    talk = rows(folder / "talk.jsonl", [{"messages": one} for one in turns])
    kept = rows(folder / "kept.jsonl", [{"messages": one} for one in turns[::5]])
    preferences = rows(folder / "pairs.jsonl", pairs)
    split = {"every": 5, "by": "prompt"}
    answering = {
        "model": {"from": "stage:sft"},
        "data": {
            "kind": "rollouts", "train": preferences, "split": split, "samples": 2, "max_new_tokens": 4,
        },
        "batches": {"kind": "rollouts", "length": 64, "size": 4},
        "rewards": [{"kind": "reward_model", "model": "stage:reward"}],
    }  # fmt: skip
    learning = {"data": {"kind": "preferences", "train": preferences, "split": split}, "model": {"from": "stage:sft"}}
    learning |= {"batches": {"kind": "pairs", "length": 64, "size": 4}}
    few = {"save": save or steps}
    return {
        "name": "toy",
        "stages": {
            # Written before what it begins from: the order follows from what begins from what.
            "ppo": {"task": "ppo", **answering, "objective": {"kind": "ppo"}, **training(2, 1e-3)},
            "base": {
                "model": {"family": "llama", "config": CONFIG},
                "tokenizer": {"kind": "byte_bpe", "vocabulary": 270, "chat": "chatml"},
                "data": {"train": str(text), "split": {"tail": 0.2}},
                "batches": {"kind": "crops", "length": 32, "size": 4},
                **training(steps, **few),
            },
            "sft": {
                "task": "sft",
                "model": {"from": "stage:base"},
                "data": {"kind": "conversations", "train": talk, "split": split},
                "batches": {"kind": "padded", "length": 96, "size": 4},
                "objective": {"kind": "sft"},
                **training(steps, **few),
            },
            "reward": {"task": "reward", **learning, "objective": {"kind": "reward"}, **training(2)},
            "dpo": {"task": "dpo", **learning, "objective": {"kind": "dpo"}, **training(2, 1e-3)},
            "grpo": {"task": "grpo", **answering, "objective": {"kind": "grpo"}, **training(2, 1e-3)},
        },
        "report": {
            "judge": "reward", "against": "sft", "dialogues": kept, "prompts": 5, "conversations": 3, "turns": 2,
            "max_new_tokens": 4, "shown": 2,
        },
    }  # fmt: skip


def recipe(folder: Path, content: dict[str, Any]) -> str:
    """Write a recipe, and return its file."""
    file = folder / "toy.yaml"
    file.write_text(yaml.safe_dump(content, sort_keys=False), encoding="utf-8")
    return str(file)
