"""One step of GRPO beside trl's: answers drawn, rewards, advantages, gradient, clip and AdamW, in float32.

    .venv/bin/python benchmarks/grpo.py --output benchmarks/grpo.json

Both have a Llama of the same shape with weights from the same folder, the same prompts, 8 of them a step with 8 answers
each, the same most tokens of an answer, penalty and temperature, and a reference model. No answer may end before that,
so that both write and learn the same number of tokens. trl's trainer is driven through its own methods for a batch and
its loss, without the loop around them, which would only add to its time. Steps take turns, so that a change of the
machine's speed meets both; the ratio is the median over rounds of the ratio within a round.

That both do the same is shown apart from the clock: both learn from the same answers, ours, for some steps at a rate
that moves the weights; losses and norms of the gradients are recorded for every step, and the largest difference.
"""

import json
import logging
import statistics
import tempfile
import time
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import tokenizers
import torch
import transformers
from _record import Record, parsed, parser
from torch import Tensor

from orrery.data.batches.rollouts import How, PromptRow, Rollouts
from orrery.data.rows.prompts import Prompt
from orrery.exchange.saving.save import save_model
from orrery.families import load_family
from orrery.models.initialise import initialise
from orrery.nn.joined_linear import join_layers
from orrery.objectives import OBJECTIVES
from orrery.rewards import Reward
from orrery.runs.building import training_kernel
from orrery.text.train import train_tokenizer
from orrery.training.distributed import Alone
from orrery.training.precision import Precision
from orrery.training.rollouts import Judge, ModelWriter
from orrery.training.step import accumulate

PROMPTS, SAMPLES, LONGEST, BETA, RATE, COMPARED_RATE = 8, 8, 32, 0.04, 1e-5, 1e-3
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


class Ours:
    """Our rollouts and our step."""

    def __init__(self, folder: Path, tokenizer: Any, rate: float) -> None:
        from orrery.exchange.reading.read import read

        self.model = read(folder).model.train()
        self.model.kernel = training_kernel(self.model.spec, "cpu")
        join_layers(self.model, "cpu")
        self.objective = OBJECTIVES.find("grpo")(beta=BETA)
        self.objective.bind(self.model.spec, tokenizer)
        self.objective.modules(self.model)
        judge = Judge({"digits": (Digits(), 1.0)})
        self.precision = Precision("float32", "plain", "cpu", torch.get_num_threads())
        writer = ModelWriter(self.model, self.objective, tokenizer, (), judge, self.precision, None, Alone())
        asked = [PromptRow(Prompt("benchmark:1", text, {}), tuple(tokenizer.encode(text))) for text in TEXTS]
        self.rollouts = Rollouts(asked, How(SAMPLES, LONGEST), PROMPTS * SAMPLES, 1)
        self.rollouts.begin(writer)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=rate)

    def learn(self, number: int, batch: Mapping[str, Tensor]) -> tuple[float, float]:
        """Take a step on answers; return its loss and the norm of its gradient."""
        self.optimizer.zero_grad(set_to_none=True)
        how: dict[str, Any] = {"micro_batch": None, "ranks": Alone(), "precision": self.precision}
        loss = accumulate(self.model, self.objective, batch, seed=(0, number), **how)
        norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        return loss.loss, float(norm)

    def step(self, number: int) -> float:
        """Draw and learn; return the seconds."""
        began = time.perf_counter()
        self.learn(number, self.rollouts.batch(number))
        return time.perf_counter() - began


class Theirs:
    """trl's rollouts and its step."""

    def __init__(self, folder: Path, tokenizer: Any, rate: float) -> None:
        from datasets import Dataset
        from trl import GRPOConfig, GRPOTrainer

        engine = tokenizers.Tokenizer.from_str(json.dumps(tokenizer.definition))
        end = engine.id_to_token(tokenizer.special("end"))
        fast = transformers.PreTrainedTokenizerFast(tokenizer_object=engine, eos_token=end, pad_token=end)
        arguments = GRPOConfig(
            output_dir=str(folder / "run"), per_device_train_batch_size=PROMPTS * SAMPLES, num_generations=SAMPLES,
            max_completion_length=LONGEST, beta=BETA, loss_type="grpo", use_cpu=True, bf16=False, report_to=[],
            logging_strategy="no", generation_kwargs={"min_new_tokens": LONGEST}, use_bias_correction_kl=False,
        )  # fmt: skip
        self.rows = [{"prompt": text} for text in TEXTS]
        model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
        data = Dataset.from_list(self.rows)
        self.trainer: Any = GRPOTrainer(model, digits, arguments, train_dataset=data, processing_class=fast)
        self.trainer.current_gradient_accumulation_steps = 1
        self.trainer.model.train()
        self.optimizer = torch.optim.AdamW(self.trainer.model.parameters(), lr=rate)

    def learn(self, inputs: Mapping[str, Any]) -> tuple[float, float]:
        """Take a step on answers; return its loss and the norm of its gradient."""
        self.optimizer.zero_grad(set_to_none=True)
        loss = self.trainer._compute_loss(self.trainer.model, inputs)
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(self.trainer.model.parameters(), 1.0)
        self.optimizer.step()
        return float(loss.detach()), float(norm)

    def step(self, number: int) -> float:
        """Draw and learn; return the seconds."""
        places = [(number * PROMPTS + place) % len(self.rows) for place in range(PROMPTS) for _ in range(SAMPLES)]
        some = [self.rows[place] for place in places]
        began = time.perf_counter()
        inputs = self.trainer._generate_and_score_completions(some)
        self.learn(inputs)
        took = time.perf_counter() - began
        assert int(inputs["completion_mask"].sum()) == PROMPTS * SAMPLES * LONGEST
        return took


