"""Fine-tuning speed beside transformers' Trainer: a tiny BERT on SST-2, a tiny T5 on Multi30k, steps per second.

    .venv/bin/python benchmarks/finetuning.py --output benchmarks/finetuning.json

Both begin from the same folder, read the same rows in batches of 32, with the same optimizer, rate, clipping and
dropout; texts are made into tokens before the clock starts. The programs take turns, so that a change of the
machine's speed meets all; a ratio is the median over rounds of the ratio within a round. Trainer runs twice: as it
comes, with rows in random order, and with rows of like length together, as Orrery's batches are.
"""

import json
import logging
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
import transformers
from _record import Record, parsed, parser

from orrery.data.corpora import read_pairs, read_rows
from orrery.exchange.saving.save import save_model
from orrery.families import load_family
from orrery.recipes.read import check_recipe
from orrery.runs.execute import execute
from orrery.text.special import train_framed
from orrery.text.tokenizer import load_tokenizer

BATCH, RATE, SKIPPED = 32, 1e-3, 10
BERT = {
    "hidden_size": 128, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 512,
    "max_position_embeddings": 128,
}  # fmt: skip
T5 = {
    "d_model": 128, "d_kv": 32, "d_ff": 512, "num_layers": 2, "num_decoder_layers": 2, "num_heads": 4,
    "dropout_rate": 0.1, "decoder_start_token_id": 0,
}  # fmt: skip
Timed = Callable[[int, int], tuple[float, float]]
"""A run of so many steps with a seed: steps a second, and the share of positions that are padding."""


class Clock:
    """A reporter that notes when each step ended."""

    def __init__(self) -> None:
        self.ends: dict[int, float] = {}
        self.waste = float("nan")

    def line(self, text: str) -> None:
        """Keep what is said of the padding."""
        if text.startswith("padding: "):
            self.waste = float(text.removeprefix("padding: ").partition("%")[0]) / 100

    def progress(self, step: int, steps: int, record: Mapping[str, Any] | None) -> None:
        """Note the time."""
        self.ends.setdefault(step, time.perf_counter())

    def close(self) -> None:
        """Hold nothing."""


def rate(ends: Mapping[int, float], steps: int) -> float:
    """Return the steps a second from the end of the first few to the end of the last but one."""
    return (steps - 1 - SKIPPED) / (ends[steps - 1] - ends[SKIPPED])


def ours(values: dict[str, Any], folder: Path) -> Timed:
    """Our own run, from the recipe to the last step."""

    def timed(steps: int, seed: int) -> tuple[float, float]:
        training = {
            **values.get("training", {}),
            "steps": steps,
            "optimizer": {"kind": "adamw", "rate": RATE, "betas": [0.9, 0.999], "weight_decay": 0.0},
            "schedule": {"kind": "linear"},
        }
        often = {
            "checkpoints": {"every": steps, "keep": 1},
            "logging": {"every": steps},
            "evaluation": {"every": steps},
        }
        recipe = check_recipe({"name": "speed", "seed": seed, **values, "training": training, **often}, "the benchmark")
        clock = Clock()
        execute(recipe, folder, clock, resume=False, overwrite=True)
        return rate(clock.ends, steps), clock.waste

    return timed


