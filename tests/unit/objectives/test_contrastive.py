"""Contrastive learning: the loss by hand and by torch's cross entropy, what couples, and a run that learns to match."""

import math
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from orrery.cli.train.app import run
from orrery.errors import UsageError
from orrery.families import load_family
from orrery.language_model.load import load
from orrery.models.sentence_vectors import POOLINGS
from orrery.objectives import Objective
from orrery.objectives.contrastive import TERM, Contrastive, info_nce, together
from orrery.recipes.config import Recipe
from orrery.recipes.read import check_recipe
from orrery.runs.assemble import assemble
from orrery.training.distributed import Alone
from orrery.training.precision import Precision
from orrery.training.step import accumulate


def by_hand(z: torch.Tensor, group: list[int], temperature: float) -> float:
    """The definition, number by number."""
    rows = [[value / math.sqrt(sum(v * v for v in row)) for value in row] for row in z.tolist()]
    score = lambda i, j: sum(a * b for a, b in zip(rows[i], rows[j], strict=True)) / temperature  # noqa: E731
    total = 0.0
    for i, own in enumerate(group):
        others = sum(math.exp(score(i, k)) for k, other in enumerate(group) if other != own)
        for j, other in enumerate(group):
            if i != j and own == other:
                total -= math.log(math.exp(score(i, j)) / (math.exp(score(i, j)) + others))
    return total


@pytest.mark.parametrize("group", [[0, 1, 2, 0, 1, 2], [0, 0, 1, 1, 1, 2], [5, 5], [1, 2, 3], [7, 7, 7, 7]])
@pytest.mark.parametrize("temperature", [0.05, 1.0])
def test_the_loss_is_its_definition(group: list[int], temperature: float) -> None:
    z = torch.randn(len(group), 4, dtype=torch.float64, generator=torch.Generator().manual_seed(len(group)))
    z.requires_grad_()
    loss = info_nce(z, torch.tensor(group), temperature)
    assert float(loss.detach()) == pytest.approx(by_hand(z, group, temperature), rel=1e-12, abs=1e-9)
    loss.backward()
    assert z.grad is not None
    assert bool(z.grad.isfinite().all())
    counted = Contrastive().counts({"group": torch.tensor(group)})[TERM]
    assert counted == sum(group.count(own) - 1 for own in group)
    if len(set(group)) > 2 and counted:
        torch.autograd.gradcheck(lambda x: info_nce(x, torch.tensor(group), 1.0), (z.detach().requires_grad_(),))


