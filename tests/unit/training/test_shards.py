"""A recipe with token shards: what is learnt is what the text itself would have taught."""

from typing import Any

import pytest

from orrery.checkpoints.store import CheckpointStore
from orrery.cli.train.app import run
from orrery.data.shards.prepare import prepare
from orrery.errors import DataError, UsageError
from orrery.recipes.read import as_yaml, check_recipe, load_recipe
from orrery.runs.assemble import assemble, validation
from orrery.text.train import train_tokenizer

TEXT = "".join(f"line {number * 37 % 101} of a text that teaches little.\n" for number in range(200))


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "a.txt").write_text(TEXT)
    tokenizer = train_tokenizer("character", [TEXT])
    tokenizer.save(tmp_path / "tokenizer")
    prepare(tmp_path / "a.txt", tokenizer, tmp_path / "tokens", shard_tokens=1000)
    return tmp_path


def recipe(folder, data: dict[str, Any], **changes: Any):
    values: dict[str, Any] = {
        "name": "sharded",
        "model": {"family": "gpt2", "config": {"n_embd": 12, "n_layer": 1, "n_head": 2, "n_positions": 16}},
        "tokenizer": {"file": str(folder / "tokenizer")},
        "data": data,
        "batches": {"length": 16, "size": 4},
        "training": {"steps": 4, "precision": "float32", "device": "cpu", "optimizer": {"rate": 0.01}},
        "evaluation": {"every": 2},
        "checkpoints": {"every": 4},
        "logging": {"every": 1},
    }
    return check_recipe(values | changes, "sharded")


def weights(folder, settings):
    run(settings, folder, resume=False, overwrite=False)
    last = CheckpointStore(folder / "checkpoints").path(4)
    return {path.name: path.read_bytes() for path in last.glob("*.safetensors")}


def test_shards_teach_what_their_text_teaches(folder):
    text = recipe(folder, {"train": str(folder / "a.txt"), "split": {"tail": 0.1}})
    shards = recipe(folder, {"shards": str(folder / "tokens")})
    assert weights(folder / "one", text) == weights(folder / "two", shards)
    losses = [(folder / name / "metrics.jsonl").read_text().count('"val/bpb"') for name in ("one", "two")]
    assert losses[0] == losses[1] > 0


def test_the_recipe_is_written_and_read_again(folder, tmp_path):
    settings = recipe(folder, {"shards": str(folder / "tokens")})
    (tmp_path / "again.yaml").write_text(as_yaml(settings))
    assert load_recipe(tmp_path / "again.yaml") == settings


def test_what_does_not_fit_is_refused(folder):
    data = {"shards": str(folder / "tokens")}
    with pytest.raises(UsageError, match=r"tokenizer\.file"):
        recipe(folder, data, tokenizer={"kind": "character"})
    with pytest.raises(UsageError, match="data of kind shards come as crops"):
        run(
            recipe(folder, data, batches={"kind": "packed", "length": 16, "size": 4}),
            folder / "run",
            resume=False,
            overwrite=False,
        )
    train_tokenizer("character", ["other letters"]).save(folder / "other")
    with pytest.raises(DataError, match="made by tokenizer"):
        run(
            recipe(folder, data, tokenizer={"file": str(folder / "other")}),
            folder / "run",
            resume=False,
            overwrite=False,
        )
    with pytest.raises(DataError, match="no token shards"):
        run(recipe(folder, {"shards": str(folder / "none")}), folder / "run", resume=False, overwrite=False)


@pytest.mark.parametrize("asked", [{"best": "loss"}, {"patience": 2}, {"sample": "line"}])
def test_a_source_that_holds_nothing_back_after_all_is_measured_by_nothing(folder, asked):
    made = assemble(recipe(folder, {"shards": str(folder / "tokens")}))
    parts = (made.spec, made.tokenizer, made.parts.objective, None)
    assert validation(recipe(folder, {"shards": str(folder / "tokens")}), *parts) is None
    with pytest.raises(UsageError, match=f"evaluation.{next(iter(asked))}: nothing of tokens is held back to measure"):
        validation(recipe(folder, {"shards": str(folder / "tokens")}, evaluation=asked), *parts)


def test_a_batch_has_rows_times_length_positions(folder):
    assembled = assemble(recipe(folder, {"shards": str(folder / "tokens")}))
    assert assembled.batch_tokens == 4 * 16
