"""The balance of experts as a term of a loss: its weight, its padding, what is refused, runs with it, what it does."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from objectives_toy import bound, tiny, tokenizer_of
from orrery.data.batches.padded_rows import PackedRows, padded
from orrery.errors import UsageError
from orrery.exchange.saving.save import save_model
from orrery.families import load_family
from orrery.models.initialise import initialise
from orrery.models.prefix_mask import with_prefix
from orrery.nn.context import Execution
from orrery.nn.feedforward.moe import MoE
from orrery.nn.feedforward.routing import Routing
from orrery.nn.spec import traverse
from orrery.objectives import OBJECTIVES
from orrery.objectives._balance import TERM, Balance
from orrery.objectives.causal import CausalLanguageModel
from orrery.recipes.read import check_recipe
from orrery.runs.execute import execute
from orrery.tasks.finetuning.recipe import Request, recipe_for
from orrery.training.distributed import Alone
from orrery.training.precision import Precision
from orrery.training.progress import Silent
from orrery.training.step import accumulate
from tiny_models import TEXT, TOKENIZER, randomised
from training_toy import toy_recipe

SIZES = {
    "hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2,
    "num_key_value_heads": 2, "num_local_experts": 8, "num_experts_per_tok": 2, "max_position_embeddings": 64,
}  # fmt: skip
LENGTHS = (9, 4, 12, 7)
KINDS = ("causal", "sft", "prefix")


def rows() -> list[dict[str, list[int]]]:
    rng = torch.Generator().manual_seed(1)
    ids_of_rows = [torch.randint(3, 60, (length,), generator=rng).tolist() for length in LENGTHS]
    return [{"ids": ids, "targets": [*ids[1:], -100]} for ids in ids_of_rows]


def mixtral(**config: Any) -> nn.Module:
    return tiny("mixtral", tokenizer_of(None), **{**SIZES, **config})


def step(objective: Any, batch: Any, micro_batch: int | None = None) -> Any:
    precision = Precision("float32", "plain", "cpu", 1)
    how = {"micro_batch": micro_batch, "seed": (0, 0), "ranks": Alone(), "precision": precision}
    return accumulate(mixtral(), objective, batch, **how)


@pytest.mark.parametrize("kind", ["causal", "sft"])
def test_the_loss_has_the_weighted_term_and_reports_it_without_its_weight(kind: str) -> None:
    batch, objective = padded(rows()), OBJECTIVES.find(kind)
    plain, stepped = step(objective(), batch), step(objective(balance=0.5), batch)
    assert plain.means == {}
    assert plain.terms.keys() == {"next_token"}
    assert stepped.terms == {**plain.terms, TERM: pytest.approx(0.5 * stepped.means[TERM])}
    assert stepped.loss == pytest.approx(plain.loss + 0.5 * stepped.means[TERM])
    assert 2.0 < stepped.means[TERM] < 8.0


def test_padding_and_packing_do_not_count() -> None:
    objective, batch = CausalLanguageModel(balance=1.0), padded(rows())
    expected = step(objective, batch).means[TERM]
    noise = {**batch, "ids": torch.where(batch["real"], batch["ids"], 7)}
    assert step(objective, noise).means[TERM] == pytest.approx(expected, abs=1e-9)
    packed = PackedRows(rows(), 24, len(PackedRows(rows(), 24, 1, 3).packed), 3).batch(0)
    assert "documents" in packed
    assert step(objective, packed).means[TERM] == pytest.approx(expected, abs=1e-9)


def test_a_batch_is_not_split() -> None:
    with pytest.raises(UsageError, match="'balance' couples the examples"):
        step(CausalLanguageModel(balance=0.1), padded(rows()), micro_batch=2)


@pytest.mark.parametrize("kind", KINDS)
def test_a_model_without_experts_is_refused_by_name(kind: str) -> None:
    llama = with_prefix(tiny("llama", tokenizer_of(None)).spec).build()
    bound(kind, llama, None)
    with pytest.raises(UsageError, match=r"objective\.balance needs mixtures of equally many experts, .* has none"):
        bound(kind, llama, None, balance=0.1)


def test_mixtures_of_unlike_sizes_are_refused_with_both() -> None:
    spec = mixtral().spec
    other = mixtral(num_local_experts=4).spec.stack.blocks[0]
    unlike = replace(spec, stack=replace(spec.stack, blocks=(spec.stack.blocks[0], other)))
    assert len({part.router.experts for _, part in traverse(unlike) if isinstance(part, MoE.Spec)}) == 2
    with pytest.raises(UsageError, match="has mixtures of 4 and 8"):
        Balance(0.1).bind(unlike)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_held_back_is_measured_without_it(kind: str) -> None:
    assert OBJECTIVES.find(kind)(balance=0.1).evaluated().reports == ()


def test_a_recipe_may_expect_it_where_it_is_asked_for() -> None:
    expected = {"metric": "train/balance", "bound": 2.5}
    assert toy_recipe(objective={"kind": "causal", "balance": 0.1}, expect=expected).expect is not None
    with pytest.raises(UsageError, match="train/balance is never measured here"):
        toy_recipe(expect=expected)
    with pytest.raises(UsageError, match=r"objective\.balance"):
        toy_recipe(objective={"kind": "causal", "balance": -0.1})


SHORT = {"steps": 2, "precision": "float32", "device": "cpu", "optimizer": {"rate": 0.01}}


def told(recipe: Any, folder: Path) -> list[float]:
    """Return what a run tells of the balance."""
    execute(recipe, folder, Silent(), resume=False, overwrite=False)
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return [line[f"train/{TERM}"] for line in lines if f"train/{TERM}" in line]


def test_a_recipe_alone_trains_with_it_and_is_refused_for_a_model_without_experts(tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text(TEXT * 4)
    values: dict[str, Any] = {
        "name": "even",
        "model": {"family": "mixtral", "config": SIZES},
        "tokenizer": {"kind": "character"},
        "data": {"train": str(tmp_path / "text.txt")},
        "batches": {"length": 8, "size": 4},
        "objective": {"kind": "causal", "balance": 0.02},
        "training": {**SHORT, "schedule": {"kind": "constant"}},
        "logging": {"every": 1},
    }
    balances = told(check_recipe(values, "even"), tmp_path / "run")
    assert len(balances) == 2
    assert all(2.0 <= value < 8.0 for value in balances)
    dense = {"family": "llama", "config": {name: n for name, n in SIZES.items() if "expert" not in name}}
    with pytest.raises(UsageError, match=r"objective\.balance needs mixtures"):
        execute(
            check_recipe({**values, "model": dense}, "even"),
            tmp_path / "other",
            Silent(),
            resume=False,
            overwrite=False,
        )


def test_fine_tuning_on_conversations_takes_the_key(tmp_path: Path) -> None:
    config = {**SIZES, "vocab_size": TOKENIZER.size}
    save_model(tmp_path / "base", randomised(load_family("mixtral").spec(config).build()), "mixtral", config, TOKENIZER)
    chats = [
        {"messages": [{"role": "user", "content": f"cat {n}"}, {"role": "assistant", "content": "sat"}]}
        for n in range(20)
    ]
    (tmp_path / "chats.jsonl").write_text("".join(json.dumps(chat) + "\n" for chat in chats))
    flags = (
        "--objective.balance",
        "0.02",
        "--training.steps",
        "2",
        "--training.precision",
        "float32",
        "--logging.every",
        "1",
    )
    recipe = recipe_for(Request("sft", str(tmp_path / "base"), str(tmp_path / "chats.jsonl")), flags)
    values = told(recipe, tmp_path / "run")
    assert values
    assert all(2.0 <= value < 8.0 for value in values)


VOCABULARY = 32


def counting(rng: torch.Generator) -> dict[str, torch.Tensor]:
    """Return rows that count on by one, two or three."""
    start, by = torch.randint(VOCABULARY, (16, 1), generator=rng), torch.randint(1, 4, (16, 1), generator=rng)
    ids = (start + by * torch.arange(13)) % VOCABULARY
    return {"ids": ids[:, :-1], "targets": ids[:, 1:]}


def evenness_after_training(balance: float, seed: int) -> float:
    """Return the entropy of the load of the first mixture, in nats, after 60 steps.

    The embeddings begin with a part that all tokens share, so that the router sends all of them to the same experts.
    """
    model = load_family("mixtral").spec({**SIZES, "vocab_size": VOCABULARY}).build()
    initialise(model, depth=2, seed=seed)
    with torch.no_grad():
        model.embed.token.weight.add_(0.2)
    rng, objective = torch.Generator().manual_seed(seed), CausalLanguageModel(balance=balance)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.003)
    for number in range(60):
        optimizer.zero_grad()
        how = {"micro_batch": None, "seed": (seed, number), "ranks": Alone()}
        accumulate(model, objective, counting(rng), precision=Precision("float32", "plain", "cpu", 1), **how)
        optimizer.step()
    routings: list[Routing] = []
    with torch.no_grad():
        model(counting(torch.Generator().manual_seed(99)), None, Execution(routings=routings))
    load_X = routings[0].load()
    return float(-torch.special.xlogy(load_X, load_X).sum())


@pytest.mark.parametrize("seed", range(3))
def test_experts_that_all_tokens_begin_at_are_left_with_the_term_and_kept_without(seed: int) -> None:
    """Eight equal loads have log 8 = 2.08 nats, two have 0.69."""
    assert evenness_after_training(0.0, seed) < 1.3
    assert evenness_after_training(0.01, seed) > 1.6
