"""Fine-tuning on conversations through LoRA, beside trl's trainer and a plain loop over peft: one step, in float32.

    .venv/bin/python benchmarks/lora.py --model FOLDER --output benchmarks/lora.json

FOLDER is a Hugging Face folder with a chat template; without it a small Llama with random weights. All begin with the
same adapter, written by Orrery and read by peft, and get the same batches, of conversations of like length as Orrery
makes them, already as tensors. A step is the loss of the assistant's words, the gradient, its clipping and fused AdamW.
They take turns step by step, so that a change of the machine's speed meets all; a ratio is the median over rounds of
the ratio within a round. trl is what its users have, with the loss of its trainer; the plain loop is what a user of
peft writes by hand. The losses of every step are compared.
"""

import json
import tempfile
import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
import transformers
from _record import Record, parsed, parser
from preferences import Step, base, in_turns
from torch import Tensor

from orrery.exchange.reading.read import read
from orrery.recipes.read import check_recipe
from orrery.runs.assemble import assemble
from orrery.training.distributed import Alone
from orrery.training.optimizers import build_optimizer
from orrery.training.precision import Precision
from orrery.training.step import accumulate
from orrery.tuning.peft.save import save_adapter

ROWS, RATE = 8, 2e-4
PLAIN = "peft, a plain loop"
ADAPTER = {"kind": "lora", "rank": 16, "alpha": 32, "targets": ["*.q", "*.k", "*.v", "*.out"]}
DATA = {"kind": "conversations", "train": "instructions-small/instruction"}


def ours(folder: Path, adapter: Path, threads: int) -> tuple[Step, Any]:
    """Return our step and the source of the batches, and write the adapter as it begins."""
    optimizer = {"kind": "adamw", "rate": RATE, "betas": [0.9, 0.999], "weight_decay": 0.0}
    recipe = check_recipe(
        {
            "name": "speed",
            "model": {"from": str(folder), "adapter": ADAPTER},
            "data": DATA,
            "batches": {"length": 256, "size": ROWS},
            "objective": {"kind": "sft"},
            "training": {"steps": 1, "optimizer": optimizer},
        },
        "the benchmark",
    )
    parts = assemble(recipe).parts
    model, objective = parts.model.train(), parts.objective
    save_adapter(replace(read(folder), model=model), adapter)
    learned = build_optimizer(model, recipe.training.optimizer)
    precision = Precision("float32", "plain", "cpu", threads)
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]

    def step(batch: Mapping[str, Tensor]) -> float:
        learned.zero_grad(set_to_none=True)
        how: dict[str, Any] = {"micro_batch": None, "seed": (0, 0), "ranks": Alone(), "precision": precision}
        loss = accumulate(model, objective, batch, **how)
        torch.nn.utils.clip_grad_norm_(trained, 1.0)
        learned.step()
        return loss.loss

    return step, parts.source


def adapted(folder: Path, adapter: Path) -> Any:
    """Return the model as peft loads it over the base of transformers."""
    import peft

    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    return peft.PeftModel.from_pretrained(model, str(adapter), is_trainable=True).train()


def by_hand(model: Any, loss_of: Callable[[Any, dict[str, Tensor]], Tensor]) -> Step:
    """Return a step of torch: gradient, clipping, fused AdamW."""
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=RATE, betas=(0.9, 0.999), weight_decay=0.0, fused=True)

    def step(batch: Mapping[str, Tensor]) -> float:
        optimizer.zero_grad(set_to_none=True)
        before = torch.full_like(batch["targets"][:, :1], -100)
        labels = torch.cat([before, batch["targets"][:, :-1]], 1)
        inputs = {"input_ids": batch["ids"], "attention_mask": batch["real"].long(), "labels": labels}
        loss = loss_of(model, inputs)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(trained, 1.0)
        optimizer.step()
        return float(loss.detach())

    return step


def theirs(folder: Path, adapter: Path, scratch: Path) -> Step:
    """Return trl's step: SFTTrainer's loss and gradient, torch's clipping and its fused AdamW."""
    from datasets import Dataset, disable_progress_bars
    from trl import SFTConfig, SFTTrainer

    disable_progress_bars()
    settings = SFTConfig(
        output_dir=str(scratch), per_device_train_batch_size=ROWS, max_steps=1, report_to=[], use_cpu=True, bf16=False,
        gradient_checkpointing=False, save_strategy="no", logging_strategy="no", disable_tqdm=True, learning_rate=RATE,
    )  # fmt: skip
    rows = Dataset.from_list([{"prompt": "a", "completion": "b"}] * ROWS)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder, pad_token="<|im_end|>")
    made = SFTTrainer(model=adapted(folder, adapter), args=settings, train_dataset=rows, processing_class=tokenizer)
    return by_hand(made.model.train(), lambda own, inputs: made.compute_loss(own, inputs))


def measured(model: Path | None, rounds: int, steps: int, threads: int) -> dict[str, Any]:
    """Return milliseconds a step, the ratios, and the losses, over so many rounds of so many steps each."""
    torch.set_num_threads(threads)
    with tempfile.TemporaryDirectory() as place:
        folder, adapter = model or base(Path(place) / "base"), Path(place) / "adapter"
        own, source = ours(folder, adapter, threads)
        plain = by_hand(adapted(folder, adapter), lambda peer, inputs: peer(**inputs, use_cache=False).loss)
        takers = {"orrery": own, "trl": theirs(folder, adapter, Path(place) / "trl"), PLAIN: plain}
        return {"model": folder.name, "rows": ROWS, **in_turns(takers, source, rounds, steps)}


def main() -> None:
    """Measure, print, and write what was found."""
    made = parser(__doc__)
    made.add_argument("--model", type=Path)
    made.add_argument("--rounds", type=int, default=7)
    made.add_argument("--steps", type=int, default=6)
    made.add_argument("--threads", type=int, default=2)
    options = parsed(made, {"rounds": 1, "steps": 1})
    warnings.simplefilter("ignore")
    transformers.utils.logging.set_verbosity_error()
    record = Record(options, ("transformers", "peft", "trl"))
    numbers = measured(options.model, options.rounds, options.steps, options.threads)
    print(json.dumps(numbers, indent=1))
    record.write(numbers)


if __name__ == "__main__":
    main()
