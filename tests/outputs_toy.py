"""A folder with a tiny one of everything that verbs read, and the command line of every verb that writes."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
import yaml

import tiny_models
from orrery.models.word2vec.files import write_binary
from orrery.models.word2vec.vectors import Vectors

WORDS = ["the", "cat", "sat", "on", "a", "mat", "and", "saw", "one", "dog", "run", "to", "some", "big", "red", "barn"]
TRAIN = {
    "name": "toy",
    "model": {
        "family": "llama",
        "config": {
            "hidden_size": 16,
            "intermediate_size": 24,
            "num_hidden_layers": 1,
            "num_attention_heads": 2,
            "max_position_embeddings": 16,
        },
    },
    "tokenizer": {"kind": "character"},
    "data": {"train": "text.txt", "split": {"tail": 0.2}},
    "batches": {"kind": "crops", "length": 8, "size": 4},
    "training": {
        "steps": 12,
        "precision": "float32",
        "device": "cpu",
        "optimizer": {"kind": "adamw", "rate": 0.003},
        "schedule": {"kind": "constant"},
    },
    "evaluation": {"every": 6, "batches": 1},
    "checkpoints": {"every": 3, "keep": 2},
    "logging": {"every": 2},
}
LADDER = {
    **TRAIN,
    "name": "ladder",
    "ladder": {
        "sizes": [{"hidden_size": width} for width in (8, 12, 16, 20)],
        "tokens_per_parameter": 0.1,
        "seeds": [1, 2],
    },
}
VECTORS = {
    "name": "vectors",
    "kind": "word2vec",
    "data": {"train": "text.txt"},
    "words": {"min_count": 1},
    "model": {"width": 8, "window": 2},
    "training": {"epochs": 2},
}
SMALL = "hidden_size=16 intermediate_size=24 num_hidden_layers=1 num_attention_heads=2 max_position_embeddings=64"
TINY = " ".join(f"--model.config.{setting}" for setting in SMALL.split(" "))


@dataclass(frozen=True)
class Writing:
    """A command that writes.

    Attributes:
        words: the command line, with OUT for what it writes.
        folder: whether that is a folder.
        inputs: what it reads, beside what every folder has.
        slow: takes seconds, not tenths of one.
    """

    words: str
    folder: bool = False
    inputs: Sequence[str] = ()
    slow: bool = False

    def line(self, out: str | Path) -> list[str]:
        """Return the words with the place to write to."""
        return [str(out) if word == "OUT" else word for word in self.words.split()]


VERBS = {
    "train": Writing("train train.yaml --output OUT", folder=True, inputs=["train.yaml", "text.txt"]),
    "train-vectors": Writing("train vectors.yaml --output OUT", folder=True, inputs=["vectors.yaml", "text.txt"]),
    "tokenizer-train": Writing("tokenizer train text.txt --kind character -o OUT", folder=True, inputs=["text.txt"]),
    "tokenizer-compare": Writing(
        "tokenizer compare text.txt --tokenizer llama/tokenizer.json --json OUT",
        inputs=["text.txt", "llama/tokenizer.json"],
    ),
    "data-clean": Writing("data clean text.jsonl --exact -o OUT", inputs=["text.jsonl"]),
    "data-clean-report": Writing("data clean text.jsonl --exact -o kept --report OUT", inputs=["text.jsonl"]),
    "data-prepare": Writing(
        "data prepare text.jsonl --tokenizer llama --every 2 -o OUT", folder=True, inputs=["text.jsonl", "llama"]
    ),
    "evaluate-output": Writing(
        "evaluate rnnsearch translation --source source.txt --target target.txt --num-beams 1 --max-new-tokens 8 "
        "--output OUT",
        inputs=["source.txt", "target.txt", "rnnsearch/config.json"],
    ),
    "evaluate-items": Writing("evaluate llama choices choices.jsonl --output OUT", inputs=["choices.jsonl"]),
    "translate-alignment": Writing(
        "translate rnnsearch cat --num-beams 1 --max-new-tokens 4 --alignment OUT", inputs=["rnnsearch/config.json"]
    ),
    "average": Writing("average llama OUT --others other", folder=True, inputs=["llama", "other"]),
    "quantise": Writing("quantise llama OUT", folder=True, inputs=["llama"]),
    "export-gguf": Writing("export llama gguf OUT", inputs=["llama/config.json", "llama/model.safetensors"]),
    "export-hf": Writing("export llama hf OUT", folder=True, inputs=["llama"]),
    "export-word2vec": Writing("export vectors.bin word2vec OUT", inputs=["vectors.bin"]),
    "import": Writing("import llama OUT", folder=True, inputs=["llama"]),
    "import-word2vec": Writing("import vectors.bin OUT", folder=True, inputs=["vectors.bin"]),
    "neighbours-map": Writing("neighbours vectors.bin cat dog --n 3 --map OUT", inputs=["vectors.bin"]),
    "parity": Writing("parity llama --against llama --json OUT", inputs=["llama/config.json"]),
    "see": Writing("see llama cat --output OUT", inputs=["llama/config.json", "llama/model.safetensors"]),
    "patch": Writing(
        "patch llama cat dog --answer t --output OUT", inputs=["llama/config.json", "llama/model.safetensors"]
    ),
    "lab": Writing("lab bottleneck --quick --seeds 0 --output OUT", folder=True, slow=True),
    "verify": Writing("verify --family elman_rnn --json OUT", slow=True),
    "compare": Writing(
        "compare --models ngram,nplm --text text.txt --steps 3 --parameters 20000 --tokenizer.vocabulary 260 "
        "--batches.length 8 --batches.size 4 --training.precision float32 --probe-steps 20 --output OUT",
        folder=True, inputs=["text.txt"], slow=True,
    ),
    "ladder": Writing("ladder ladder.yaml --output OUT", folder=True, inputs=["ladder.yaml", "text.txt"], slow=True),
    "demo": Writing(
        f"demo --data.train docs --training.steps 4 --training.schedule.warmup 1 --output OUT {TINY} "
        "--batches.length 64 --batches.size 4 --tokenizer.vocabulary 280",
        folder=True, inputs=["docs"], slow=True,
    ),
}  # fmt: skip


def prepare(folder: Path) -> None:
    """Write what the commands read."""
    rng = random.Random(0)
    lines = [" ".join(rng.choices(WORDS, k=8)) for _ in range(120)]
    text = "\n".join(lines) + "\n"
    (folder / "text.txt").write_text(text)
    (folder / "text.jsonl").write_text("".join(f'{{"text": "{line}"}}\n' for line in lines))
    (folder / "docs").mkdir()
    for number in range(40):
        (folder / f"docs/{number}.txt").write_text("\n".join(rng.choices(lines, k=40)))
    (folder / "source.txt").write_text("cat\ndog\n")
    (folder / "target.txt").write_text("tac\ngod\n")
    question = '{"question": "the cat", "choices": ["sat", "ran"], "answer": "A"}\n'
    (folder / "choices.jsonl").write_text(2 * question)
    (folder / "train.yaml").write_text(yaml.safe_dump(TRAIN))
    (folder / "ladder.yaml").write_text(yaml.safe_dump(LADDER))
    (folder / "vectors.yaml").write_text(yaml.safe_dump(VECTORS))
    tiny_models.saved(folder / "llama", "llama")
    tiny_models.saved(folder / "other", "llama")
    tiny_models.saved(folder / "rnnsearch", "rnnsearch", torch.float32)
    matrix = np.random.default_rng(0).normal(size=(len(WORDS), 8)).astype(np.float32)
    write_binary(Vectors(WORDS, matrix), folder / "vectors.bin")


def tree(folder: Path) -> dict[str, bytes | None]:
    """Return every name below a folder with its bytes; None for a folder."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() if path.is_file() else None
        for path in sorted(folder.rglob("*"))
    }
