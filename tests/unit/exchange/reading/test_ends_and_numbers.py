"""What a model's folder says must fit together, and a score is a number or an error."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

import tiny_models
from orrery.errors import ModelFileError, UsageError
from orrery.evaluation.perplexity import evaluate_perplexity
from orrery.language_model.load import load
from orrery.text.gguf.reading import ends_of


def change(folder: Path, name: str, **values: Any) -> None:
    path = folder / name
    content = json.loads(path.read_text()) if path.exists() else {}
    path.write_text(json.dumps(content | values))


@pytest.mark.parametrize("name", ["config.json", "generation_config.json"])
@pytest.mark.parametrize("ends", ["<|endoftext|>", [1, "x"], 1.5, True, [None]])
def test_an_end_token_that_is_no_number(name: str, ends: Any, tmp_path: Path) -> None:
    folder = tiny_models.saved(tmp_path / "gpt2", "gpt2")
    change(folder, name, eos_token_id=ends)
    with pytest.raises(ModelFileError, match=f"{name}: eos_token_id"):
        load(folder)


def test_a_tokenizer_with_more_ids_than_the_model(tmp_path: Path) -> None:
    folder = tiny_models.saved(tmp_path / "gpt2", "gpt2")
    definition = json.loads((folder / "tokenizer.json").read_text())
    definition["model"]["vocab"]["zzzz"] = 400
    (folder / "tokenizer.json").write_text(json.dumps(definition))
    with pytest.raises(ModelFileError, match="the tokenizer has 401 ids, the model 2"):
        load(folder)


def test_added_tokens_beyond_the_model_are_told(tmp_path: Path) -> None:
    folder = tiny_models.saved(tmp_path / "gpt2", "gpt2")
    definition = json.loads((folder / "tokenizer.json").read_text())
    pad = {**definition["added_tokens"][0], "id": tiny_models.TOKENIZER.size, "content": "<pad>"}
    definition["added_tokens"].append(pad)
    (folder / "tokenizer.json").write_text(json.dumps(definition))
    said: list[str] = []
    load(folder, say=said.append)
    assert any("1 added tokens of the tokenizer have no row" in line for line in said)


def test_a_score_that_is_no_number_names_the_weight(tmp_path: Path) -> None:
    folder = tiny_models.saved(tmp_path / "llama", "llama")
    weights = load_file(folder / "model.safetensors")
    weights["model.layers.1.mlp.up_proj.weight"][0, 0] = math.nan
    save_file(weights, folder / "model.safetensors", {"format": "pt"})
    lm = load(folder)
    for measure in (lambda: lm.score("the cat"), lambda: evaluate_perplexity(lm, ["the cat sat"])):
        with pytest.raises(ModelFileError, match=r"blocks\.1\..* has numbers that are none"):
            measure()


@pytest.mark.parametrize("seed", [-1, 2**63, 10**30])
def test_a_seed_that_no_generator_takes(seed: int, tmp_path: Path) -> None:
    lm = load(tiny_models.saved(tmp_path / "gpt2", "gpt2"))
    with pytest.raises(UsageError, match="seed"):
        lm.generate("the", seed=seed, temperature=1.0)


@pytest.mark.parametrize("beams", [0, -1])
def test_no_beams(beams: int, tmp_path: Path) -> None:
    lm = load(tiny_models.saved(tmp_path / "gpt2", "gpt2"))
    with pytest.raises(UsageError, match="num_beams"):
        lm.generate("the", num_beams=beams)
    assert torch.is_grad_enabled()


def test_the_ends_of_a_gguf_file_are_those_that_it_names():
    facts = {f"tokenizer.ggml.{name}_token_id": id for name, id in {"eos": 2, "eot": 7, "bos": 1}.items()}
    assert ends_of({"tokenizer.ggml.tokens": list("abcdefgh"), **facts}) == [2, 7]


def test_further_ends_of_a_gguf_file_are_known_by_their_texts():
    texts = ["a", "<end_of_turn>", "</s>", "<|end|>", "<|return|>", "<|call|>", "<|eot_id|>"]
    kinds = [1, 3, 4, 3, 4, 3, 1]
    known = {"tokenizer.ggml.tokens": texts, "tokenizer.ggml.token_type": kinds, "tokenizer.ggml.eos_token_id": 5}
    assert ends_of(known) == [5, 1, 4]  # a reply has parts here, and the last is an ordinary word
    assert ends_of({**known, "tokenizer.ggml.tokens": [*texts[:4], "<|x|>", *texts[5:]]}) == [5, 1, 3]


@pytest.mark.parametrize("said", [{"num_key_value_heads": 3}, {"num_key_value_heads": 32}])
def test_heads_that_cannot_be_shared_are_a_fault_of_the_file(said: dict[str, int], tmp_path: Path) -> None:
    folder = tiny_models.saved(tmp_path / "llama", "llama")
    change(folder, "config.json", **said)
    with pytest.raises(ModelFileError, match=r"config\.json: .* key-value heads cannot be shared"):
        load(folder)