def as_trl(batch: Mapping[str, Tensor]) -> dict[str, Any]:
    """Return our answers as trl's inputs; here every prompt has as many tokens, and every answer."""
    ids, written = batch["ids"], batch["written"]
    begin = int(written[0].int().argmax())
    assert bool(written[:, begin:].all())
    assert not bool(written[:, :begin].any())
    answers = {"completion_ids": ids[:, begin:], "completion_mask": written[:, begin:].long()}
    prompts = {"prompt_ids": ids[:, :begin], "prompt_mask": torch.ones_like(ids[:, :begin])}
    known = {"advantages": batch["advantages"].float(), "ref_per_token_logps": batch["reference"][:, begin:].float()}
    return {**prompts, **answers, **known, "old_per_token_logps": None}


def compared(folder: Path, tokenizer: Any, steps: int) -> dict[str, Any]:
    """Let both learn from the same answers; return losses and norms of the gradients, and how far they are apart."""
    ours, theirs = Ours(folder, tokenizer, COMPARED_RATE), Theirs(folder, tokenizer, COMPARED_RATE)
    rows: list[dict[str, list[float]]] = []
    for number in range(steps):
        batch = ours.rollouts.batch(number)
        rows.append({"orrery": list(ours.learn(number, batch)), "trl": list(theirs.learn(as_trl(batch)))})
    apart = [max(abs(a - b) for a, b in zip(row["orrery"], row["trl"], strict=True)) for row in rows]
    return {"rate": COMPARED_RATE, "loss and norm of the gradient": rows, "largest difference": max(apart)}


def raced(folder: Path, tokenizer: Any, rounds: int) -> dict[str, Any]:
    """Let both take steps in turn, and return median seconds and ratios."""
    ours, theirs = Ours(folder, tokenizer, RATE), Theirs(folder, tokenizer, RATE)
    steps: dict[str, Callable[[int], float]] = {"orrery": ours.step, "trl": theirs.step}
    seconds: dict[str, list[float]] = {name: [] for name in steps}
    for number in range(rounds + 1):  # the first warms up
        for name, step in list(steps.items())[:: 1 if number % 2 else -1]:
            seconds[name].append(step(number))
    kept = {name: own[1:] for name, own in seconds.items()}
    ratios = [b / a for a, b in zip(kept["orrery"], kept["trl"], strict=True)]
    return {
        "seconds": {name: round(statistics.median(own), 4) for name, own in kept.items()},
        "ratio": round(statistics.median(ratios), 3),
        "ratios": [round(ratio, 3) for ratio in ratios],
    }


def main() -> None:
    made = parser(__doc__)
    made.add_argument("--rounds", type=int, default=12)
    made.add_argument("--compared", type=int, default=8, help="steps whose losses are compared")
    made.add_argument("--threads", type=int, default=1)
    options = parsed(made, {"rounds": 1, "compared": 2})
    torch.set_num_threads(options.threads)
    warnings.simplefilter("ignore")
    logging.getLogger("trl").setLevel(logging.ERROR)
    transformers.utils.logging.set_verbosity_error()
    record = Record(options, ("transformers", "trl"))
    tokenizer = train_tokenizer("byte_bpe", TEXTS, 257)
    config = SHAPE | {"vocab_size": tokenizer.size, "eos_token_id": tokenizer.special("end")}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        model = load_family("llama").spec(config).build()
        initialise(model, 4, 1)
        save_model(folder, model, "llama", config, tokenizer)
        told = {
            "what": f"one step of GRPO, {PROMPTS} prompts x {SAMPLES} answers x {LONGEST} tokens, float32",
            "rounds": options.rounds,
            **raced(folder, tokenizer, options.rounds),
            "same answers": compared(folder, tokenizer, options.compared),
        }
    print(json.dumps(told, indent=1))
    record.write(told)


if __name__ == "__main__":
    main()
