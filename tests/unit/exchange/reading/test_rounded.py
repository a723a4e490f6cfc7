"""Folders whose matrices another program has rounded: every format gives that program's own numbers."""

import json
from functools import partial
from pathlib import Path

import pytest
import torch
from torch import Tensor

import orrery
from orrery.checkpoints.tensors import TensorFile, read_tensors, write_tensors
from orrery.errors import ModelFileError
from orrery.exchange.exporting.quantised import quantise
from orrery.exchange.reading.files import Weights
from orrery.exchange.reading.inventory import inventory
from orrery.exchange.reading.read import read
from orrery.exchange.reading.rounded.config import KEY
from orrery.exchange.reading.rounded.weights import unpacking
from orrery.exchange.saving.import_model import import_model
from orrery.exchange.saving.save import save_model
from orrery.families import load_family
from orrery.tuning import numbers_of
from rounded_files import CASES, GOLDEN, NF4, SAID, golden, opened, said_of
from tiny_models import saved


@pytest.mark.parametrize("case", CASES)
def test_a_matrix_is_what_its_own_program_makes_of_it(case: str, tmp_path: Path) -> None:
    weights, expected = opened(tmp_path, golden(case), said_of(case)), GOLDEN[f"{case}/expected"]
    ((name, matrix),) = weights.items()
    assert name == ("a" if case == "mxfp4" else "a.weight")
    assert len(weights) == 1
    assert weights.elements == matrix.numel()
    empty = weights.empty()[name]
    assert (empty.shape, empty.dtype) == (matrix.shape, matrix.dtype)
    if case == "bnb8":  # which multiplies with 1/127, rounded
        torch.testing.assert_close(matrix, expected, rtol=2e-7, atol=0)
    else:
        torch.testing.assert_close(matrix, expected.to(matrix.dtype), rtol=0, atol=0)


@pytest.mark.parametrize("case", CASES)
def test_a_changed_number_is_another_matrix(case: str, tmp_path: Path) -> None:
    given, expected = golden(case), GOLDEN[f"{case}/expected"]
    ends = ("qweight", "a.weight", "weight_packed", "_blocks")
    packed = next(tensor for name, tensor in given.items() if name.endswith(ends))
    packed.view(torch.uint8).view(-1)[0] ^= 0x11
    (matrix,) = opened(tmp_path, given, said_of(case)).values()
    assert not torch.equal(matrix, expected.to(matrix.dtype))


PACKED = {
    "gptq8": {"quant_method": "gptq", "bits": 4, "group_size": 32, "dynamic": {"+:a": {"bits": 8}}},
    "gptq4": {"quant_method": "auto-round", "bits": 8, "group_size": 32, "packing_format": "auto_round:auto_gptq"},
    "awq": {"quant_method": "auto-round", "bits": 4, "group_size": 32, "packing_format": "auto_round:auto_awq"},
}
"""Folders of GPTQModel with other bits for a module, and of AutoRound, which packs as others do."""


@pytest.mark.parametrize("case", PACKED)
def test_a_matrix_of_other_bits_or_packed_as_others_do_is_read(case: str, tmp_path: Path) -> None:
    (matrix,) = opened(tmp_path, golden(case), PACKED[case]).values()
    torch.testing.assert_close(matrix, GOLDEN[f"{case}/expected"].to(matrix.dtype), rtol=0, atol=0)


def by_blocks(weight: Tensor, scale: Tensor, block: tuple[int, int]) -> Tensor:
    """Return the numbers times the scales of their blocks, each block by itself."""
    product = weight.double()
    for row in range(scale.shape[0]):
        for column in range(scale.shape[1]):
            place = tuple(slice(at * size, (at + 1) * size) for at, size in zip((row, column), block, strict=True))
            product[place] *= float(scale[row, column])
    return product


# The configuration, the name of the scales and their shape, and the block that they mean for a matrix of 70 by 90.
WITH_REST = {
    "fp8": ({"quant_method": "fp8", "weight_block_size": [16, 64]}, "weight_scale_inv", (16, 64)),
    "fp8, unsaid": ({"quant_method": "fp8"}, "weight_scale_inv", (128, 128)),
    "fp8, whole": ({"quant_method": "fp8", "activation_scheme": "static"}, "weight_scale", (70, 90)),
    "blocks": (
        {
            "quant_method": "compressed-tensors",
            "config_groups": {
                "a": {"format": "float-quantized", "weights": {"strategy": "block", "block_structure": [16, 64]}},
                "b": {"weights": {"strategy": "channel", "group_size": None}},
            },
        },
        "weight_scale",
        (16, 64),
    ),
    "blocks in words": (
        {"quant_method": "compressed-tensors", "config_groups": {"a": {"weights": {"block_structure": "16x64"}}}},
        "weight_scale",
        (16, 64),
    ),
    "ModelOpt's": ({"quant_method": "modelopt", "quant_algo": "FP8"}, "weight_scale", (70, 90)),
    "groups": (
        {"quant_method": "compressed-tensors", "config_groups": {"a": {"weights": {"group_size": 32}}}},
        "weight_scale",
        (1, 32),
    ),
}


