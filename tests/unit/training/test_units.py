"""Numbers in any unit: learned about as large as 1, answered in their own, and written as published heads have them."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from orrery.errors import DataError
from orrery.exchange.saving.save import save_model
from orrery.families import load_family
from orrery.language_model.load import load
from orrery.nn.heads import InUnits
from orrery.runs.assemble import assemble
from orrery.runs.execute import execute
from orrery.tasks.finetuning.recipe import Request, recipe_for
from orrery.tasks.pipelines import pipeline
from orrery.text.special import framed_tokenizer
from orrery.training.progress import Silent
from orrery.training.units import in_own_units, unit_of
from tiny_models import ENCODERS, TOKENIZER, randomised

FRAMED = framed_tokenizer(TOKENIZER, "bert")
CONFIG = {**ENCODERS["bert"], "num_hidden_layers": 1, "vocab_size": FRAMED.size}
TEXTS = [f"the {animal} sat {n}" for n in range(12) for animal in ("cat", "dog")]
PLAIN = [float(n % 5) for n in range(len(TEXTS))]
UNITS = {
    "years": (1.0, 2020.0), "prices": (50_000.0, 250_000.0), "cents": (1e7, 1e9), "tiny": (1e-7, 0.0),
    "negative": (-3.0, -70.0), "far": (0.5, 1e4), "percent": (100.0, 0.0), "shares": (0.01, 0.5), "huge": (1e20, 0.0),
    "turned": (-1e6, 1e6), "as they are": (1.0, 0.0),
}  # fmt: skip
STEPS = ("--training.steps", "4", "--training.precision", "float32", "--training.optimizer.rate", "0.01")


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("base") / "bert"
    save_model(folder, randomised(load_family("bert").spec(CONFIG).build()), "bert", CONFIG, FRAMED)
    return str(folder)


def rows(path: Path, factor: float, offset: float) -> str:
    lines = ({"text": text, "score": factor * y + offset} for text, y in zip(TEXTS, PLAIN, strict=True))
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return str(path)


def recipe_of(path: Path, base: str, unit: str) -> Any:
    return recipe_for(Request("regression", base, rows(path / "rows.jsonl", *UNITS[unit])), STEPS)


def learned(path: Path, base: str, unit: str) -> tuple[list[float], list[float]]:
    """Return what is answered after training, in the plain unit, and the losses."""
    path.mkdir(exist_ok=True)
    execute(recipe_of(path, base, unit), path / "run", Silent(), resume=False, overwrite=False)
    ask = pipeline("text-classification", load(path / "run", device="cpu", say=lambda line: None))
    factor, offset = UNITS[unit]
    records = [json.loads(line) for line in (path / "run" / "metrics.jsonl").read_text().splitlines()]
    losses = [record["train/loss"] for record in records if "train/loss" in record]
    return [(each["score"] - offset) / factor for each in ask(TEXTS[:4])], losses


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory, base: str) -> tuple[list[float], list[float]]:
    return learned(tmp_path_factory.mktemp("plain"), base, "as they are")


@pytest.mark.parametrize("unit", [unit for unit in UNITS if unit != "as they are"])
def test_the_unit_of_numbers_changes_nothing_that_is_learned(
    tmp_path: Path, base: str, plain: tuple[list[float], list[float]], unit: str
) -> None:
    answers, losses = learned(tmp_path, base, unit)
    factor, offset = UNITS[unit]
    if factor < 0:  # the plain run learns the same numbers with the other sign: another curve
        assert losses == pytest.approx(plain[1], rel=0.5)
        return
    apart = 1e-3 * max(1.0, abs(offset / factor) / 100)  # float32 holds seven digits of the offset
    assert losses == pytest.approx(plain[1], rel=apart)
    assert answers == pytest.approx(plain[0], abs=apart)


def test_a_loss_of_one_is_that_of_the_mean(plain: tuple[list[float], list[float]]) -> None:
    assert all(0.5 < loss < 2 for loss in plain[1])  # the head begins near 0, so near the mean


def test_a_head_that_is_written_answers_as_the_one_that_was_trained(tmp_path: Path, base: str) -> None:
    model: Any = assemble(recipe_of(tmp_path, base, "prices")).parts.model.eval()
    batch = {"ids": torch.tensor([FRAMED.frame("the cat sat 3").ids])}
    with torch.no_grad():
        before = model(batch, ["sequence"])["sequence"]
        assert isinstance(model.spec.heads["sequence"].unit, InUnits.Spec)
        with in_own_units(model):
            assert not isinstance(model.spec.heads["sequence"].unit, InUnits.Spec)
            inside = model(batch, ["sequence"])["sequence"]
        after = model(batch, ["sequence"])["sequence"]
    assert torch.equal(before, after)
    assert isinstance(model.spec.heads["sequence"].unit, InUnits.Spec)
    torch.testing.assert_close(inside, before, rtol=1e-6, atol=0.1)
    assert 1e5 < float(before) < 1e6


def test_a_model_that_is_trained_on_answers_first_as_it_did(tmp_path: Path, base: str) -> None:
    execute(recipe_of(tmp_path, base, "years"), tmp_path / "run", Silent(), resume=False, overwrite=False)
    lm = load(tmp_path / "run", device="cpu", say=lambda line: None)
    said = pipeline("text-classification", lm)("the cat sat 3")[0]["score"]
    again = recipe_for(
        Request("regression", str(tmp_path / "run"), rows(tmp_path / "p.jsonl", *UNITS["prices"])), STEPS
    )
    model: Any = assemble(again).parts.model.eval()
    with torch.no_grad():
        answered = model({"ids": torch.tensor([FRAMED.frame("the cat sat 3").ids])}, ["sequence"])["sequence"]
    assert float(answered) == pytest.approx(said, abs=0.05)  # float32 near 250,000
    assert 2000 < said < 2040


def test_constant_numbers_and_those_without_a_bias_have_a_unit_and_the_largest_none() -> None:
    assert unit_of([7.0, 7.0], centred=True) == InUnits.Spec(centre=7.0, spread=1.0)
    assert unit_of([3.0, -3.0, 3.0], centred=False) == InUnits.Spec(centre=0.0, spread=3.0)
    assert unit_of([0.0], centred=False) == InUnits.Spec(centre=0.0, spread=1.0)
    for numbers in ([1e308, 1e308], [1e200, -1e200], [1e31, -1e31]):
        with pytest.raises(DataError, match="cannot be learned"):
            unit_of(numbers, centred=True)
