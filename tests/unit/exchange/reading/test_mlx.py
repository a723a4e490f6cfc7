"""Folders of mlx-lm: rounded or not, they are the models of transformers that they were made from."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import orrery
from mlx_files import LAYOUTS, in_their_layout, round_folder
from orrery.checkpoints.tensors import read_tensors, write_tensors
from orrery.errors import ModelFileError
from orrery.exchange.reading.inventory import inventory
from orrery.exchange.reading.read import read
from orrery.exchange.saving.save import save_model
from orrery.families import load_family
from orrery.tuning import numbers_of
from tiny_models import saved

WIDE = {"hidden_size": 64, "intermediate_size": 96, "num_attention_heads": 2, "num_key_value_heads": 1}
DENSE = {"num_local_experts": 0, "shared_intermediate_size": 12}


def parameters(folder: Path) -> dict[str, Tensor]:
    return {name: parameter.detach() for name, parameter in read(folder).model.named_parameters()}


def same(folder: Path, expected: Path, atol: float = 0) -> None:
    ours, wanted = parameters(folder), parameters(expected)
    assert ours.keys() == wanted.keys()
    for name, tensor in ours.items():
        torch.testing.assert_close(tensor, wanted[name], rtol=0, atol=atol, msg=name)


FEW = ("deepseek_v3", "gpt2", "gpt_oss", "granitemoehybrid", "mixtral", "nemotron_h", "qwen3_next")
"""In which every kind of difference is."""


@pytest.mark.parametrize(
    "family", [one if one in FEW else pytest.param(one, marks=pytest.mark.slow) for one in LAYOUTS]
)
def test_what_mlx_lm_names_otherwise_is_the_model_of_transformers(family: str, tmp_path: Path) -> None:
    plain, theirs = in_their_layout(tmp_path, family)
    # That file holds one plus the weights of norms, each rounded near one.
    same(theirs, plain, atol=2**-23 if family == "qwen3_next" else 0)


def test_a_hybrid_of_granite_without_experts_has_names_of_its_own(tmp_path: Path) -> None:
    plain, theirs = in_their_layout(tmp_path, "granitemoehybrid", **DENSE)
    assert any(".mlp.gate_proj." in name for name in read_tensors(theirs / "model.safetensors"))
    same(theirs, plain)


SAID = {"group_size": 32, "bits": 4}


def rounded_folder(folder: Path, *keys: str, **changed: Any) -> tuple[Path, dict[str, Tensor]]:
    """Return a folder with a table, a head and matrices of several kinds, and the tensors that it means."""
    torch.manual_seed(0)
    theirs = saved(folder / "m", "llama", **WIDE, tie_word_embeddings=False)
    said = {
        **SAID,
        "mode": "affine",
        "lm_head": {"group_size": 64, "bits": 6},
        "model.layers.0.mlp.up_proj": {"group_size": 32, "bits": 3, "mode": "affine"},
        "model.layers.1.mlp.up_proj": False,
        **changed,
    }
    packings = {"lm_head": (6, 64), r"0\.mlp\.up_proj": (3, 32), r"^(?!.*1\.mlp\.up_proj)": (4, 32)}
    return theirs, round_folder(theirs, said, packings, *keys)


@pytest.mark.parametrize("keys", [["quantization", "quantization_config"], ["quantization"]], ids=len)
def test_a_rounded_folder_is_the_model_of_what_its_numbers_mean(keys: list[str], tmp_path: Path) -> None:
    theirs, meant = rounded_folder(tmp_path, *keys)
    plain = saved(tmp_path / "plain", "llama", **WIDE, tie_word_embeddings=False)
    write_tensors(plain / "model.safetensors", meant)
    said: list[str] = []
    lm, other = orrery.load(theirs, "cpu", say=said.append), orrery.load(plain, "cpu", say=str)
    torch.testing.assert_close(lm.logits([[1, 2, 3, 4]]), other.logits([[1, 2, 3, 4]]), rtol=0, atol=1e-6)
    assert f"{theirs}: matrices rounded by mlx to 3 bits, 4 bits, 6 bits are unpacked" in said
    assert not {"quantization", "quantization_config"} & lm.config.keys()
    (listed,) = inventory([theirs])
    assert listed.numbers == ("mlx to 3 bits, 4 bits, 6 bits",)
    assert listed.parameters == numbers_of(lm.model)
    lm.save(tmp_path / "again")
    again = orrery.load(tmp_path / "again", "cpu", say=str)
    assert torch.equal(again.logits([[1, 2, 3, 4]]), lm.logits([[1, 2, 3, 4]]))


def test_a_matrix_of_which_nothing_is_said_tells_its_bits_itself(tmp_path: Path) -> None:
    theirs, meant = rounded_folder(tmp_path, "quantization", **{"model.layers.0.mlp.up_proj": None})
    ours = parameters(theirs)["stack.blocks.0.feed_forward.branch.up.weight"]
    torch.testing.assert_close(ours, meant["model.layers.0.mlp.up_proj.weight"], rtol=0, atol=1e-6)


def test_rounded_experts_are_taken_apart(tmp_path: Path) -> None:
    plain, theirs = in_their_layout(tmp_path, "mixtral", hidden_size=64, intermediate_size=32)
    meant = round_folder(theirs, SAID, {"switch_mlp": (4, 32)}, "quantization")
    ours = parameters(theirs)
    for x in range(4):
        for own, name in (("gate", "gate_proj"), ("up", "up_proj"), ("down", "down_proj")):
            given = meant[f"model.layers.1.block_sparse_moe.switch_mlp.{name}.weight"][x]
            matrix = ours[f"stack.blocks.1.feed_forward.branch.experts.{x}.{own}.weight"]
            torch.testing.assert_close(matrix, given, rtol=0, atol=1e-6)
    assert parameters(plain).keys() == ours.keys()


def test_the_part_that_writes_of_a_model_that_sees_is_read(tmp_path: Path) -> None:
    theirs, meant = rounded_folder(tmp_path, "quantization")
    config = json.loads((theirs / "config.json").read_text())
    said = {
        name if name in SAID or name == "mode" else f"language_model.{name}": value
        for name, value in config.pop("quantization").items()
    }
    whole = {"model_type": "llava", "text_config": config, "quantization": said}
    (theirs / "config.json").write_text(json.dumps(whole))
    tensors = {f"language_model.{name}": one for name, one in read_tensors(theirs / "model.safetensors").items()}
    tensors["vision_tower.embed.weight"] = torch.zeros(2, 2)
    write_tensors(theirs / "model.safetensors", tensors, {"format": "mlx"})
    ours = parameters(theirs)["stack.blocks.0.feed_forward.branch.up.weight"]
    torch.testing.assert_close(ours, meant["model.layers.0.mlp.up_proj.weight"], rtol=0, atol=1e-6)


@pytest.mark.parametrize("family", ["falcon_h1", "ernie4_5_moe"])
def test_what_mlx_lm_changes_for_good_is_refused_by_name(family: str, tmp_path: Path) -> None:
    config = load_family(family).TINY
    save_model(tmp_path / "m", load_family(family).spec(config).build(0), family, config)
    tensors = read_tensors(tmp_path / "m" / "model.safetensors")
    write_tensors(tmp_path / "m" / "model.safetensors", tensors, {"format": "mlx"})
    with pytest.raises(ModelFileError, match=f"mlx-lm, which wrote this {family}, (leaves out|multiplies)") as caught:
        read(tmp_path / "m")
    assert "made from" in caught.value.hint


STACK = "model.layers.0.block_sparse_moe.switch_mlp.gate_proj.weight"


@pytest.mark.parametrize(
    ("stack", "why"),
    [
        (torch.zeros(5000, 0), "unexpected"),
        (torch.zeros(()), "missing"),
        (torch.zeros(3, 12, 16), "missing: model.layers.0.block_sparse_moe.experts.3.w1.weight"),
        (torch.zeros(4), "of another shape"),
    ],
    ids=["too many", "none", "too few", "a vector"],
)
def test_damaged_stacks_of_experts_are_refused(stack: Tensor, why: str, tmp_path: Path) -> None:
    theirs = in_their_layout(tmp_path, "mixtral")[1]
    tensors = {**read_tensors(theirs / "model.safetensors"), STACK: stack}
    write_tensors(theirs / "model.safetensors", tensors, {"format": "mlx"})
    with pytest.raises(ModelFileError, match=why):
        read(theirs)


def test_filters_of_another_shape_are_refused(tmp_path: Path) -> None:
    theirs = in_their_layout(tmp_path, "mamba")[1]
    tensors = read_tensors(theirs / "model.safetensors")
    tensors["backbone.layers.0.mixer.conv1d.weight"] = torch.zeros(3)
    write_tensors(theirs / "model.safetensors", tensors, {"format": "mlx"})
    with pytest.raises(ModelFileError, match="cannot be made of what mlx-lm wrote"):
        read(theirs)


def test_an_expert_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    theirs = in_their_layout(tmp_path, "mixtral")[1]
    doubled = "model.layers.0.block_sparse_moe.experts.0.w1.weight"
    tensors = {**read_tensors(theirs / "model.safetensors"), doubled: torch.zeros(12, 16)}
    write_tensors(theirs / "model.safetensors", tensors, {"format": "mlx"})
    with pytest.raises(ModelFileError, match=f"{doubled} stands in the files twice"):
        read(theirs)
