"""GRPO and RLOO are trl's: log probabilities, advantages, losses and gradients on answers that trl has drawn."""

import json
import logging
import warnings
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import Tensor

from orrery.checkpoints.rules import to_ours
from orrery.families import load_family
from orrery.objectives import OBJECTIVES
from orrery.objectives._reference import Reference
from rollout_toy import PLAIN, SUMS, stale, sums_tokenizer
from tests.parity.helper import load, pair, shapes_of
from tests.parity.oracle import file_of, gradients_of, modelling, widened

with warnings.catch_warnings():  # trl's, as it is imported
    warnings.simplefilter("ignore")
    from datasets import Dataset
    from transformers import PreTrainedTokenizerFast
    from trl import GRPOConfig, GRPOTrainer, RLOOConfig, RLOOTrainer
    from trl.kernels import chunked_logprob

import tokenizers

logging.getLogger("trl").setLevel(logging.ERROR)

SAMPLES, LONGEST = 3, 5
KINDS: dict[str, dict[str, Any]] = {
    "grpo": {"loss_type": "grpo", "use_bias_correction_kl": False},
    "dapo": {"loss_type": "dapo", "epsilon_high": 0.28},
    "dr_grpo": {"loss_type": "dr_grpo", "scale_rewards": "none"},
    "rloo": {},
}


@dataclass
class Both:
    trainer: Any
    inputs: dict[str, Tensor]
    ours: Any
    objective: Any
    batch: dict[str, Tensor]
    settings: Any


def wide() -> Any:
    """Return the context in which trl computes in float64, also where it casts to float32."""
    return widened(modelling("llama"), chunked_logprob)


def digits(completions: list[str], **columns: Any) -> list[float]:
    return [sum(int(letter) for letter in text if letter.isdecimal()) / 10 for text in completions]


@pytest.fixture(scope="module", params=KINDS)
def both(request, tmp_path_factory) -> Both:
    """Return trl's trainer with a batch that it has made, and the same batch as ours."""
    kind, tokenizer = request.param, sums_tokenizer()
    end = tokenizer.special("end")
    engine = tokenizers.Tokenizer.from_str(json.dumps(tokenizer.definition))
    spelt = engine.id_to_token(end)
    fast = PreTrainedTokenizerFast(tokenizer_object=engine, eos_token=spelt, pad_token=spelt)
    models = models_of(tokenizer)
    folder = tmp_path_factory.mktemp(kind)
    models.theirs.generation_config.do_sample = True
    models.theirs.save_pretrained(folder)
    config, trainer_class = (RLOOConfig, RLOOTrainer) if kind == "rloo" else (GRPOConfig, GRPOTrainer)
    rows = [{"prompt": f"{a}+{b}="} for a, b in SUMS for _ in range(SAMPLES)]
    theirs = type(models.theirs).from_pretrained(folder, dtype=torch.float64)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        arguments = config(
            output_dir=str(folder / "run"),
            per_device_train_batch_size=len(SUMS) * SAMPLES,
            num_generations=SAMPLES,
            max_completion_length=LONGEST,
            temperature=0.7,
            beta=0.05,
            num_iterations=2,
            use_cpu=True,
            bf16=False,
            report_to=[],
            logging_strategy="no",
            **KINDS[kind],
        )
        trainer = trainer_class(theirs, digits, arguments, Dataset.from_list(rows), processing_class=fast)
        noise(trainer.ref_model, 1)
        torch.manual_seed(4)
        trainer.model.train()
        with wide():
            inputs = trainer._generate_and_score_completions(rows)
    objective = OBJECTIVES.find(kind)(**ours_settings(kind))
    objective.reference = Reference(load_ours(models_of(tokenizer), trainer.ref_model))
    both = Both(trainer, inputs, models.ours, objective, {}, models)
    both.batch = batch_of(both, fast)
    return both


def models_of(tokenizer: Any) -> Any:
    end = tokenizer.special("end")
    tiny = {**load_family("llama").TINY, "vocab_size": tokenizer.size}
    return pair("llama", **tiny, eos_token_id=end, pad_token_id=end, bos_token_id=None)


def ours_settings(kind: str) -> dict[str, Any]:
    more = {"dapo": {"clip_higher": 0.28, "unbiased": 1.0}, "dr_grpo": {"unbiased": 1.0}}
    return {"clip": 0.2, "beta": 0.05, **more.get(kind, {})}


def noise(model: Any, seed: int) -> None:
    rng = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.01 * torch.randn(parameter.shape, generator=rng, dtype=torch.float64))


def load_ours(models: Any, theirs: Any) -> Any:
    """Give our model the weights of a model of transformers."""
    load(models.ours, to_ours(file_of(theirs), models.rules, shapes_of(models.ours)))
    return models.ours


