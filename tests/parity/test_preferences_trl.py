"""Losses and gradients over preferences are trl's, on the same tiny Llama with every parameter random."""

import copy
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
import torch
import transformers
from tokenizers import Tokenizer, models
from torch import Tensor, nn

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # theirs, about other libraries
    from datasets import Dataset, disable_progress_bars
    from peft import LoraConfig
    from trl import DPOConfig, DPOTrainer, KTOConfig, KTOTrainer, RewardConfig, RewardTrainer
    from trl.experimental.cpo import CPOConfig, CPOTrainer
    from trl.experimental.orpo import ORPOConfig, ORPOTrainer
    from trl.kernels import chunked_logprob

from orrery.checkpoints.rules import to_ours, to_theirs
from orrery.objectives import OBJECTIVES, Objective
from orrery.objectives._contracts import check, own_modules
from orrery.training.distributed import Alone
from orrery.training.precision import Precision
from orrery.training.step import accumulate
from orrery.tuning.lora import LoRA
from preference_toy import fields
from tests.parity import oracle
from tests.parity.helper import Pair, pair, shapes_of

pytestmark = pytest.mark.filterwarnings("ignore")
disable_progress_bars()

CONFIG: dict[str, Any] = {
    "hidden_size": 24, "intermediate_size": 40, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "max_position_embeddings": 32, "tie_word_embeddings": False,
}  # fmt: skip
PROMPTS = [[5, 6, 7], [8, 9], [10, 11, 12, 13]]
CHOSEN = [[20, 21, 2], [22, 2], [23, 24, 25, 26, 2]]
REJECTED = [[30, 31, 32, 33, 2], [34, 35, 2], [36, 2]]
DESIRABLE, MARGIN = [True, False, True], [0.0, 0.5, -0.25]
USUAL: dict[str, Any] = {
    "per_device_train_batch_size": 3, "max_steps": 1, "report_to": [], "use_cpu": True, "bf16": False,
    "gradient_checkpointing": False, "save_strategy": "no", "disable_tqdm": True, "max_length": 32,
}  # fmt: skip
TOLERANCE = 1e-6
TARGETS = ["q_proj", "v_proj", "down_proj"]


@dataclass(frozen=True)
class Case:
    """One of trl's losses: how its trainer is made, and what ours is called. Both with settings that all count."""

    ours: str
    settings: Mapping[str, Any]
    trainer: Any
    config: Any
    theirs: Mapping[str, Any] = field(default_factory=dict)
    reference: bool = True

    def objective(self) -> Objective:
        return OBJECTIVES.find(self.ours)(**self.settings)


CASES = {
    "dpo": Case("dpo", {"beta": 0.3}, DPOTrainer, DPOConfig, {"beta": 0.3}),
    "ipo": Case("ipo", {"beta": 0.3}, DPOTrainer, DPOConfig, {"beta": 0.3, "loss_type": ["ipo"]}),
    "dpo_norm": Case("dpo_norm", {"beta": 2.0}, DPOTrainer, DPOConfig, {"beta": 2.0, "loss_type": ["sigmoid_norm"]}),
    "kto": Case(
        "kto", {"beta": 0.3, "desirable": 1.5, "undesirable": 0.7}, KTOTrainer, KTOConfig,
        {"beta": 0.3, "desirable_weight": 1.5, "undesirable_weight": 0.7},
    ),
    "orpo": Case("orpo", {"beta": 0.4}, ORPOTrainer, ORPOConfig, {"beta": 0.4}, reference=False),
    "simpo": Case(
        "simpo", {"beta": 1.5, "gamma": 0.4}, CPOTrainer, CPOConfig,
        {"beta": 1.5, "simpo_gamma": 0.4, "loss_type": "simpo", "cpo_alpha": 0.0}, reference=False,
    ),
    "reward": Case(
        "reward", {"centre": 0.2}, RewardTrainer, RewardConfig, {"center_rewards_coefficient": 0.2}, reference=False
    ),
}  # fmt: skip


