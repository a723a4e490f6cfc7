"""One step of GRPO beside trl's: answers drawn, rewards, advantages, gradient, clip and AdamW, in float32.

    .venv/bin/python benchmarks/grpo.py --output benchmarks/grpo.json

Both have a Llama of the same shape with weights from the same folder, the same prompts, 8 of them a step with 8 answers
each, the same most tokens of an answer, penalty and temperature, and a reference model. No answer may end before that,
so that both write and learn the same number of tokens. trl's trainer is driven through its own methods for a batch and
its loss, without the loop around them, which would only add to its time. Every program is a process of its own, ours
once more with `parallel.compile`. Steps take turns, so that a change of the machine's speed meets all; a ratio is the
median over rounds of the ratio within a round.

That both do the same is shown apart from the clock: both learn from the same answers, ours, for some steps at a rate
that moves the weights; losses and norms of the gradients are recorded for every step, and the largest difference.
"""

import json
import logging
import statistics
import tempfile
import warnings
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import tokenizers
import torch
import transformers
from _apart import Apart
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
from orrery.training.compiled_blocks import compile_blocks
from orrery.training.distributed import Alone
from orrery.training.freed_memory import keep_freed_memory
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

    def __init__(self, folder: Path, tokenizer: Any, rate: float, compiled: bool = False) -> None:
        from orrery.exchange.reading.read import read

        self.model = read(folder).model.train()
        self.model.kernel = training_kernel(self.model.spec, "cpu")
        join_layers(self.model, "cpu")
        if compiled:
            compile_blocks(self.model, "cpu")
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

    def step(self, number: int) -> None:
        """Draw and learn."""
        self.learn(number, self.rollouts.batch(number))


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

    def step(self, number: int) -> None:
        """Draw and learn."""
        places = [(number * PROMPTS + place) % len(self.rows) for place in range(PROMPTS) for _ in range(SAMPLES)]
        some = [self.rows[place] for place in places]
        inputs = self.trainer._generate_and_score_completions(some)
        self.learn(inputs)
        assert int(inputs["completion_mask"].sum()) == PROMPTS * SAMPLES * LONGEST


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


def our_step(folder: Path, compiled: bool) -> Callable[[int], None]:
    """Return our step in a process that keeps its memory, as every training of ours does."""
    keep_freed_memory()
    return Ours(folder, made_tokenizer(), RATE, compiled).step


def their_step(folder: Path) -> Callable[[int], None]:
    """Return trl's step."""
    quiet()
    return Theirs(folder, made_tokenizer(), RATE).step


def raced(folder: Path, rounds: int) -> dict[str, Any]:
    """Let all take steps in turn, and return median seconds and ratios."""
    made = {
        "orrery": partial(our_step, folder, False),
        "orrery, compiled": partial(our_step, folder, True),
        "trl": partial(their_step, folder),
    }
    seconds: dict[str, list[float]] = {name: [] for name in made}
    with ExitStack() as stack:
        programs = {name: stack.enter_context(Apart(make)) for name, make in made.items()}
        for number in range(rounds + 2):  # the first two warm up
            for name, program in list(programs.items())[:: 1 if number % 2 else -1]:
                seconds[name].append(program.step(number)[1])
    kept = {name: own[2:] for name, own in seconds.items()}
    told: dict[str, Any] = {"seconds": {name: round(statistics.median(own), 4) for name, own in kept.items()}}
    for name, key in (("orrery", ""), ("orrery, compiled", "compiled ")):
        ratios = [b / a for a, b in zip(kept[name], kept["trl"], strict=True)]
        told |= {f"{key}ratio": round(statistics.median(ratios), 3), f"{key}ratios": [round(one, 3) for one in ratios]}
    return told


def made_tokenizer() -> Any:
    """Return the tokenizer, the same in every process."""
    return train_tokenizer("byte_bpe", TEXTS, 257)


def quiet() -> None:
    """Have the reference libraries tell nothing of their own progress."""
    warnings.simplefilter("ignore")
    logging.getLogger("trl").setLevel(logging.ERROR)
    transformers.utils.logging.set_verbosity_error()


def main() -> None:
    made = parser(__doc__)
    made.add_argument("--rounds", type=int, default=12)
    made.add_argument("--compared", type=int, default=8, help="steps whose losses are compared")
    made.add_argument("--threads", type=int, default=1)
    options = parsed(made, {"rounds": 1, "compared": 2})
    torch.set_num_threads(options.threads)
    quiet()
    record = Record(options, ("transformers", "trl"))
    tokenizer = made_tokenizer()
    config = SHAPE | {"vocab_size": tokenizer.size, "eos_token_id": tokenizer.special("end")}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        model = load_family("llama").spec(config).build()
        initialise(model, 4, 1)
        save_model(folder, model, "llama", config, tokenizer)
        told = {
            "what": f"one step of GRPO, {PROMPTS} prompts x {SAMPLES} answers x {LONGEST} tokens, float32",
            "rounds": options.rounds,
            **raced(folder, options.rounds),
            "same answers": compared(folder, tokenizer, options.compared),
        }
    print(json.dumps(told, indent=1))
    record.write(told)


if __name__ == "__main__":
    main()
