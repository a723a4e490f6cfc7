"""Save small runs, their checkpoints, final models and specs with the present source, for later sources to read.

    .venv/bin/python tests/saved_before/make.py NAME      (writes tests/saved_before/NAME.zip)

It was run once for each archive beside it. What stands there is never made again: that is the point of it.
`tests/system/test_saved_before.py` loads all of it, continues every run, and compares.
"""

import json
import os
import platform
import random
import shutil
import signal
import sys
import tempfile
from contextlib import chdir
from dataclasses import replace
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
WORDS = (
    *("the", "a", "cat", "dog", "sun", "boat", "river", "sees", "finds", "leaves"),
    *("old", "green", "small", "runs", "sleeps", "and", "then", "near", "under"),
)
STOP = 5
TOKENS = [[3, 1, 4, 2]]
STEPS = 9

TEXT = {
    "tokenizer": {"kind": "character"},
    "data": {"train": "text.txt", "split": {"tail": 0.1}},
    "batches": {"length": 16, "size": 4},
}
PAIRS = {
    "tokenizer": {"kind": "word", "lowercase": True},
    "data": {"pairs": {"source": "source.txt", "target": "target.txt"}},
    "batches": {"kind": "pairs", "length": 16, "size": 6},
    "objective": {"kind": "seq2seq", "label_smoothing": 0.1},
}
LLAMA = {
    **{"hidden_size": 8, "intermediate_size": 12, "num_hidden_layers": 2, "num_attention_heads": 2},
    **{"num_key_value_heads": 1, "max_position_embeddings": 32},
}
RECURRENT = {"hidden_size": 8, "max_position_embeddings": 32}
RECIPES: dict[str, dict[str, Any]] = {
    "llama-crops": {"model": {"family": "llama", "config": LLAMA}, **TEXT},
    "gpt2-packed-mixture": {
        "model": {
            "family": "gpt2",
            "config": {"n_embd": 8, "n_layer": 1, "n_head": 2, "n_positions": 32},
            "dropout": 0.1,
        },
        "tokenizer": {"kind": "byte_bpe", "vocabulary": 270},
        "data": {
            "mixture": [
                {"train": "folder", "weight": 2, "name": "one"},
                {"train": "text.txt", "weight": 1, "name": "two"},
            ],
            "split": {"every": 4},
        },
        "batches": {"kind": "packed", "length": 16, "size": 4},
    },
    "bloom-padded": {
        "model": {"family": "bloom", "config": {"hidden_size": 8, "n_layer": 1, "n_head": 2}},
        **TEXT,
        "data": {"train": "folder", "val": "text.txt"},
        "batches": {"kind": "padded", "length": 16, "size": 4},
    },
    "lstm-crops": {"model": {"family": "lstm", "config": {**RECURRENT, "num_layers": 1}}, **TEXT},
    "llama-shards": {
        "model": {"family": "llama", "config": LLAMA},
        **TEXT,
        "tokenizer": {"file": "tokenizer/tokenizer.json"},
        "data": {"shards": "shards"},
    },
    "transformer-pairs": {
        "model": {
            "family": "transformer",
            "config": {"d_model": 8, "num_layers": 1, "num_heads": 2, "d_ff": 12, "max_position_embeddings": 32},
        },
        **PAIRS,
    },
    "rnnsearch-pairs": {"model": {"family": "rnnsearch", "config": RECURRENT}, **PAIRS},
    "luong-pairs": {"model": {"family": "luong", "config": {**RECURRENT, "num_layers": 1}}, **PAIRS},
    "sutskever-pairs": {"model": {"family": "sutskever", "config": {**RECURRENT, "num_layers": 1}}, **PAIRS},
    "marian-pairs": {
        "model": {
            "family": "marian",
            "config": {
                **{"d_model": 8, "encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 2},
                **{"decoder_attention_heads": 2, "encoder_ffn_dim": 12, "decoder_ffn_dim": 12},
                "max_position_embeddings": 32,
            },
        },
        **PAIRS,
    },
}
MORE: dict[str, dict[str, Any]] = {
    "llama-lora": {
        "model": {"from": "trained/llama-crops/whole", "adapter": {"kind": "lora", "rank": 2}},
        **{key: value for key, value in TEXT.items() if key != "tokenizer"},
    },
    "mamba-crops": {
        "model": {
            "family": "mamba",
            "config": {"hidden_size": 8, "state_size": 4, "num_hidden_layers": 1, "time_step_rank": 2},
        },
        **TEXT,
    },
    "mixtral-crops": {
        "model": {"family": "mixtral", "config": {**LLAMA, "num_local_experts": 3, "num_experts_per_tok": 2}},
        **TEXT,
    },
    "bert-masked": {
        "model": {
            "family": "bert",
            "config": {
                **{"hidden_size": 8, "intermediate_size": 12, "num_hidden_layers": 1, "num_attention_heads": 2},
                "max_position_embeddings": 32,
            },
        },
        **TEXT,
        "tokenizer": {"kind": "character", "frame": "bert"},
        "objective": {"kind": "masked"},
    },
}
"""What the first archive lacks; those after it have these runs too, and models in whole numbers."""
QUANTISED = {"quantised-8": ["--bits", "8"], "quantised-4": ["--bits", "4", "--group", "4"]}
WORD_VECTORS = {
    "kind": "word2vec",
    "name": "word2vec",
    "data": {"train": "text.txt"},
    "words": {"min_count": 1, "sample": 0.0},
    "model": {"width": 8, "window": 2},
    "training": {"epochs": 2},
}
TRAINING = {
    "steps": STEPS,
    "micro_batch": 3,
    "precision": "float32",
    "device": "cpu",
    "optimizer": {"kind": "adamw", "rate": 0.01},
    "schedule": {"kind": "cosine", "warmup": 2},
}


class Interrupted:
    """A source that stops its training, as Ctrl-C does, when a step is asked for."""

    def __init__(self, source: Any) -> None:
        self.source = source

    def __getattr__(self, name: str) -> Any:
        return getattr(self.source, name)

    def batch(self, step: int) -> Any:
        """Give the batch; at one step interrupt first."""
        if step == STOP:
            signal.raise_signal(signal.SIGINT)
        return self.source.batch(step)


def main() -> int:
    """Write the archive of one name."""
    target = HERE / f"{sys.argv[1]}.zip"
    os.environ.update(CUDA_VISIBLE_DEVICES="", OMP_NUM_THREADS="1")
    with tempfile.TemporaryDirectory() as work, chdir(work):
        write_data()
        for name, recipe in {**RECIPES, **MORE}.items():
            Path(f"{name}.yaml").write_text(json.dumps({"name": name, **recipe, "training": TRAINING}))
            train_twice(name)
        Path("word2vec.yaml").write_text(json.dumps(WORD_VECTORS))
        command(["train", "word2vec.yaml", "--output", "trained/word2vec"])
        for name, words in QUANTISED.items():
            command(["quantise", "trained/llama-crops/whole", name, *words])
        write_specs(Path("specs.json"))
        models = {name: Path(f"trained/{name}/whole") for name in (*RECIPES, *MORE)}
        models |= {name: Path(name) for name in QUANTISED}
        Path("answers.json").write_text(json.dumps({name: answer(path) for name, path in models.items()}))
        for left in Path("trained").rglob("lock"):
            left.unlink()
        for left in Path("trained").rglob("run.json"):
            left.write_text(json.dumps(json.loads(left.read_text()) | {"system": platform.system()}, indent=1) + "\n")
        shutil.make_archive(str(target.with_suffix("")), "zip", ".")
    print(f"{target}: {target.stat().st_size:,} bytes")
    return 0


def write_data() -> None:
    """Write a text, a folder of texts and pairs, from a seed."""
    draw = random.Random(1)
    lines = [" ".join(draw.choices(WORDS, k=draw.randint(3, 9))) for _ in range(120)]
    Path("text.txt").write_text("\n".join(lines) + "\n")
    Path("folder").mkdir()
    for number in range(8):
        Path(f"folder/{number}.txt").write_text("\n".join(lines[number * 8 : number * 8 + 8]) + "\n")
    Path("source.txt").write_text("\n".join(lines[:60]) + "\n")
    Path("target.txt").write_text("\n".join(" ".join(reversed(line.split())).upper() for line in lines[:60]) + "\n")
    command(["tokenizer", "train", "text.txt", "--kind", "character", "--output", "tokenizer"])
    command(["data", "prepare", "text.txt", "--tokenizer", "tokenizer", "--output", "shards"])


def train_twice(name: str) -> None:
    """Train to the end, and again to the interruption: later sources continue from there."""
    from orrery.recipes.read import load_recipe
    from orrery.runs.execute import make_parts
    from orrery.training.folder import open_run_folder
    from orrery.training.loop import Trainer

    command(["train", f"{name}.yaml", "--output", f"trained/{name}/whole"])
    shutil.rmtree(f"trained/{name}/whole/checkpoints")
    recipe = load_recipe(Path(f"{name}.yaml"), (), {})
    parts = make_parts(recipe)
    with open_run_folder(Path(f"trained/{name}/interrupted")) as opened:
        outcome = Trainer(replace(parts, source=Interrupted(parts.source)), recipe, opened).run()
    assert outcome.signal == signal.SIGINT


def answer(run: Path) -> list[float]:
    """Return the last logits of a final model for a few tokens; an encoder-decoder reads and writes the same."""
    import orrery

    lm = orrery.load(run, "cpu", "float32", say=lambda line: None)
    written = {} if lm.model.first_token is None else {"decoder_input_ids": TOKENS}
    logits_BLV = lm.logits(TOKENS, **written)
    return [float(x) for x in logits_BLV[0, -1]]


def write_specs(path: Path) -> None:
    """Write the spec of every golden model beside its configuration."""
    from orrery.families import load_family, names
    from orrery.laws.evidence import CannotRunError
    from orrery.laws.outputs import cases
    from orrery.nn.spec import to_json

    rows = []
    for family in names():
        try:
            for case in cases(family):
                spec = load_family(family).spec(case["config"])
                tensors = sorted(spec.build(0).state_dict())
                rows.append({"family": family, "config": case["config"], "spec": to_json(spec), "tensors": tensors})
        except CannotRunError:
            continue
    path.write_text(json.dumps(rows))
    print(f"{len(rows)} specs")


def command(words: list[str]) -> None:
    """Run the program as a user would, in this process."""
    from orrery.cli.program import run

    code = run(words)
    assert not code, (words, code)


if __name__ == "__main__":
    sys.exit(main())