def batch_of(case: Case) -> dict[str, Tensor]:
    """Return what the objective reads; replies without pairs stand beside those of others, moved by one."""
    seconds = [CHOSEN[-1], *CHOSEN[:-1]] if case.ours == "kto" else REJECTED
    rows = [[(p, c), (p, o)] for p, c, o in zip(PROMPTS, CHOSEN, seconds, strict=True)]
    known = {**fields(rows), "desirable": torch.tensor(DESIRABLE), "margin": torch.tensor(MARGIN)}
    return {name: known[name] for name in case.objective().needs}


def their_inputs(case: Case) -> dict[str, Tensor]:
    """Return the same rows as trl's collators give them."""
    batch = fields([[(p, c), (p, r)] for p, c, r in zip(PROMPTS, CHOSEN, REJECTED, strict=True)])
    batch = batch_of(case) if case.ours == "kto" else batch
    first, second = ({name: batch[name][:, place].long() for name in ("ids", "real", "reply")} for place in (0, 1))
    if case.ours in ("orpo", "simpo"):
        sides = {"chosen": first, "rejected": second}
        return {
            f"{name}_{key}": value
            for name, side in sides.items()
            for key, value in (
                ("input_ids", side["ids"]),
                ("attention_mask", side["real"]),
                ("labels", side["ids"].masked_fill(side["reply"] == 0, -100)),
            )
        }
    named = {"input_ids": "ids", "attention_mask": "real", "completion_mask": "reply"}
    if case.ours == "kto":
        mismatched = {f"KL_{name}": second[own] for name, own in named.items()}
        return {**{n: first[own] for n, own in named.items()}, **mismatched, "label": torch.tensor(DESIRABLE)}
    both = {name: torch.cat([first[own], second[own]]) for name, own in named.items()}
    if case.ours == "reward":
        return {
            "input_ids": both["input_ids"],
            "attention_mask": both["attention_mask"],
            "margin": torch.tensor(MARGIN),
        }
    return both


def dataset(case: Case) -> Any:
    """Return rows for trl's trainers to begin with; the losses are asked for with other ones."""
    sides = {"completion": "w9 w8", "label": True} if case.ours == "kto" else {"chosen": "w9 w8", "rejected": "w7"}
    return Dataset.from_list([{"prompt": "w5 w6", **sides}] * 3)


def tokenizer() -> Any:
    words = Tokenizer(models.WordLevel({f"w{n}": n for n in range(97)}, unk_token="w4"))
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=words, bos_token="w1", eos_token="w2", pad_token="w0", unk_token="w4"
    )


def trainer(case: Case, model: nn.Module, reference: nn.Module | None, folder: Any, adapter: Any = None) -> Any:
    options = {"ref_model": reference} if case.reference and adapter is None else {}
    options |= {} if adapter is None else {"peft_config": adapter}
    return case.trainer(
        model=model,
        args=case.config(output_dir=str(folder), **{**USUAL, **case.theirs}),
        train_dataset=dataset(case),
        processing_class=tokenizer(),
        **options,
    )


def moved(model: nn.Module, names: str = "", size: float = 0.05) -> nn.Module:
    """Move every parameter whose name holds a word, so that a model is not its own reference."""
    rng = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if names in name:
                parameter.add_(size * torch.randn(parameter.shape, generator=rng, dtype=parameter.dtype))
    return model


def their_loss(made: Any, inputs: Mapping[str, Tensor]) -> Tensor:
    """Return their loss, in float64 also where they cast to float32: the model, the tiled head, ORPO's own cast."""
    with oracle.widened(oracle.modelling("llama"), chunked_logprob):
        loss: Tensor = made.compute_loss(made.model, dict(inputs))
    return loss


def our_loss(
    objective: Objective, model: nn.Module, batch: Mapping[str, Tensor], micro_batch: int | None = None
) -> Any:
    precision = Precision("float32", "plain", "cpu", 1)
    return accumulate(model, objective, batch, micro_batch=micro_batch, seed=(0, 0), ranks=Alone(), precision=precision)


def models_of(case: Case) -> Pair:
    if case.ours == "reward":
        return pair("llama", auto="AutoModelForSequenceClassification", num_labels=1, pad_token_id=0, **CONFIG)
    return pair("llama", **CONFIG)


def apart(gradients: Mapping[str, Tensor], wanted: Mapping[str, Tensor]) -> float:
    assert gradients.keys() == wanted.keys()
    return max(float((gradients[n] - wanted[n]).abs().max() / wanted[n].abs().max().clamp(min=1)) for n in wanted)