@pytest.mark.parametrize("case", WITH_REST)
@pytest.mark.parametrize("scales", ["float32", "float8_e8m0fnu"])
def test_the_last_block_may_be_shorter(case: str, scales: str, tmp_path: Path) -> None:
    said, name, block = WITH_REST[case]
    weight = torch.randn(70, 90).to(torch.float8_e4m3fn)
    scale = torch.rand(-(-70 // block[0]), -(-90 // block[1])).to(getattr(torch, scales))
    given = {"a.weight": weight, f"a.{name}": scale, "a.input_scale": torch.ones(1)}
    (matrix,) = opened(tmp_path, given, said).values()
    # One rounding of the product, in the dtype that the matrix has.
    assert matrix.dtype == (torch.float32 if scales == "float32" else torch.bfloat16)
    assert torch.equal(matrix, by_blocks(weight, scale, block).to(matrix.dtype))


def test_four_bits_in_words_of_another_dtype_are_the_same(tmp_path: Path) -> None:
    given = golden("bnb_nf4")
    given["a.weight"] = given["a.weight"].flatten().view(torch.bfloat16).reshape(-1, 1)
    (matrix,) = opened(tmp_path, given, said_of("bnb_nf4")).values()
    assert torch.equal(matrix, GOLDEN["bnb_nf4/expected"].to(matrix.dtype))


@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
def test_unpacked_numbers_have_the_dtype_of_the_folder(dtype: str, tmp_path: Path) -> None:
    weights = opened(tmp_path, {**golden("bnb8"), "norm.weight": torch.ones(3)}, said_of("bnb8"), torch_dtype=dtype)
    assert weights["a.weight"].dtype == weights.empty()["a.weight"].dtype == getattr(torch, dtype)
    assert list(weights) == ["norm.weight", "a.weight"]


def words(rows: int, columns: int) -> Tensor:
    return torch.randint(-(2**31), 2**31, (rows, columns), dtype=torch.int64).to(torch.int32)


def packed(kind: str, out: int, width: int) -> dict[str, Tensor]:
    """Return random tensors that a program would write for a matrix."""
    scales, groups = partial(torch.rand, dtype=torch.float16), width // 32
    if kind == "gptq":
        zeros = words(groups, out // 8)
        return {"qweight": words(width // 8, out), "qzeros": zeros, "scales": 0.01 * scales(groups, out)}
    if kind == "awq":
        zeros = words(groups, out // 8)
        return {"qweight": words(width, out // 8), "qzeros": zeros, "scales": 0.01 * scales(groups, out)}
    if kind == "fp8":
        weight = torch.randn(out, width).to(torch.float8_e4m3fn)
        return {"weight": weight, "weight_scale_inv": torch.rand(-(-out // 16), -(-width // 32))}
    if kind == "bnb8":
        return {"weight": words(out, width // 4).view(torch.int8), "SCB": torch.rand(out)}
    if kind == "bnb_":
        state = {"quant_type": "nf4", "blocksize": 64, "dtype": "float16", "shape": [out, width]}
        told = torch.tensor(list(json.dumps(state).encode()), dtype=torch.uint8)
        most = torch.rand(out * width // 64)
        table = torch.linspace(-1, 1, 16)
        return {
            "weight": words(out * width // 8, 1).view(torch.uint8).reshape(-1, 1),
            "weight.absmax": most,
            "weight.quant_map": table,
            NF4: told,
        }
    return {
        "weight_packed": words(out, width // 8),
        "weight_scale": 0.01 * scales(out, groups),
        "weight_shape": torch.tensor([out, width]),
    }


SMALL = {"hidden_size": 64, "intermediate_size": 96, "num_attention_heads": 2, "num_key_value_heads": 1}


def rounded_folder(folder: Path, kind: str) -> tuple[Path, Path]:
    """Return a folder with rounded matrices, and the same one with the unpacked numbers."""
    torch.manual_seed(0)
    plain, other = saved(folder / "plain", "llama", **SMALL), saved(folder / "rounded", "llama", **SMALL)
    tensors, parts = read_tensors(plain / "model.safetensors"), {}
    for name in [name for name in tensors if name.endswith("proj.weight")]:
        stem = name.removesuffix("weight")
        parts |= {stem + part: tensor for part, tensor in packed(kind, *tensors.pop(name).shape).items()}
    write_tensors(other / "model.safetensors", {**tensors, **parts})
    config = json.loads((other / "config.json").read_text())
    (other / "config.json").write_text(json.dumps({**config, KEY: said_of(kind + "4")}))
    unpacked = unpacking(
        Weights([TensorFile(other / "model.safetensors")]), {**config, KEY: said_of(kind + "4")}, other
    )
    write_tensors(plain / "model.safetensors", dict(unpacked))
    return other, plain


@pytest.mark.parametrize("kind", ["gptq", "awq", "fp8", "bnb8", "bnb_", "ct_"])
def test_a_folder_is_the_model_of_its_unpacked_numbers(kind: str, tmp_path: Path) -> None:
    folder, plain = rounded_folder(tmp_path, kind)
    said: list[str] = []
    lm, other = orrery.load(folder, "cpu", say=said.append), orrery.load(plain, "cpu", say=str)
    assert torch.equal(lm.logits([[1, 2, 3, 4]]), other.logits([[1, 2, 3, 4]]))
    assert any("rounded by" in line and "are unpacked" in line for line in said)
    assert KEY not in lm.config
    lm.save(tmp_path / "again")
    again = orrery.load(tmp_path / "again", "cpu", say=str)
    assert torch.equal(again.logits([[1, 2, 3, 4]]), lm.logits([[1, 2, 3, 4]]))


def test_the_experts_of_gpt_oss_are_read_from_their_four_bits(tmp_path: Path) -> None:
    torch.manual_seed(0)
    family, folder = load_family("gpt_oss"), tmp_path / "m"
    config = {**family.TINY, "hidden_size": 32, "intermediate_size": 64}
    save_model(folder, family.spec(config).build(0), "gpt_oss", config)
    tensors = read_tensors(folder / "model.safetensors")
    for name in [name for name in tensors if name.endswith(("experts.gate_up_proj", "experts.down_proj"))]:
        experts, inputs, outputs = tensors.pop(name).shape
        tensors[f"{name}_blocks"] = torch.randint(0, 256, (experts, outputs, inputs // 32, 16), dtype=torch.uint8)
        tensors[f"{name}_scales"] = torch.randint(118, 124, (experts, outputs, inputs // 32), dtype=torch.uint8)
    write_tensors(folder / "model.safetensors", tensors)
    content = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**content, KEY: SAID["mxfp4"]}))
    lm = orrery.load(folder, "cpu", say=str)
    weights = unpacking(Weights([TensorFile(folder / "model.safetensors")]), {KEY: SAID["mxfp4"]}, folder)
    up = next(weights[name] for name in weights if name.endswith("0.mlp.experts.gate_up_proj")).float()
    x = torch.randn(32)
    expert = lm.model.stack.blocks[0].feed_forward.branch.experts[1]
    torch.testing.assert_close(expert.gate.weight @ x, (x @ up[1])[0::2])


BESIDE = {
    "gptq": ("quantize_config.json", {"bits": 4, "group_size": 32, "desc_act": False, "sym": True}),
    "awq": ("quant_config.json", {"zero_point": True, "q_group_size": 32, "w_bit": 4, "version": "GEMM"}),
}


@pytest.mark.parametrize("kind", BESIDE)
def test_a_file_beside_says_how_the_weights_were_rounded(kind: str, tmp_path: Path) -> None:
    folder, plain = rounded_folder(tmp_path, kind)
    config, (name, said) = json.loads((folder / "config.json").read_text()), BESIDE[kind]
    del config[KEY]
    (folder / "config.json").write_text(json.dumps(config))
    (folder / name).write_text(json.dumps(said))
    lm, other = orrery.load(folder, "cpu", say=str), orrery.load(plain, "cpu", say=str)
    assert torch.equal(lm.logits([[1, 2, 3, 4]]), other.logits([[1, 2, 3, 4]]))
    (folder / name).unlink()
    (folder / "hf_quant_config.json").write_text(json.dumps({"quantization": {"quant_algo": "W4A8_AWQ"}}))
    with pytest.raises(ModelFileError, match="quantised by modelopt"):
        orrery.load(folder, "cpu", say=str)


def test_a_rounded_folder_is_imported_as_a_plain_one(tmp_path: Path) -> None:
    folder, plain = rounded_folder(tmp_path, "gptq")
    import_model(folder, tmp_path / "out")
    ours, expected = read(tmp_path / "out").model, read(plain).model
    for name, parameter in ours.named_parameters():
        assert torch.equal(parameter, expected.get_parameter(name)), name


def test_the_list_of_models_names_the_method_and_counts_numbers(tmp_path: Path) -> None:
    folder, plain = rounded_folder(tmp_path, "gptq")
    quantise(plain, tmp_path / "int4", bits=4)
    of = {one.place.name: one for one in inventory([tmp_path])}
    assert of["rounded"].numbers == ("gptq to 4 bits",)
    assert of["rounded"].parameters == of["plain"].parameters == numbers_of(read(folder).model)
    assert of["int4"].parameters == numbers_of(read(tmp_path / "int4").model) == of["plain"].parameters