def batch_of(both: Both, fast: Any) -> dict[str, Tensor]:
    """Return trl's batch, padded on the left, as ours, padded on the right; what was drawn by is trl's model."""
    inputs, rows = both.inputs, []
    for row in range(len(inputs["prompt_ids"])):
        prompt = inputs["prompt_ids"][row][inputs["prompt_mask"][row].bool()]
        answer = inputs["completion_ids"][row][inputs["completion_mask"][row].bool()]
        rows.append((prompt, answer))
    length = max(len(prompt) + len(answer) for prompt, answer in rows)
    batch: dict[str, Any] = {"ids": torch.zeros(len(rows), length, dtype=torch.long)}
    batch["real"], batch["written"] = (torch.zeros(len(rows), length, dtype=torch.bool) for _ in range(2))
    batch["scores"] = torch.zeros(len(rows), length, dtype=torch.float64)
    for row, (prompt, answer) in enumerate(rows):
        ids = torch.cat([prompt, answer])
        batch["ids"][row, : len(ids)], batch["real"][row, : len(ids)] = ids, True
        batch["written"][row, len(prompt) : len(ids)] = True
        with torch.no_grad(), wide():
            told = both.trainer.model(ids[None]).logits[0].log_softmax(-1)
        for place in range(len(prompt), len(ids)):
            batch["scores"][row, place] = told[place - 1, ids[place]]
    texts = fast.batch_decode([answer for _, answer in rows], skip_special_tokens=True)
    batch["reward"] = torch.tensor(digits(texts), dtype=torch.float32)
    batch["group"] = torch.arange(len(SUMS)).repeat_interleave(SAMPLES)
    batch["finished"], batch["fresh"] = (torch.zeros(len(rows), dtype=torch.bool) for _ in range(2))
    batch["most"], batch["temperature"] = torch.full((len(rows),), LONGEST), torch.full((len(rows),), 0.7)
    return batch


@torch.no_grad()
def observed(both: Both) -> dict[str, Tensor]:
    batch = {**both.batch, **both.objective.observe(both.ours, both.batch)}
    return {**batch, **both.objective.credit(batch)}


def test_log_probabilities_are_those_of_trl(both):
    batch, mask = observed(both), both.inputs["completion_mask"].bool()
    if "old_per_token_logps" in both.inputs:
        expected = {
            "old": both.inputs["old_per_token_logps"][mask],
            "reference": both.inputs["ref_per_token_logps"][mask],
        }
        for name, values in expected.items():
            torch.testing.assert_close(batch[name][batch["written"]], values, atol=1e-6, rtol=0)
    else:
        sums = (batch["old"] * batch["written"]).sum(1)
        torch.testing.assert_close(sums, both.inputs["old_logps"], atol=1e-6, rtol=0)


def test_advantages_are_those_of_trl(both):
    expected = both.inputs["advantages"]
    torch.testing.assert_close(observed(both)["advantages"].to(expected.dtype), expected, atol=1e-6, rtol=0)
    assert float(expected.abs().max()) > 0.1


def test_loss_and_gradients_are_those_of_trl(both):
    batch = stale(observed(both))
    noise(both.trainer.model, 2)
    load_ours(both.settings, both.trainer.model)
    loss_here, gradients = step(both, batch)
    both.trainer.model.zero_grad()
    both.trainer.current_gradient_accumulation_steps = 1
    with wide():
        loss = both.trainer._compute_loss(both.trainer.model, both.inputs)
    loss.backward()
    expected = to_ours(gradients_of(both.trainer.model), both.settings.rules, shapes_of(both.ours))
    assert loss_here == pytest.approx(float(loss.detach()), abs=1e-6)
    assert max(float((gradients[name] - expected[name]).abs().max()) for name in expected) < 1e-6
    assert max(float(gradient.abs().max()) for gradient in gradients.values()) > 1e-3
    moved, _ = step(both, {**batch, "advantages": batch["advantages"].roll(1)})
    assert moved != pytest.approx(float(loss.detach()), abs=1e-6)  # the comparison fails where rows are mixed up


def step(both: Both, batch: dict[str, Tensor]) -> tuple[float, dict[str, Tensor]]:
    from orrery.laws.accumulation import OneOf
    from orrery.training.step import accumulate

    both.ours.zero_grad()
    how = {"micro_batch": 5, "seed": (0, 0), "ranks": OneOf(0, 1), "precision": PLAIN}
    loss = accumulate(both.ours, both.objective, batch, **how)
    return loss.loss, {name: own.grad.clone() for name, own in both.ours.named_parameters() if own.grad is not None}
