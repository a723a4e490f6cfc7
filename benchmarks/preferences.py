"""One step of DPO beside trl's and beside a plain loop over transformers: the same Llama, pairs and optimizer, float32.

    .venv/bin/python benchmarks/preferences.py --output benchmarks/preferences.json

A step is the loss of model and reference on a batch of pairs, the gradient, its clipping and fused AdamW. All get the
same batches, of pairs of like length as Orrery makes them, already as tensors. They take turns step by step, so that a
change of the machine's speed meets all; a ratio is the median over rounds of the ratio within a round. trl is what its
users have, with the loss of its trainer; the plain loop is what a user writes by hand: logits of both models, the log
probabilities of the replies, the loss. The losses of every step are compared, since at the first, where model and
reference are equal, every loss is the logarithm of 2.
"""

import json
import statistics
import tempfile
import time
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
import transformers
from _record import Record, parsed, parser
from torch import Tensor

from orrery.exchange.saving.save import save_model
from orrery.families import load_family
from orrery.recipes.read import check_recipe
from orrery.runs.assemble import assemble
from orrery.text.chat.formats import ChatFormat
from orrery.text.chat.of_run import control_tokens_of
from orrery.text.special import train_framed
from orrery.training.distributed import Alone
from orrery.training.optimizers import build_optimizer
from orrery.training.precision import Precision
from orrery.training.step import accumulate

PAIRS, RATE, BETA, WARM = 8, 1e-5, 0.1, 3
PLAIN = "transformers, a plain loop"
LLAMA = {
    "hidden_size": 128, "intermediate_size": 352, "num_hidden_layers": 4, "num_attention_heads": 4,
    "max_position_embeddings": 256, "tie_word_embeddings": True,
}  # fmt: skip
DATA = {"kind": "preferences", "train": "instructions-small/preference", "skip_bad": 10}
Step = Callable[[Mapping[str, Tensor]], float]
"""Takes a step on a batch and returns its loss."""


def base(folder: Path) -> Path:
    """Save a Llama with fresh weights, a tokenizer with the tokens of ChatML, and its template."""
    from orrery.data.rows.preferences import read_preferences
    from orrery.text.chat.messages import text_of

    rows = list(read_preferences(DATA["train"], skip_bad=10))
    texts = [text_of(message) for row in rows for side, _ in row.sides for message in side.messages]
    tokenizer = train_framed("byte_bpe", texts, 2048, None, control=control_tokens_of("chatml"))
    config = {**LLAMA, "vocab_size": tokenizer.size, "pad_token_id": 0}
    torch.manual_seed(0)
    model = load_family("llama").spec(config).build(0)
    save_model(folder, model, "llama", config, tokenizer, chat={"default": ChatFormat("chatml").jinja()})
    return folder


def ours(folder: Path, threads: int) -> tuple[Step, Any]:
    """Return our step, and the source of the batches."""
    recipe = check_recipe(
        {
            "name": "speed",
            "model": {"from": str(folder)},
            "data": DATA,
            "batches": {"length": 256, "size": PAIRS},
            "objective": {"kind": "dpo", "beta": BETA},
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


def pretrained(folder: Path) -> Any:
    """Return the model as transformers loads it."""
    return transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)


def stacked(batch: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the chosen replies and then the rejected ones, under the names of transformers and trl."""
    names = {"input_ids": "ids", "attention_mask": "real", "completion_mask": "reply"}
    return {n: torch.cat([batch[own][:, 0], batch[own][:, 1]]).long() for n, own in names.items()}


def by_hand(model: Any, loss_of: Callable[[Any, dict[str, Tensor]], Tensor]) -> Step:
    """Return a step of torch: gradient, clipping, fused AdamW."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, betas=(0.9, 0.999), weight_decay=0.0, fused=True)

    def step(batch: Mapping[str, Tensor]) -> float:
        optimizer.zero_grad(set_to_none=True)
        loss = loss_of(model, stacked(batch))
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return float(loss.detach())

    return step


def plain(folder: Path) -> Step:
    """Return the step that a user of transformers writes: two forward passes and the loss."""
    model, reference = pretrained(folder).train(), pretrained(folder).eval()

    def replies(own: Any, inputs: dict[str, Tensor]) -> Tensor:
        ids, mask = inputs["input_ids"], inputs["completion_mask"][:, 1:]
        logits = own(input_ids=ids, attention_mask=inputs["attention_mask"], use_cache=False).logits[:, :-1]
        told = -F.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten(), reduction="none").view(mask.shape)
        return (told * mask).sum(1)

    def loss_of(own: Any, inputs: dict[str, Tensor]) -> Tensor:
        with torch.no_grad():
            before = replies(reference, inputs)
        chosen, rejected = (replies(own, inputs) - before).chunk(2)
        return -F.logsigmoid(BETA * (chosen - rejected)).mean()

    return by_hand(model, loss_of)


def theirs(folder: Path, scratch: Path) -> Step:
    """Return trl's step: DPOTrainer's loss and gradient, torch's clipping and its fused AdamW."""
    from datasets import Dataset, disable_progress_bars
    from trl import DPOConfig, DPOTrainer

    disable_progress_bars()
    settings = DPOConfig(
        output_dir=str(scratch), per_device_train_batch_size=PAIRS, max_steps=1, report_to=[], use_cpu=True, bf16=False,
        gradient_checkpointing=False, save_strategy="no", logging_strategy="no", disable_tqdm=True, learning_rate=RATE,
        beta=BETA,
    )  # fmt: skip
    rows = Dataset.from_list([{"prompt": "a", "chosen": "b", "rejected": "c"}] * PAIRS)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder, pad_token="<|im_end|>")
    models = {"model": pretrained(folder), "ref_model": pretrained(folder)}
    made = DPOTrainer(**models, args=settings, train_dataset=rows, processing_class=tokenizer)
    return by_hand(made.model.train(), lambda own, inputs: made.compute_loss(own, inputs))