def test_pairs_cost_what_torch_s_cross_entropy_says() -> None:
    """Of pairs alone: each row classifies the others, itself left out, and its partner is the right class."""
    z = torch.randn(12, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    unit = nn.functional.normalize(z, dim=-1)
    logits = (unit @ unit.mT / 0.1).fill_diagonal_(-torch.inf)
    wanted = nn.functional.cross_entropy(logits, (torch.arange(12) + 6) % 12, reduction="sum")
    loss = info_nce(z, torch.arange(6).repeat(2), 0.1)
    torch.testing.assert_close(loss, wanted, rtol=1e-12, atol=0)
    wrong = info_nce(z, torch.arange(6).repeat_interleave(2), 0.1)
    assert abs(float(wrong - wanted)) > 1e-3


def model_and_batch(dtype: torch.dtype = torch.float64) -> tuple[nn.Module, dict[str, torch.Tensor]]:
    rules = load_family("bert")
    spec = rules.spec(rules.TINY)
    torch.manual_seed(0)
    rng = torch.Generator().manual_seed(1)
    ids = torch.randint(1, spec.inputs["ids"].vocabulary, (6, 7), generator=rng)
    real = torch.arange(7) < torch.tensor([7, 3, 5, 1, 7, 2])[:, None]
    batch = {"ids": ids * real, "real": real, "group": torch.tensor([0, 1, 2, 0, 1, 2])}
    return spec.build().to(dtype).eval(), batch


def test_padding_counts_for_nothing() -> None:
    model, batch = model_and_batch()
    term = Contrastive(0.1).loss(model, batch)[TERM]
    rows = [model.hidden(row[kept][None]).mean(1)[0] for row, kept in zip(batch["ids"], batch["real"], strict=True)]
    torch.testing.assert_close(term.sum, info_nce(torch.stack(rows), batch["group"], 0.1), rtol=1e-9, atol=1e-9)
    assert (int(term.count), term.coupled) == (6, True)
    with_noise = {**batch, "ids": torch.where(batch["real"], batch["ids"], 3)}
    torch.testing.assert_close(Contrastive(0.1).loss(model, with_noise)[TERM].sum, term.sum, rtol=1e-9, atol=0)


def step(objective: Objective, model: nn.Module, batch: Any, micro_batch: int | None) -> float:
    precision = Precision("float32", "plain", "cpu", 1)
    return accumulate(
        model, objective, batch, micro_batch=micro_batch, seed=(0, 0), ranks=Alone(), precision=precision
    ).loss


def test_a_batch_is_not_split() -> None:
    model, batch = model_and_batch(torch.float32)
    whole = step(Contrastive(), model, batch, None)
    assert whole == pytest.approx(float(Contrastive().loss(model, batch)[TERM].sum.detach()) / 6, rel=1e-5)
    for size in (1, 2, 3):
        with pytest.raises(UsageError, match="'match' couples the examples"):
            step(Contrastive(), model, batch, size)


def test_bfloat16_is_summed_in_float32() -> None:
    model, batch = model_and_batch(torch.float32)
    with torch.autocast("cpu", torch.bfloat16):
        loss = Contrastive(0.5).loss(model, batch)[TERM].sum
    assert loss.dtype == torch.float32
    torch.testing.assert_close(loss, Contrastive(0.5).loss(model, batch)[TERM].sum, rtol=0.05, atol=0)


COLOURS = ["red", "blue", "green", "black", "white", "pink", "grey", "gold"]
THINGS = ["cat", "dog", "sun", "sea", "car", "cup", "hat", "map"]
CODE = {word: chr(ord("A") + n) * 2 for n, word in enumerate(COLOURS + THINGS)}


def recipe(folder: Path, **changes: Any) -> Recipe:
    rows = [(f"{a} {b}", f"{CODE[b]} {CODE[a]}") for a in COLOURS for b in THINGS]
    for name, part in (("train", rows), ("val", rows[3::7])):
        (folder / f"{name}.csv").write_text("query,passage\n" + "".join(f"{a},{b}\n" for a, b in part))
    config = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 1, "num_attention_heads": 2}
    values: dict[str, Any] = {
        "name": "matched",
        "model": {"family": "bert", "config": {**config, "max_position_embeddings": 16}},
        "tokenizer": {"kind": "word"},
        "data": {"kind": "matches", "train": str(folder / "train.csv"), "val": str(folder / "val.csv")},
        "batches": {"kind": "matches", "length": 8, "size": 16},
        "objective": {"kind": "contrastive", "temperature": 0.1},
        "training": {
            "steps": 60,
            "precision": "float32",
            "device": "cpu",
            "optimizer": {"rate": 0.01},
            "schedule": {"kind": "constant"},
        },
        "evaluation": {"every": 30},
    }
    return check_recipe({**values, **changes}, "matched")


def recall(model: nn.Module, batch: Any) -> float:
    """How often the nearest other row is one that belongs to the row."""
    hidden = model.hidden(batch["ids"], real=batch["real"])
    unit = nn.functional.normalize(POOLINGS["mean"](hidden, batch["real"]), dim=-1)
    nearest = (unit @ unit.mT).fill_diagonal_(-2).argmax(-1)
    return float(together(batch["group"])[torch.arange(len(nearest)), nearest].float().mean())


def test_a_run_learns_to_find_what_belongs_together(tmp_path: Path) -> None:
    asked = recipe(tmp_path)
    begun = assemble(asked)
    batch = begun.parts.source.batch(0)
    assert batch["ids"].shape[0] == 32
    before = recall(begun.parts.model.eval(), batch)
    run(asked, tmp_path / "run", resume=False, overwrite=False)
    after = recall(load(tmp_path / "run" / "final", say=lambda line: None).model.eval(), batch)
    assert before < 0.5
    assert after > 0.9


def test_a_batch_of_one_pair_is_refused(tmp_path: Path) -> None:
    asked = recipe(tmp_path, batches={"kind": "matches", "length": 8, "size": 1})
    with pytest.raises(UsageError, match="nothing to be told from"):
        assemble(asked)