def gradients(model: nn.Module) -> dict[str, Tensor]:
    return {name: p.grad for name, p in model.named_parameters() if p.grad is not None}


def both(case: Case, folder: Any) -> tuple[Any, Objective, Pair]:
    """Return their trainer and our objective, with models that have learnt something since the reference was made."""
    made = models_of(case)
    objective = case.objective()
    own_modules(objective, made.ours)
    made.ours.load_state_dict(moved(copy.deepcopy(made.ours)).state_dict())
    reference = copy.deepcopy(made.theirs)
    weights = dict(made.theirs.named_parameters())
    with torch.no_grad():
        for name, tensor in to_theirs({n: p.detach() for n, p in made.ours.named_parameters()}, made.rules).items():
            weights[name].copy_(tensor)
    return trainer(case, made.theirs, reference, folder), objective, made


@pytest.mark.parametrize("name", CASES)
def test_loss_and_gradients_are_trls(name: str, tmp_path: Any) -> None:
    case = CASES[name]
    theirs, objective, made = both(case, tmp_path)
    wanted, result = their_loss(theirs, their_inputs(case)), our_loss(objective, made.ours, batch_of(case))
    assert wanted.dtype == torch.float64
    assert result.loss == pytest.approx(float(wanted.detach()), abs=TOLERANCE)
    wanted.backward()
    expected = to_ours(gradients(made.theirs), made.rules, shapes_of(made.ours))
    assert apart(gradients(made.ours), expected) < TOLERANCE


@pytest.mark.parametrize("name", CASES)
def test_a_wrong_weight_and_a_lost_end_token_are_seen(name: str, tmp_path: Any) -> None:
    case = CASES[name]
    theirs, objective, made = both(case, tmp_path)
    wanted = float(their_loss(theirs, their_inputs(case)).detach())
    batch, masked = batch_of(case), "real" if name == "reward" else "reply"
    lost = batch[masked].clone()
    lost[0, 0, 5] = False
    assert abs(our_loss(objective, made.ours, {**batch, masked: lost}).loss - wanted) > 10 * TOLERANCE
    key = next(iter(case.settings))
    setattr(objective, key, case.settings[key] * 1.01)
    assert abs(our_loss(objective, made.ours, batch).loss - wanted) > 10 * TOLERANCE


@pytest.mark.parametrize("name", [name for name in CASES if name != "reward"])
def test_beside_an_adapter_the_reference_is_the_model_without_it(name: str, tmp_path: Any) -> None:
    """As in trl; the gradients of the adapter are theirs, and the frozen weights are not held twice."""
    case, made = CASES[name], pair("llama", **CONFIG)
    theirs = trainer(case, made.theirs, None, tmp_path, LoraConfig(r=4, lora_alpha=6, target_modules=TARGETS))
    theirs.model.double()
    objective = case.objective()
    ours = LoRA(rank=4, alpha=6.0, targets=("*.q", "*.v", "*.down")).apply(made.ours)
    own = own_modules(objective, ours)
    held = {weight.data_ptr() for weight in ours.parameters() if not weight.requires_grad}
    assert all(held <= {weight.data_ptr() for weight in module.parameters()} for module in own.values())
    moved(theirs.model, "lora_", 0.3)
    places = {}
    for full, parameter in theirs.model.named_parameters():
        if "lora_" in full:
            parts = full.split(".")
            branch = "feed_forward.branch.down" if "down_proj" in parts else f"attention.branch.{parts[-4][0]}"
            places[full] = f"stack.blocks.{parts[parts.index('layers') + 1]}.{branch}.{parts[-3].lower()}"
            ours.get_parameter(places[full]).data.copy_(parameter)
    wanted, result = their_loss(theirs, their_inputs(case)), our_loss(objective, ours, batch_of(case))
    assert result.loss == pytest.approx(float(wanted.detach()), abs=TOLERANCE)
    wanted.backward()
    expected = {places[full]: gradient for full, gradient in gradients(theirs.model).items()}
    assert len(expected) == 12
    assert apart(gradients(ours), expected) < TOLERANCE
    check(objective)