def measured(rounds: int, steps: int, threads: int) -> dict[str, Any]:
    """Return milliseconds a step, the ratios, and the losses, over so many rounds of so many steps each."""
    torch.set_num_threads(threads)
    with tempfile.TemporaryDirectory() as place:
        folder = base(Path(place) / "base")
        own, source = ours(folder, threads)
        takers = {"orrery": own, "trl": theirs(folder, Path(place) / "trl"), PLAIN: plain(folder)}
        return {"pairs": PAIRS, **in_turns(takers, source, rounds, steps)}


def in_turns(takers: Mapping[str, Step], source: Any, rounds: int, steps: int) -> dict[str, Any]:
    """Let all take their steps on the same batches in turns; return what a step took, the ratios, and the losses."""
    spent: dict[str, list[float]] = {name: [] for name in takers}
    losses: dict[str, list[float]] = {name: [] for name in takers}
    for number in range(WARM + rounds * steps):
        batch, names = source.batch(number), list(takers)
        for name in names[number % len(names) :] + names[: number % len(names)]:
            began = time.perf_counter()
            losses[name].append(takers[name](batch))
            spent[name].append(time.perf_counter() - began)
    turns = {name: in_rounds(own[WARM:], steps) for name, own in spent.items()}
    peers = [name for name in takers if name != "orrery"]
    ratios = {name: [b / a for a, b in zip(turns["orrery"], turns[name], strict=True)] for name in peers}
    apart = {name: max(abs(a - b) for a, b in zip(losses["orrery"], losses[name], strict=True)) for name in peers}
    return {
        "steps": len(losses["orrery"]),
        "milliseconds": {name: round(1000 * statistics.median(own), 2) for name, own in turns.items()},
        "ratio": {name: round(statistics.median(own), 3) for name, own in ratios.items()},
        "ratios": {name: [round(one, 3) for one in own] for name, own in ratios.items()},
        "losses": {name: [own[0], own[1], own[len(own) // 2], own[-1]] for name, own in losses.items()},
        "largest loss difference": apart,
    }


def in_rounds(seconds: list[float], steps: int) -> list[float]:
    """Return the mean seconds of a step in each round."""
    return [statistics.mean(seconds[begin : begin + steps]) for begin in range(0, len(seconds), steps)]


def main() -> None:
    """Measure, print, and write what was found."""
    made = parser(__doc__)
    made.add_argument("--rounds", type=int, default=7)
    made.add_argument("--steps", type=int, default=20)
    made.add_argument("--threads", type=int, default=1)
    options = parsed(made, {"rounds": 1, "steps": 1})
    warnings.simplefilter("ignore")
    transformers.utils.logging.set_verbosity_error()
    record = Record(options, ("transformers", "trl"))
    numbers = measured(options.rounds, options.steps, options.threads)
    print(json.dumps(numbers, indent=1))
    record.write(numbers)


if __name__ == "__main__":
    main()
