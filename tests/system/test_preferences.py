"""``orrery dpo`` and ``orrery reward`` as a user runs them, on a tiny Llama and a few pairs."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

import orrery
from orrery.cli.program import run
from orrery.errors import DataError, UsageError
from orrery.exchange.saving.save import save_model
from orrery.language_model.rewards import rewards_of_ids
from orrery.text.chat.formats import ChatFormat
from orrery.text.chat.of_run import control_tokens_of
from orrery.text.special import with_control
from preference_toy import written
from tiny_models import CONFIGS, TOKENIZER, saved, tiny

WORDS = ["cat", "dog", "mat", "log", "sun", "sea", "cup", "map"]
FEW = ["--training.steps=4", "--batches.size=4", "--evaluation.every=2", "--checkpoints.every=2"]


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(saved(tmp_path_factory.mktemp("base") / "llama", "llama", max_position_embeddings=64))


@pytest.fixture(scope="module")
def assistant(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A base whose tokenizer has the tokens of the format, and which has its template."""
    folder = tmp_path_factory.mktemp("assistant") / "llama"
    tokenizer = with_control(TOKENIZER, control_tokens_of("chatml"))
    config = {**CONFIGS["llama"], "vocab_size": tokenizer.size, "max_position_embeddings": 64}
    model = tiny("llama", torch.float32, **config)
    save_model(folder, model, "llama", config, tokenizer, chat={"default": ChatFormat("chatml").jinja()})
    return str(folder)


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> str:
    rows = [{"prompt": f"{a} {b}?", "chosen": f"the {b}", "rejected": f"no {a}"} for a in WORDS[:6] for b in WORDS[:6]]
    return written(tmp_path_factory.mktemp("data") / "pairs.jsonl", rows)


def scores(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "scores.json").read_text())


def test_dpo_from_the_shell(assistant: str, pairs: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["dpo", assistant, "--train", pairs, "--output", str(tmp_path / "run"), *FEW]) == 0
    said = capsys.readouterr()
    assert "log p, chosen > rejected" in said.out
    assert "KL of the model and the model it began from" in said.out
    written = scores(tmp_path / "run")
    assert [score["name"] for score in written["scores"]] == ["accuracy", "judged-chosen", "ends", "length"]
    assert {floor["method"] for floor in written["floors"]} >= {"the shorter reply", "the model it began from"}
    records = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert {"val/reward_accuracy", "val/kl", "train/reward_chosen"} <= set(records[-1])
    assert (tmp_path / "run" / "final" / "chat_template.jinja").is_file()
    reply = orrery.load(tmp_path / "run").reply([{"role": "user", "content": "cat mat?"}], max_new_tokens=3)
    assert isinstance(reply.text, str)


@pytest.mark.parametrize("loss", ["kto", "orpo"])
def test_another_loss_and_an_adapter(loss: str, base: str, tmp_path: Path) -> None:
    rows = [
        {"prompt": f"{a} {b}?", "completion": f"the {b}", "label": n % 2 == 0}
        for a in WORDS
        for n, b in enumerate(WORDS)
    ]
    paired = [{"prompt": f"{a}?", "chosen": f"the {a}", "rejected": "no"} for a in WORDS * 3]
    file = written(tmp_path / "rows.jsonl", rows if loss == "kto" else paired)
    more = [] if loss == "kto" else ["--val", written(tmp_path / "val.jsonl", paired[:5])]
    words = ["dpo", base, "--train", file, *more, "--loss", loss, "--output", str(tmp_path / "run"), *FEW]
    assert run(words) == 0
    assert scores(tmp_path / "run")["scores"][0]["name"] == ("separation" if loss == "kto" else "accuracy")


def test_a_reward_model_is_one_in_transformers(base: str, pairs: str, tmp_path: Path) -> None:
    assert run(["reward", base, "--train", pairs, "--output", str(tmp_path / "run"), *FEW]) == 0
    assert [score["name"] for score in scores(tmp_path / "run")["scores"]] == ["accuracy", "margin"]
    lm = orrery.load(tmp_path / "run")
    talks = [
        [{"role": "user", "content": "cat?"}, {"role": "assistant", "content": text}] for text in ("the mat", "no")
    ]
    rewards = lm.rewards(talks)
    theirs = transformers.AutoModelForSequenceClassification.from_pretrained(tmp_path / "run" / "final").eval()
    reads = transformers.AutoTokenizer.from_pretrained(tmp_path / "run" / "final")
    rows = [reads.apply_chat_template(talk, return_dict=False) for talk in talks]
    assert reads.pad_token_id == theirs.config.pad_token_id
    with torch.no_grad():
        alone = [float(theirs(torch.tensor([row])).logits[0, 0]) for row in rows]
        for side in ("left", "right"):
            batch = reads.pad({"input_ids": rows}, padding_side=side, return_tensors="pt")
            assert theirs(**batch).logits[:, 0].tolist() == pytest.approx(alone, abs=1e-5)
    assert rewards == pytest.approx(alone, abs=1e-5)
    assert rewards == pytest.approx([lm.rewards([talk])[0] for talk in talks], abs=1e-5)
    with pytest.raises(DataError, match="the template writes nothing of the last reply"):
        lm.rewards([[{"role": "user", "content": "cat?"}]])
    with pytest.raises(UsageError, match="has 65 tokens, the model's context 64"):
        rewards_of_ids(lm.stored, [[5] * 65])
    with pytest.raises(UsageError, match="no head that gives a row one number"):
        orrery.load(base).rewards(talks)


FAULTS = {
    "no data": (["dpo", "BASE"], "learns from which data?"),
    "unpaired": (["dpo", "BASE", "--train", "UNPAIRED"], "a reply that stands alone"),
    "too long": (
        ["reward", "BASE", "--train", "PAIRS", "--data.long=refuse", "--batches.length=8"], "batches.length is 8",
    ),
    "no decoder": (["dpo", "BERT", "--train", "PAIRS"], "needs a decoder"),
    "kto in pieces": (
        ["dpo", "BASE", "--train", "PAIRS", "--loss", "kto", "--training.micro_batch=2"], "couples the examples",
    ),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_two_lines(
    fault: str, base: str, pairs: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words, message = FAULTS[fault]
    rows = [{"prompt": f"{n}?", "completion": "x", "label": True} for n in range(30)]
    places = {"BASE": base, "PAIRS": pairs, "UNPAIRED": written(tmp_path / "u.jsonl", rows)}
    places["BERT"] = str(saved(tmp_path / "bert", "bert")) if "BERT" in words else ""
    assert run([places.get(word, word) for word in words] + ["--output", str(tmp_path / "run")]) in (2, 3)
    told = [line for line in capsys.readouterr().err.splitlines() if line.startswith(("error:", "hint:"))]
    assert message in told[0]
    assert told[1].startswith("hint:")
