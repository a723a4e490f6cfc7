"""Folders whose matrices another program has rounded, damaged or in a form that is not read: refused by name."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from orrery.errors import ModelFileError
from orrery.exchange.reading.rounded.config import KEY, method_of
from rounded_files import NF4, golden, opened, said_of


def state(**changed: Any) -> dict[str, Tensor | None]:
    """Return the state of a matrix of bitsandbytes, with something else in it."""
    told = {"quant_type": "nf4", "blocksize": 64, "dtype": "float16", "shape": [32, 64], **changed}
    return {f"a.{NF4}": torch.tensor(list(json.dumps(told).encode()), dtype=torch.uint8)}


def words(*shape: int) -> Tensor:
    """Return words of 32 bits."""
    return torch.zeros(shape, dtype=torch.int32)


def raw(content: bytes | list[int]) -> Tensor:
    """Return bytes."""
    return torch.tensor(list(content), dtype=torch.uint8)


DAMAGED: dict[str, tuple[str, dict[str, Tensor | None], str]] = {
    "gptq without scales": ("gptq4", {"a.scales": None}, "scales is missing"),
    "gptq without zeros": ("gptq4", {"a.qzeros": None}, "qzeros is missing"),
    "gptq: zeros of other groups": ("gptq4", {"a.qzeros": words(3, 4)}, "zeros have the shape"),
    "gptq: an input in no group": ("gptq4", {"a.g_idx": torch.full((64,), 2)}, "group is none of the 2"),
    "gptq: an input before the first group": ("gptq4", {"a.g_idx": torch.full((64,), -1)}, "group is none of the 2"),
    "gptq: groups of too few inputs": ("gptq4", {"a.g_idx": torch.zeros(63, dtype=torch.int64)}, "group is none"),
    "gptq: words of 64 bits": ("gptq4", {"a.qweight": torch.zeros(8, 32, dtype=torch.int64)}, "hold no whole numbers"),
    "gptq: a vector": ("gptq4", {"a.qweight": words(8)}, "shape of no matrix"),
    "gptq: scales of other groups": (
        "gptq4",
        {"a.scales": torch.ones(3, 32), "a.qzeros": words(3, 4), "a.g_idx": None},
        "64 inputs in groups of 32 are 2 groups",
    ),
    "awq: zeros of other outputs": ("awq", {"a.qzeros": words(2, 5)}, "zeros have the shape"),
    "awq: bytes": ("awq", {"a.qweight": torch.zeros(64, 4, dtype=torch.uint8)}, "hold no whole numbers"),
    "fp8: other numbers": ("fp8", {"a.weight": torch.zeros(32, 64)}, "not of eight bits"),
    "fp8: too many blocks": ("fp8", {"a.weight_scale_inv": torch.ones(3, 2)}, "3 blocks have scales"),
    "fp8: a vector": ("fp8", {"a.weight": torch.zeros(8).to(torch.float8_e4m3fn)}, "cannot be unpacked"),
    "fp8: rows with too few scales": ("fbgemm", {"a.weight_scale": torch.ones(31, 1)}, "scales have the shape"),
    "bitsandbytes: floats": ("bnb8", {"a.weight": torch.zeros(32, 64)}, "no bytes"),
    "bitsandbytes: too few scales": ("bnb8", {"a.SCB": torch.ones(31)}, "scales have the shape"),
    "bitsandbytes: tiles": (
        "bnb8",
        {"a.weight_format": torch.tensor(2, dtype=torch.uint8)},
        "tiles of a graphics card",
    ),
    "bitsandbytes: no JSON": ("bnb_nf4", {f"a.{NF4}": raw(bytes(9))}, "cannot be unpacked"),
    "bitsandbytes: deep JSON": ("bnb_nf4", {f"a.{NF4}": raw(b"[" * 9_999)}, "cannot be unpacked"),
    "bitsandbytes: a list": ("bnb_nf4", {f"a.{NF4}": raw(b"[1]")}, "no JSON object"),
    "bitsandbytes: a long state": ("bnb_nf4", {f"a.{NF4}": raw(bytes(10**6))}, "no short text"),
    "bitsandbytes: a state of floats": ("bnb_nf4", {f"a.{NF4}": torch.zeros(9)}, "no short text"),
    "bitsandbytes: a huge shape": ("bnb_nf4", state(shape=[10**9, 10**9]), "not two numbers each"),
    "bitsandbytes: no shape": ("bnb_nf4", state(shape="x"), "names no shape"),
    "bitsandbytes: a shape of text": ("bnb_nf4", state(shape=["32", 64]), "names no shape"),
    "bitsandbytes: no blocks": ("bnb_nf4", state(blocksize=0), "has no blocksize"),
    "bitsandbytes: other blocks": ("bnb_nf4", state(blocksize=32), "sizes of blocks have"),
    "bitsandbytes: an unknown dtype": ("bnb_nf4", state(dtype="int3"), "would be 'int3'"),
    "bitsandbytes: a short table": ("bnb_nf4", {"a.weight.quant_map": torch.ones(15)}, "table have the shape"),
    "bitsandbytes: no table": ("bnb_nf4", {"a.weight.quant_map": None}, "quant_map is missing"),
    "bitsandbytes: nested without blocks": ("bnb_nf4_nested", state(nested_offset=0.1), "has no nested_blocksize"),
    "bitsandbytes: an offset that is none": (
        "bnb_nf4_nested",
        state(nested_offset=[1], nested_blocksize=256),
        "cannot be unpacked",
    ),
    "compressed-tensors without a shape": ("ct_pack4", {"a.weight_shape": None}, "weight_shape is missing"),
    "compressed-tensors: a shape of three": ("ct_pack4", {"a.weight_shape": torch.tensor([1, 2, 3])}, "no matrix"),
    "compressed-tensors: a shape of floats": ("ct_pack4", {"a.weight_shape": torch.tensor([32.0, 64.0])}, "no matrix"),
    "compressed-tensors: other rows": ("ct_pack4", {"a.weight_shape": torch.tensor([33, 64])}, "outputs have the"),
    "compressed-tensors: a huge row": ("ct_pack4", {"a.weight_shape": torch.tensor([32, 2**40])}, "hold no"),
    "compressed-tensors: a negative row": ("ct_pack4", {"a.weight_shape": torch.tensor([32, -64])}, "hold no"),
    "compressed-tensors: other zeros": ("ct_pack4asym", {"a.weight_zero_point": words(4, 5)}, "zeros have the shape"),
    "compressed-tensors: floats": ("ct_int8", {"a.weight": torch.zeros(32, 64)}, "not of eight bits"),
    "compressed-tensors: unequal parts of an unknown size": (
        "ct_int8",
        {"a.weight_scale": torch.ones(32, 5)},
        "has no one group for",
    ),
    "nvfp4: other scales": ("ct_nvfp4", {"a.weight_scale": torch.ones(31, 4)}, "has no one group for"),
    "nvfp4: one scale of many": ("modelopt_nvfp4", {"a.weight_scale_2": torch.ones(3)}, "cannot be unpacked"),
    "mxfp4: other scales": ("mxfp4", {"a_scales": torch.zeros(2, 32, 3, dtype=torch.uint8)}, "scales have the shape"),
    "mxfp4: floats": ("mxfp4", {"a_blocks": torch.zeros(2, 32, 2, 16)}, "no bytes"),
    "mxfp4 without scales": ("mxfp4", {"a_scales": None}, "scales is missing"),
    "mlx without scales": ("mlx_affine_3_64", {"a.scales": torch.ones(4, 0)}, "scales have the shape"),
    "mlx without biases": ("mlx_affine_4_128", {"a.biases": None}, "have the shape|biases is missing"),
    "mlx: biases of other groups": ("mlx_affine_4_128", {"a.biases": torch.ones(4, 2)}, "biases have the shape"),
    "mlx: words with a sign": ("mlx_affine_4_128", {"a.weight": words(4, 16)}, "hold no numbers of 4 bits"),
    "mlx: other words": (
        "mlx_affine_5_32",
        {"a.weight": words(4, 19).view(torch.uint32)},
        "hold no numbers|scales have",
    ),
    "mlx: a vector": ("mlx_affine_4_128", {"a.weight": words(16).view(torch.uint32)}, "hold no numbers"),
    "mlx: no words": ("mlx_affine_4_128", {"a.weight": words(4, 0).view(torch.uint32)}, "hold no numbers"),
    "mlx without words": ("mlx_affine_4_128", {"a.weight": None}, "weight is missing"),
    "mlx: scales of floats": ("mlx_mxfp4_4_32", {"a.scales": torch.ones(4, 2)}, "no bytes"),
    "mlx: scales of other experts": (
        "mlx_nvfp4_4_16_experts",
        {"a.global_scale": torch.ones(3)},
        "cannot be unpacked",
    ),
    "a matrix twice": ("gptq4", {"a.weight": torch.zeros(32, 64)}, "as it is and packed"),
}


def whole(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return all tensors, after their shapes were asked for, as a model is read."""
    weights.empty()
    return dict(weights)


