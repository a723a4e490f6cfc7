"""Preferences held back are scored whatever they are: pairs, replies that stand alone, one kind of these, a mixture."""

from pathlib import Path
from typing import Any

import pytest
import torch

import orrery
from orrery.data.sources.preferences import PreferenceSettings, PreferenceSource
from orrery.errors import UsageError
from orrery.exchange.saving.save import save_model
from orrery.language_model.model import LanguageModel
from orrery.tasks.dpo import DirectPreferences
from orrery.tasks.finetuning._separation import separation
from orrery.tasks.finetuning.findings import Findings
from orrery.tasks.reward import RewardModelling
from orrery.text.chat.formats import ChatFormat
from orrery.text.chat.of_run import control_tokens_of
from orrery.text.special import with_control
from preference_toy import written
from tiny_models import CONFIGS, TOKENIZER, tiny

WORDS = ("cat", "dog", "mat", "log")


def alone(good: Any, word: str = "cat") -> dict[str, Any]:
    return {"prompt": f"{word}?", "completion": f"the {word}" if good in (True, 1, "true") else "no", "label": good}


def pair(word: str) -> dict[str, Any]:
    return {"prompt": f"{word}?", "chosen": f"the {word}", "rejected": "no"}


def talk(good: bool, word: str) -> dict[str, Any]:
    said = [{"role": "system", "content": "short"}, {"role": "user", "content": word}]
    return {"prompt": said, "completion": [{"role": "assistant", "content": word}], "label": good}


CASES: dict[str, tuple[list[dict[str, Any]], str]] = {
    "in turn": ([alone(n % 2 == 0, word) for n, word in enumerate(WORDS)], "separation"),
    "numbers": ([alone(n % 2, word) for n, word in enumerate(WORDS)], "separation"),
    "words": ([alone("false" if n % 3 else "true", word) for n, word in enumerate(WORDS)], "separation"),
    "one good": ([alone(n == 0, word) for n, word in enumerate(WORDS)], "separation"),
    "one bad": ([alone(n != 0, word) for n, word in enumerate(WORDS)], "separation"),
    "all good": ([alone(True, word) for word in WORDS], "judged-chosen"),
    "all bad": ([alone(False, word) for word in WORDS], "judged-chosen"),
    "a single row": ([alone(True)], "judged-chosen"),
    "two rows": ([alone(True), alone(False, "dog")], "separation"),
    "one prompt": ([alone(n % 2 == 0) for n in range(4)], "separation"),
    "conversations": ([talk(n % 2 == 0, word) for n, word in enumerate(WORDS)], "separation"),
    "pairs": ([pair(word) for word in WORDS], "accuracy"),
    "a pair and others": ([pair("cat"), *(alone(n % 2 == 0, word) for n, word in enumerate(WORDS))], "accuracy"),
}


@pytest.fixture(scope="module")
def lm(tmp_path_factory: pytest.TempPathFactory) -> LanguageModel:
    folder = tmp_path_factory.mktemp("assistant") / "llama"
    tokenizer = with_control(TOKENIZER, control_tokens_of("chatml"))
    config = {**CONFIGS["llama"], "vocab_size": tokenizer.size, "max_position_embeddings": 64}
    model = tiny("llama", torch.float32, **config)
    save_model(folder, model, "llama", config, tokenizer, chat={"default": ChatFormat("chatml").jinja()})
    return orrery.load(folder)


def source(rows: list[dict[str, Any]], folder: Path, long: str = "cut") -> PreferenceSource:
    file = written(folder / "rows.jsonl", rows)
    return PreferenceSource.read(PreferenceSettings.model_validate({"train": file, "val": file, "long": long}))


@pytest.mark.parametrize("case", CASES)
def test_whatever_is_held_back_is_scored(case: str, lm: LanguageModel, tmp_path: Path) -> None:
    rows, first = CASES[case]
    held_back = source(rows, tmp_path)
    findings = DirectPreferences.findings(lm, held_back, 40)
    assert findings.main.name == first
    assert all(0 <= score.score <= 1 for score in findings.scores[:-1])
    told: list[tuple[int, int]] = []
    others = DirectPreferences.beside(lm, lambda: lm, held_back, 40, lambda *count: told.append(count))
    assert len(told) >= 4
    assert all(0 < done <= whole for done, whole in told)
    beside = dict.fromkeys(score.name for _, score in others)
    compared = {"separation": "reward-accuracy-separation", "accuracy": "reward-accuracy"}
    assert [name for name in beside if name.startswith("reward-")] == ([compared[first]] if first in compared else [])
    assert "KL" in beside
    told = f"{sum('label' not in row for row in rows)} pairs"
    count = sum("label" in row for row in rows)
    assert ("pairs" in findings.examples) == (not told.startswith("0"))
    assert (f"{count} replies that stand alone" in findings.examples) == bool(count)
    assert all(floor.name == first for _, floor in findings.floors)
    assert isinstance(findings, Findings)
    assert findings.lines()
    assert findings.as_json()


def test_nothing_that_fits_is_refused(lm: LanguageModel, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no preference held back fits into a row") as fault:
        DirectPreferences.findings(lm, source([alone(True)], tmp_path, "leave_out"), 4)
    assert "batches.length" in fault.value.hint


def test_rewards_are_compared_in_pairs_alone(lm: LanguageModel, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no pair is held back: every reply stands alone") as fault:
        RewardModelling.findings(lm, source([alone(True), alone(False)], tmp_path), 64)
    assert "--val" in fault.value.hint


@pytest.mark.parametrize(
    ("judged", "share"),
    [
        ([(1.0, True), (0.0, False)], 1.0),
        ([(0.0, True), (1.0, False)], 0.0),
        ([(1.0, True), (1.0, False)], 0.5),
        ([(2.0, True), (1.0, False), (0.0, True), (0.0, False)], 0.625),
        ([(1.0, True), (1.0, True)], 0.5),
        ([(1.0, False)], 0.5),
    ],
)
def test_separation_counts_all_pairs_of_a_desirable_and_an_undesirable_reply(
    judged: list[tuple[float, bool]], share: float
) -> None:
    assert separation(judged) == pytest.approx(share)


def test_separation_is_a_loop_over_pairs() -> None:
    rng = torch.Generator().manual_seed(0)
    values, good = torch.randint(0, 6, (40,), generator=rng).tolist(), torch.rand(40, generator=rng).gt(0.4).tolist()
    judged = list(zip(map(float, values), good, strict=True))
    each = [(a > b) + (a == b) / 2 for a, yes in judged if yes for b, no in judged if not no]
    assert separation(judged) == pytest.approx(sum(each) / len(each))
