"""One step of GRPO beside trl's: answers drawn, rewards, advantages, gradient, clip and AdamW, in float32.

    .venv/bin/python benchmarks/grpo.py --json benchmarks/grpo.json

Both have a Llama of the same shape with weights from the same folder, the same prompts, 8 of them a step with 8 answers
each, the same most tokens of an answer, penalty and temperature, and a reference model. No answer may end before that,
so that both write and learn the same number of tokens. trl's trainer is driven through its own methods for a batch and
its loss, without the loop around them, which would only add to its time. Steps take turns, so that a change of the
machine's speed meets both; the ratio is the median over rounds of the ratio within a round.
"""

import argparse
import json
import logging
import statistics
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import tokenizers
import torch
import transformers

from orrery.data.prompts import Prompt
from orrery.data.rollouts import Asked, How, Rollouts
from orrery.families import load_family
from orrery.models.initialise import initialise
from orrery.objectives import OBJECTIVES
from orrery.rewards import Reward
from orrery.saving.save import save_model
from orrery.text.train import train_tokenizer
from orrery.training.building import training_kernel
from orrery.training.distributed import Alone
from orrery.training.precision import Precision
from orrery.training.rollouts import Judge, ModelWriter
from orrery.training.step import accumulate

PROMPTS, SAMPLES, LONGEST, BETA, RATE = 8, 8, 32, 0.04, 1e-5
SHAPE = {
    "hidden_size": 128, "intermediate_size": 344, "num_hidden_layers": 4, "num_attention_heads": 4,
    "num_key_value_heads": 4, "max_position_embeddings": 64, "tie_word_embeddings": True,
}  # fmt: skip
TEXTS = [f"{a}+{b}=" for a in range(10, 90, 7) for b in range(10, 90, 9)]


class Digits(Reward):
    """The share of an answer's characters that are digits."""

    def score(self, answers: Any) -> list[float]:
        """Return it for each."""
        return [share(answer.text) for answer in answers]


def share(text: str) -> float:
    return sum(letter.isdecimal() for letter in text) / max(1, len(text))


def digits(completions: list[str], **columns: Any) -> list[float]:
    return [share(text) for text in completions]


def ours(folder: Path, tokenizer: Any, config: dict[str, Any]) -> Callable[[int], float]:
    """Return what does one of our steps and says how long it took."""
    from orrery.reading.read import read

    model = read(folder).model.train()
    model.kernel = training_kernel(model.spec, "cpu")
    objective = OBJECTIVES.find("grpo")(beta=BETA)
    objective.bind(model.spec, tokenizer)
    objective.modules(model)
    judge = Judge({"digits": (Digits(), 1.0)})
    precision = Precision("float32", "plain", "cpu", torch.get_num_threads())
    writer = ModelWriter(model, objective, tokenizer, (), judge, precision, None, Alone())
    asked = [Asked(Prompt("benchmark:1", text, {}), tuple(tokenizer.encode(text))) for text in TEXTS]
    rollouts = Rollouts(asked, How(SAMPLES, LONGEST), PROMPTS * SAMPLES, 1)
    rollouts.begin(writer)
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE)

    def step(number: int) -> float:
        began = time.perf_counter()
        batch = rollouts.batch(number)
        optimizer.zero_grad(set_to_none=True)
        accumulate(model, objective, batch, micro_batch=None, seed=(0, number), ranks=Alone(), precision=precision)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return time.perf_counter() - began

    return step


def theirs(folder: Path, tokenizer: Any) -> Callable[[int], float]:
    """Return what does one of trl's steps and says how long it took."""
    from datasets import Dataset
    from trl import GRPOConfig, GRPOTrainer

    engine = tokenizers.Tokenizer.from_str(json.dumps(tokenizer.definition))
    end = engine.id_to_token(tokenizer.special("end"))
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=engine, eos_token=end, pad_token=end)
    arguments = GRPOConfig(
        output_dir=str(folder / "run"), per_device_train_batch_size=PROMPTS * SAMPLES, num_generations=SAMPLES,
        max_completion_length=LONGEST, beta=BETA, loss_type="grpo", use_cpu=True, bf16=False, report_to=[],
        logging_strategy="no", generation_kwargs={"min_new_tokens": LONGEST},
    )  # fmt: skip
    rows = [{"prompt": text} for text in TEXTS]
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    trainer = GRPOTrainer(model, digits, arguments, train_dataset=Dataset.from_list(rows), processing_class=fast)
    trainer.current_gradient_accumulation_steps = 1
    trainer.model.train()
    optimizer = torch.optim.AdamW(trainer.model.parameters(), lr=RATE)

    def step(number: int) -> float:
        some = [rows[(number * PROMPTS + place) % len(rows)] for place in range(PROMPTS) for _ in range(SAMPLES)]
        began = time.perf_counter()
        inputs = trainer._generate_and_score_completions(some)
        optimizer.zero_grad(set_to_none=True)
        trainer._compute_loss(trainer.model, inputs).backward()
        torch.nn.utils.clip_grad_norm_(trainer.model.parameters(), 1.0)
        optimizer.step()
        took = time.perf_counter() - began
        assert int(inputs["completion_mask"].sum()) == PROMPTS * SAMPLES * LONGEST
        return took

    return step


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--json", type=Path)
    words = parser.parse_args()
    torch.set_num_threads(words.threads)
    warnings.simplefilter("ignore")
    logging.getLogger("trl").setLevel(logging.ERROR)
    transformers.utils.logging.set_verbosity_error()
    tokenizer = train_tokenizer("byte_bpe", TEXTS, 257)
    config = SHAPE | {"vocab_size": tokenizer.size, "eos_token_id": tokenizer.special("end")}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        model = load_family("llama").spec(config).build()
        initialise(model, 4, 1)
        save_model(folder, model, "llama", config, tokenizer)
        steps = {"orrery": ours(folder, tokenizer, config), "trl": theirs(folder, tokenizer)}
        seconds: dict[str, list[float]] = {name: [] for name in steps}
        for number in range(words.rounds + 1):  # the first warms up
            for name, step in steps.items():
                seconds[name].append(step(number))
    kept = {name: found[1:] for name, found in seconds.items()}
    ratio = statistics.median(b / a for a, b in zip(kept["orrery"], kept["trl"], strict=True))
    told = {
        "what": f"one step of GRPO, {PROMPTS} prompts x {SAMPLES} answers x {LONGEST} tokens, float32",
        "threads": words.threads,
        "rounds": words.rounds,
        "seconds": {name: round(statistics.median(found), 4) for name, found in kept.items()},
        "ratio": round(ratio, 2),
    }
    print(json.dumps(told, indent=1))
    if words.json:
        words.json.write_text(json.dumps(told, indent=1) + "\n")


if __name__ == "__main__":
    main()
