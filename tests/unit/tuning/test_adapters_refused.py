"""Adapters of other kinds than a LoRA on matrices: refused by name before their tensors are looked for."""

import json
from pathlib import Path

import pytest
import torch

import orrery
from orrery.checkpoints.tensors import write_tensors
from orrery.cli.serve import _tell_templates
from orrery.errors import ModelFileError
from tiny_models import ALL, saved

TARGETS = {"peft_type": "LORA", "r": 2, "target_modules": ["lm_head"]}


def written(folder: Path, said: dict[str, object]) -> Path:
    folder.mkdir()
    (folder / "adapter_config.json").write_text(json.dumps(said))
    size, width = ALL["llama"]["vocab_size"], ALL["llama"]["hidden_size"]
    sides = {"lora_A": torch.ones(2, width), "lora_B": torch.ones(size, 2)}
    tensors = {f"base_model.model.lm_head.{side}.weight": tensor for side, tensor in sides.items()}
    write_tensors(folder / "adapter_model.safetensors", tensors)
    return folder


def test_a_tied_head_is_named_with_a_way_that_works(tmp_path: Path) -> None:
    base = saved(tmp_path / "base", "llama", tie_word_embeddings=True)
    with pytest.raises(ModelFileError, match=r"lm_head, whose matrix is embed\.token\.weight too") as caught:
        orrery.load(base, "cpu", adapter=written(tmp_path / "a", TARGETS), say=str)
    assert "target_modules" in caught.value.hint


def test_another_kind_and_a_file_are_named(tmp_path: Path) -> None:
    base = saved(tmp_path / "base", "llama")
    (tmp_path / "lora.gguf").touch()
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "adapter_config.json").write_text(json.dumps({"peft_type": "XLORA"}))
    with pytest.raises(ModelFileError, match="of the type 'XLORA'") as caught:
        orrery.load(base, "cpu", adapter=tmp_path / "x", say=str)
    assert "answer with it in peft" in caught.value.hint
    with pytest.raises(ModelFileError, match="is a file, and adapters are read from folders"):
        orrery.load(base, "cpu", adapter=tmp_path / "lora.gguf", say=str)


def test_a_server_says_which_template_chats_are_written_with(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    lm = orrery.load(saved(tmp_path / "base", "llama"), "cpu", say=str)
    (folder := written(tmp_path / "a", TARGETS)).joinpath("chat_template.jinja").write_text("{{ messages }}")
    _tell_templates(lm, {"own": str(folder), "none": str(tmp_path / "base")})
    assert capsys.readouterr().out.startswith("own: chats are written with the model's template, not with that in")
