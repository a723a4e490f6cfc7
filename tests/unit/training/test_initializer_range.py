"""How wide new weights are drawn: GPT-2's deviation, or what the configuration says."""

import pytest

from orrery.errors import UsageError
from orrery.recipes.read import check_recipe
from orrery.runs.assemble import assemble
from tiny_models import TEXT


def model(tmp_path, **config):
    (tmp_path / "notes.txt").write_text(TEXT * 20, encoding="utf-8")
    shape = {"hidden_size": 64, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2}
    values = {
        "name": "wide",
        "model": {"family": "llama", "config": {**shape, "max_position_embeddings": 16, **config}},
        "tokenizer": {"kind": "byte_bpe", "vocabulary": 280},
        "data": {"train": str(tmp_path / "notes.txt"), "split": {"tail": 0.2}},
        "batches": {"length": 16, "size": 2},
        "training": {"steps": 3, "optimizer": {"rate": 0.01}},
    }
    return assemble(check_recipe(values, "a test")).parts.model


@pytest.mark.parametrize(("config", "std"), [({}, 0.02), ({"initializer_range": 0.1}, 0.1)])
def test_matrices_are_as_wide_as_asked(tmp_path, config, std):
    weights = dict(model(tmp_path, **config).named_parameters())
    gate = next(weight for name, weight in weights.items() if name.endswith("gate.weight"))
    down = next(weight for name, weight in weights.items() if name.endswith("down.weight"))
    assert gate.std().item() == pytest.approx(std, rel=0.05)
    assert down.std().item() == pytest.approx(std / 2, rel=0.05), "what adds to the stream is drawn for its depth"


@pytest.mark.parametrize("value", [0, -0.02, True, "wide", None, float("nan"), float("inf")])
def test_what_is_no_deviation_is_refused(tmp_path, value):
    with pytest.raises(UsageError, match=r"model\.config\.initializer_range is"):
        model(tmp_path, initializer_range=value)


def seq2seq(tmp_path, family, **config):
    rows = [f"{word}\t{word[::-1]}" for word in TEXT.split()]
    (tmp_path / "pairs.tsv").write_text("\n".join(["source\ttarget", *rows]) + "\n", encoding="utf-8")
    values = {
        "name": "drawn",
        "model": {"family": family, "config": config},
        "tokenizer": {"kind": "byte_bpe", "vocabulary": 270},
        "data": {"kind": "pairs", "pairs": str(tmp_path / "pairs.tsv"), "split": {"every": 5}},
        "batches": {"kind": "pairs", "length": 16, "size": 2},
        "objective": {"kind": "seq2seq"},
        "training": {"steps": 3, "optimizer": {"rate": 0.01}},
    }
    return dict(assemble(check_recipe(values, "a test")).parts.model.named_parameters())


T5 = {"d_model": 64, "d_kv": 16, "d_ff": 128, "num_layers": 2, "num_heads": 6}


def test_barts_own_word_for_it_is_obeyed(tmp_path):
    shape = {"d_model": 64, "encoder_layers": 1, "decoder_layers": 1, "max_position_embeddings": 32}
    table = seq2seq(tmp_path, "bart", init_std=0.1, **shape)["reader.embed.token.weight"]
    assert table.std().item() == pytest.approx(0.1, rel=0.05)


def test_one_deviation_for_all_goes_before_that_of_the_family(tmp_path):
    weights = seq2seq(tmp_path, "t5", initializer_range=0.05, **T5)
    assert weights["reader.embed.token.weight"].std().item() == pytest.approx(0.05, rel=0.05)


@pytest.mark.parametrize("value", [0, True, "much"])
def test_t5s_factor_is_a_number_above_zero(tmp_path, value):
    with pytest.raises(UsageError, match=r"model\.config\.initializer_factor is"):
        seq2seq(tmp_path, "t5", initializer_factor=value, **T5)
