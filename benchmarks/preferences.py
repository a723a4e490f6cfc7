"""One step of DPO beside trl's: the same tiny Llama, the same pairs, the same optimizer, both in float32.

    .venv/bin/python benchmarks/preferences.py --json benchmarks/preferences.json

A step is the loss of model and reference on a batch of pairs, the gradient, its clipping and AdamW. Both get the same
batches, of pairs of like length as Orrery makes them, already as tensors. They take turns step by step, so that a
change of the machine's speed meets both; the ratio is the median over rounds of the ratio within a round.
"""

import argparse
import json
import statistics
import tempfile
import time
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
import transformers
from torch import Tensor

from orrery.families import load_family
from orrery.saving.save import save_model
from orrery.text.chat.formats import ChatFormat
from orrery.text.chat.of_run import control_tokens_of
from orrery.text.special import train_framed
from orrery.training.assemble import assemble
from orrery.training.distributed import Alone
from orrery.training.optimizers import build_optimizer
from orrery.training.precision import Precision
from orrery.training.recipes import check_recipe
from orrery.training.step import accumulate

PAIRS, RATE, WARM = 8, 1e-5, 3
LLAMA = {
    "hidden_size": 128, "intermediate_size": 352, "num_hidden_layers": 4, "num_attention_heads": 4,
    "max_position_embeddings": 256, "tie_word_embeddings": True,
}  # fmt: skip
DATA = {"kind": "preferences", "train": "instructions-small/preference", "skip_bad": 10}


def base(folder: Path) -> Path:
    """Save a Llama with fresh weights, a tokenizer with the tokens of ChatML, and its template."""
    from orrery.data.preferences import read_preferences
    from orrery.text.chat.messages import text_of

    rows = list(read_preferences(DATA["train"], skip_bad=10))
    texts = [text_of(message) for row in rows for side, _ in row.sides for message in side.messages]
    tokenizer = train_framed("byte_bpe", texts, 2048, None, control=control_tokens_of("chatml"))
    config = {**LLAMA, "vocab_size": tokenizer.size, "pad_token_id": 0}
    torch.manual_seed(0)
    model = load_family("llama").spec(config).build(0)
    save_model(folder, model, "llama", config, tokenizer, chat={"default": ChatFormat("chatml").jinja()})
    return folder


def ours(folder: Path, threads: int) -> tuple[Callable[[Mapping[str, Tensor]], float], Any]:
    """Return our step, and the source of the batches."""
    recipe = check_recipe(
        {
            "name": "speed",
            "model": {"from": str(folder)},
            "data": DATA,
            "batches": {"length": 256, "size": PAIRS},
            "objective": {"kind": "dpo"},
            "training": {
                "steps": 1,
                "optimizer": {"kind": "adamw", "rate": RATE, "betas": [0.9, 0.999], "weight_decay": 0.0},
            },
        },
        "the benchmark",
    )
    parts = assemble(recipe).parts
    model, objective = parts.model.train(), parts.objective
    optimizer = build_optimizer(model, recipe.training.optimizer)
    precision = Precision("float32", "plain", "cpu", threads)

    def step(batch: Mapping[str, Tensor]) -> float:
        optimizer.zero_grad(set_to_none=True)
        how: dict[str, Any] = {"micro_batch": None, "seed": (0, 0), "ranks": Alone(), "precision": precision}
        loss = accumulate(model, objective, batch, **how)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return loss.loss

    return step, parts.source


def theirs(folder: Path, scratch: Path) -> Callable[[Mapping[str, Tensor]], float]:
    """Return trl's step: DPOTrainer's loss and gradient, torch's clipping and its fused AdamW."""
    from datasets import Dataset, disable_progress_bars
    from trl import DPOConfig, DPOTrainer

    disable_progress_bars()
    make = lambda: transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)  # noqa: E731
    settings = DPOConfig(
        output_dir=str(scratch), per_device_train_batch_size=PAIRS, max_steps=1, report_to=[], use_cpu=True, bf16=False,
        gradient_checkpointing=False, save_strategy="no", logging_strategy="no", disable_tqdm=True, learning_rate=RATE,
    )  # fmt: skip
    rows = Dataset.from_list([{"prompt": "a", "chosen": "b", "rejected": "c"}] * PAIRS)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder, pad_token="<|im_end|>")
    made = DPOTrainer(model=make(), ref_model=make(), args=settings, train_dataset=rows, processing_class=tokenizer)
    model = made.model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, betas=(0.9, 0.999), weight_decay=0.0, fused=True)

    def step(batch: Mapping[str, Tensor]) -> float:
        names = {"input_ids": "ids", "attention_mask": "real", "completion_mask": "reply"}
        inputs = {n: torch.cat([batch[own][:, 0], batch[own][:, 1]]).long() for n, own in names.items()}
        optimizer.zero_grad(set_to_none=True)
        loss = made.compute_loss(model, inputs)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return float(loss.detach())

    return step


def measured(rounds: int, steps: int, threads: int) -> dict[str, Any]:
    """Return milliseconds a step and the ratio, over so many rounds of so many steps each."""
    torch.set_num_threads(threads)
    with tempfile.TemporaryDirectory() as place:
        folder = base(Path(place) / "base")
        own, source = ours(folder, threads)
        other = theirs(folder, Path(place) / "trl")
        found: dict[str, list[float]] = {"orrery": [], "trl": []}
        first = [(own(source.batch(0)), other(source.batch(0)))]
        for number in range(WARM):
            own(source.batch(number)), other(source.batch(number))
        for turn in range(rounds):
            spent = dict.fromkeys(found, 0.0)
            for number in range(steps):
                batch = source.batch(turn * steps + number)
                pair = (("orrery", own), ("trl", other))
                for name, step in pair if number % 2 else pair[::-1]:
                    began = time.perf_counter()
                    step(batch)
                    spent[name] += time.perf_counter() - began
            for name, seconds in spent.items():
                found[name].append(1000 * seconds / steps)
    ratios = [b / a for a, b in zip(found["orrery"], found["trl"], strict=True)]
    return {
        "pairs": PAIRS,
        "threads": threads,
        "first_losses": first,
        "milliseconds": {name: round(statistics.median(values), 2) for name, values in found.items()},
        "ratio": round(statistics.median(ratios), 3),
        "ratios": [round(ratio, 3) for ratio in ratios],
        "torch": torch.__version__,
    }


def main() -> None:
    """Measure, print, and write what was found."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--json", type=Path)
    words = parser.parse_args()
    warnings.simplefilter("ignore")
    transformers.utils.logging.set_verbosity_error()
    found = measured(words.rounds, words.steps, words.threads)
    print(json.dumps(found, indent=1))
    if words.json:
        words.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
