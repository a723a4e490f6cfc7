"""Recipes over tables, as users write them: pairs from columns, matches, and what a bad row says."""

import json
import os

import pytest
import yaml

import programs

COMMON = {
    "tokenizer": {"kind": "character"},
    "training": {"steps": 2, "precision": "float32", "device": "cpu", "optimizer": {"rate": 0.01},
                 "schedule": {"kind": "constant"}},
}  # fmt: skip
RECIPES = {
    "pairs": {
        "model": {"family": "rnnsearch", "config": {"hidden_size": 8, "max_position_embeddings": 32}},
        "batches": {"length": 16, "size": 2},
        "objective": {"kind": "seq2seq"},
    },
    "matches": {
        "model": {"family": "bert", "config": {"hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1,
                                               "num_attention_heads": 2, "max_position_embeddings": 32}},
        "batches": {"length": 16, "size": 2},
        "objective": {"kind": "contrastive"},
    },
}  # fmt: skip
GOOD = [{"long": "one two", "short": "one"}, {"long": "three four", "short": "three"}, {"long": "six", "short": "6"}]


def train(folder, kind, rows, *flags):
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    columns = (
        {"columns": {"source": "long", "target": "short"}} if kind == "pairs" else {"text": "long", "pair": "short"}
    )
    data = {"kind": kind, "pairs" if kind == "pairs" else "train": str(folder / "rows.jsonl"), **columns}
    recipe = {"name": "table", "data": data, **COMMON, **RECIPES[kind]}
    (folder / "recipe.yaml").write_text(yaml.safe_dump(recipe))
    environment = {**os.environ, "ORRERY_RUNS": str(folder / "runs")}
    words = [*programs.ORRERY, "train", "recipe.yaml", *flags]
    return programs.run(words, cwd=folder, env=environment, capture_output=True, text=True)


@pytest.mark.parametrize("kind", RECIPES)
def test_a_recipe_reads_the_columns_of_a_table(kind, tmp_path):
    done = train(tmp_path, kind, GOOD)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "runs" / "table" / "final").is_dir()


@pytest.mark.parametrize(
    ("kind", "row", "words"),
    [
        ("pairs", {"long": "x", "short": 5}, "rows.jsonl:2: column 'short' is not a text but int"),
        ("matches", {"long": "", "short": "x"}, "rows.jsonl:2: column 'long' is empty"),
    ],
)
def test_a_bad_row_is_told_with_its_line(kind, row, words, tmp_path):
    done = train(tmp_path, kind, [GOOD[0], row, *GOOD[1:]])
    assert done.returncode == 3, done.stderr
    assert words in done.stderr
    assert "hint: " in done.stderr
    assert not (tmp_path / "runs").exists()


def test_flags_change_the_columns_and_a_wrong_one_lists_them(tmp_path):
    done = train(tmp_path, "pairs", GOOD, "--data.columns.target", "brief")
    assert done.returncode == 3, done.stderr
    assert "no column 'brief'" in done.stderr
    assert "long, short" in done.stderr
    done = train(tmp_path, "matches", GOOD, "--training.micro_batch", "1")
    assert done.returncode == 2, done.stderr
    assert "couples the examples of a batch" in done.stderr