class Ends(transformers.TrainerCallback):
    """Notes when each step of Trainer ended."""

    def __init__(self) -> None:
        self.ends: dict[int, float] = {}

    def on_step_end(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        """Note the time."""
        self.ends[state.global_step] = time.perf_counter()


def theirs(
    make: Callable[[], Any],
    rows: list[dict[str, Any]],
    collate: Any,
    order: str,
    folder: Path,
    size: int = BATCH,
    **more: Any,
) -> Timed:
    """Trainer on the same rows, with more of its arguments."""

    def timed(steps: int, seed: int) -> tuple[float, float]:
        seen = [0, 0]

        def counted(some: list[dict[str, Any]]) -> Any:
            batch = collate(some)
            for name in ("attention_mask", "labels") if batch["labels"].dim() > 1 else ("attention_mask",):
                if name not in batch:  # pictures are never padded
                    continue
                real = batch[name].bool() if name == "attention_mask" else batch[name] != -100
                seen[0], seen[1] = seen[0] + int(real.sum()), seen[1] + real.numel()
            return batch

        settings = transformers.TrainingArguments(
            output_dir=str(folder), max_steps=steps, per_device_train_batch_size=size, learning_rate=RATE, seed=seed,
            train_sampling_strategy=order, save_strategy="no", report_to="none", logging_strategy="no",
            disable_tqdm=True, use_cpu=True, **more,
        )  # fmt: skip
        ends = Ends()
        torch.manual_seed(seed)
        trainer = transformers.Trainer(
            model=make(), args=settings, train_dataset=rows, data_collator=counted, callbacks=[ends]
        )
        trainer.train()
        return rate(ends.ends, steps), 1 - seen[0] / max(1, seen[1])

    return timed


def bert(folder: Path) -> dict[str, Timed]:
    """What is compared on SST-2."""
    rows = [(str(row["1"]), int(row["2"])) for row in read_rows("sst2/train", ["1", "2"])]
    tokenizer = train_framed("wordpiece", [text for text, _ in rows], vocabulary=4000, lowercase=True, frame="bert")
    config = BERT | {"vocab_size": tokenizer.size}
    save_model(folder / "bert", load_family("bert").spec(config).build(1), "bert", config, tokenizer)
    known = load_tokenizer(folder / "bert")
    encoded = [{"input_ids": known.around(known.encode(text)).ids, "labels": label} for text, label in rows]

    def make() -> Any:
        return transformers.AutoModelForSequenceClassification.from_pretrained(folder / "bert", num_labels=2)

    padder = transformers.PreTrainedTokenizerFast(
        tokenizer_file=str(folder / "bert" / "tokenizer.json"), pad_token="[PAD]"
    )
    collate = transformers.DataCollatorWithPadding(padder)
    values = {
        "model": {"from": str(folder / "bert")},
        "data": {"kind": "labelled", "train": "sst2/train"},
        "batches": {"kind": "padded", "length": 128, "size": BATCH},
        "objective": {"kind": "classification"},
    }
    return contenders(values, make, encoded, collate, folder)


def contenders(
    values: dict[str, Any], make: Any, rows: list[dict[str, Any]], collate: Any, folder: Path
) -> dict[str, Timed]:
    """Orrery, Trainer as it comes, and Trainer with rows of like length together."""
    return {
        "orrery": ours(values, folder / "ours"),
        "Trainer": theirs(make, rows, collate, "random", folder / "theirs"),
        "Trainer by length": theirs(make, rows, collate, "group_by_length", folder / "theirs"),
    }


def t5(folder: Path) -> dict[str, Timed]:
    """What is compared on Multi30k."""
    pairs = list(read_pairs("multi30k-en-de/train"))
    texts = [text for pair in pairs for text in (pair.source, pair.target)]
    tokenizer = train_framed("byte_bpe", texts, vocabulary=4000, frame="t5")
    config = T5 | {"vocab_size": tokenizer.size, "decoder_start_token_id": tokenizer.special("pad")}
    save_model(folder / "t5", load_family("t5").spec(config).build(1), "t5", config, tokenizer)
    known = load_tokenizer(folder / "t5")
    sides = [known.encode_batch([getattr(pair, side) for pair in pairs]) for side in ("source", "target")]
    end = known.special("end")
    rows = [{"input_ids": [*source, end], "labels": [*target, end]} for source, target in zip(*sides, strict=True)]

    def make() -> Any:
        return transformers.AutoModelForSeq2SeqLM.from_pretrained(folder / "t5")

    padder = transformers.PreTrainedTokenizerFast(
        tokenizer_file=str(folder / "t5" / "tokenizer.json"), pad_token="<pad>"
    )
    collate = transformers.DataCollatorForSeq2Seq(padder, model=make())
    values = {
        "model": {"from": str(folder / "t5")},
        "data": {"pairs": "multi30k-en-de/train"},
        "batches": {"kind": "pairs", "length": 128, "size": BATCH},
        "objective": {"kind": "seq2seq"},
    }
    return contenders(values, make, rows, collate, folder)


def compare(runs: Mapping[str, Timed], steps: int, rounds: int) -> dict[str, Any]:
    """Let them take turns, and return medians, ratios and the padding of each."""
    rates: dict[str, list[float]] = {name: [] for name in runs}
    waste: dict[str, float] = {}
    for number in range(rounds + 1):
        names = list(runs)[:: 1 if number % 2 else -1]
        for name in names:
            rate, waste[name] = runs[name](steps, number + 1)
            if number:
                rates[name].append(rate)
            print(f"round {number} {name}: {rate:.2f} steps/s", file=sys.stderr)
    ratios = {
        f"orrery / {name}": statistics.median(a / b for a, b in zip(rates["orrery"], rates[name], strict=True))
        for name in runs
        if name != "orrery"
    }
    return {
        "steps per second": {name: statistics.median(own_rates) for name, own_rates in rates.items()},
        "ratios": ratios,
        "padding": waste,
    }


def main() -> None:
    """Compare, print, and keep."""
    made = parser(__doc__)
    made.add_argument("--steps", type=int, default=110)
    made.add_argument("--rounds", type=int, default=5)
    options = parsed(made, {"steps": 13, "rounds": 1})
    record = Record(options, ("transformers", "accelerate"))
    logging.disable(logging.WARNING)
    transformers.utils.logging.set_verbosity_error()
    result: dict[str, Any] = {"steps": options.steps, "rounds": options.rounds}
    for name, build in (("bert on sst2", bert), ("t5 on multi30k", t5)):
        with tempfile.TemporaryDirectory() as folder:
            result[name] = compare(build(Path(folder)), options.steps, options.rounds)
        print(name, json.dumps(result[name], indent=1))
        record.write(result)


if __name__ == "__main__":
    main()