@pytest.mark.parametrize("what", DAMAGED)
def test_what_is_damaged_is_refused_by_the_name_of_its_matrix(what: str, tmp_path: Path) -> None:
    case, changed, why = DAMAGED[what]
    tensors = {name: tensor for name, tensor in {**golden(case), **changed}.items() if tensor is not None}
    with pytest.raises(ModelFileError, match=why) as caught:
        whole(opened(tmp_path, tensors, said_of(case)))
    with pytest.raises(ModelFileError):
        dict(opened(tmp_path, tensors, said_of(case)))
    assert "config.json: a" in caught.value.message
    assert "get the folder again" in caught.value.hint


@pytest.mark.parametrize(
    "said",
    [
        {"quant_method": "hqq", "nbits": 2},
        {"quant_method": "gptq", "bits": 5, "group_size": 128},
        {"quant_method": "gptq", "bits": 4, "group_size": 128, "is_marlin_format": True},
        {"quant_method": "gptq", "bits": 4, "group_size": 128, "checkpoint_format": "marlin"},
        {"quant_method": "gptq", "bits": "4", "group_size": 128},
        {"quant_method": "awq", "bits": 4, "group_size": 128, "version": "gemv"},
        {"quant_method": "awq", "bits": 8, "group_size": 128},
        {"quant_method": "compressed-tensors", "format": "marlin-24"},
        {"quant_method": "compressed-tensors", "format": "pack-quantized", "sparsity_config": {"format": "bitmask"}},
        {"quant_method": "compressed-tensors", "format": "pack-quantized", "transform_config": {"u": {}}},
        {"quant_method": "compressed-tensors", "config_groups": {"a": {"format": "mxfp6-pack-quantized"}}},
        {"quant_method": "modelopt", "quant_algo": "W4A8_AWQ"},
        {"quant_method": "auto-round", "bits": 4, "group_size": 128, "packing_format": "auto_round:fp8_static"},
        {"quant_method": "compressed-tensors", "format": ["pack-quantized"]},
        {"quant_method": "gptq", "bits": [4], "group_size": {}, "checkpoint_format": []},
        {"quant_method": "mlx", "bits": 7, "group_size": 64},
        {"quant_method": "mlx", "bits": 4, "group_size": 48},
        {"quant_method": "mlx", "bits": "4", "group_size": 64},
        {"quant_method": "mlx", "bits": 4, "group_size": 64, "mode": "mxfp4"},
        {"quant_method": "mlx", "bits": 4, "group_size": 64, "mode": ["affine"]},
        {"quant_method": "mlx", "bits": 4, "group_size": 64, "lm_head": {"mode": "ternary"}},
        {"quant_method": "mlx", "group_size": 64},
        {"bits": 4},
        {},
        "gptq",
        7,
    ],
    ids=str,
)
def test_what_is_not_read_is_refused_by_its_name(said: Any) -> None:
    with pytest.raises(ModelFileError, match="the weights were quantised by") as caught:
        method_of({KEY: said}, Path("config.json"))
    assert not isinstance(said, dict) or said.get("quant_method", "an unnamed method") in caught.value.message
    assert "GGUF" in caught.value.hint


def test_a_method_of_many_letters_is_cut_short() -> None:
    with pytest.raises(ModelFileError) as caught:
        method_of({KEY: {"quant_method": "x" * 10**6, "bits": "9" * 10**6}}, Path("config.json"))
    assert len(caught.value.message) < 250
