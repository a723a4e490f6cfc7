"""Tensors that other programs have rounded, each with the matrix that they make of them.

``data/rounded.safetensors`` was written by AutoGPTQ 0.7, AutoAWQ 0.2, bitsandbytes 0.50, compressed-tensors 0.20,
ModelOpt 0.47, AutoRound 0.16, transformers 5.24 and mlx 0.32: ``CASE/given/NAME`` and ``CASE/expected``.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from orrery.checkpoints.tensors import TensorFile, write_tensors
from orrery.exchange.reading.files import Weights
from orrery.exchange.reading.mlx_layout import MlxTensors
from orrery.exchange.reading.rounded.config import KEY
from orrery.exchange.reading.rounded.weights import RoundedWeights, unpacking

GOLDEN = TensorFile(Path(__file__).parent / "data" / "rounded.safetensors")
CASES = sorted({name.split("/")[0] for name in GOLDEN})
BNB4 = {"quant_method": "bitsandbytes", "load_in_4bit": True}
SAID: dict[str, dict[str, Any]] = {
    "gptq": {"quant_method": "gptq", "bits": 4, "group_size": 32},
    "awq": {"quant_method": "awq", "bits": 4, "group_size": 32, "version": "gemm"},
    "fp8": {"quant_method": "fp8", "weight_block_size": [16, 32]},
    "fbgemm": {"quant_method": "fbgemm_fp8"},
    "bnb8": {"quant_method": "bitsandbytes", "load_in_8bit": True},
    "bnb_": BNB4,
    "ct_": {"quant_method": "compressed-tensors", "format": "pack-quantized", "config_groups": {}},
    "mxfp4": {"quant_method": "mxfp4"},
    "auto_round": {"quant_method": "auto-round", "bits": 4, "group_size": 32, "packing_format": "auto_round:gptqmodel"},
    "modelopt": {"quant_method": "modelopt", "quant_algo": "NVFP4"},
}
NF4 = "weight.quant_state.bitsandbytes__nf4"


def said_of(case: str) -> dict[str, Any]:
    if case.startswith("mlx_"):
        mode, bits, group = case.split("_")[1:4]
        return {"quant_method": "mlx", "mode": mode, "bits": int(bits), "group_size": int(group)}
    settings = next(said for name, said in SAID.items() if case.startswith(name))
    return {**settings, "bits": int(case[4])} if case.startswith("gptq") else settings


def golden(case: str) -> dict[str, Tensor]:
    """Return the tensors of a case, as those of a module ``a``."""
    given = {name.split("/", 2)[2]: GOLDEN[name] for name in GOLDEN if name.startswith(f"{case}/given/")}
    return {f"a{name}" if case == "mxfp4" else f"a.{name}": tensor for name, tensor in given.items()}


def opened(
    folder: Path, tensors: Mapping[str, Tensor], said: Mapping[str, Any], **config: Any
) -> RoundedWeights | MlxTensors:
    write_tensors(folder / "x.safetensors", tensors)
    weights = unpacking(Weights([TensorFile(folder / "x.safetensors")]), {KEY: said, **config}, folder / "config.json")
    assert isinstance(weights, RoundedWeights | MlxTensors)
    return weights
