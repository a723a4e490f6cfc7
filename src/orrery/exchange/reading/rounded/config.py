"""Which program rounded the weights of a folder, from its configuration."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from orrery.checkpoints.json_file import read_json
from orrery.errors import ModelFileError
from orrery.exchange.reading.rounded.eight_bits import Bits8, Fp8
from orrery.exchange.reading.rounded.four_bits import Bits4, Mxfp4
from orrery.exchange.reading.rounded.method import Method
from orrery.exchange.reading.rounded.mlx import mlx_of
from orrery.exchange.reading.rounded.whole_numbers import GPTQ_BITS, Awq, CompressedTensors, Gptq

KEY = "quantization_config"
MLX, _OF_MLX = "mlx", "quantization"
_BESIDE = {"quantize_config.json": "gptq", "quant_config.json": "awq", "hf_quant_config.json": "modelopt"}
"""Files beside a config.json that older programs write in place of the key, and who writes each."""
_OLDER = {"w_bit": "bits", "q_group_size": "group_size"}
"""Names of settings in these files, and those of today."""
_GPTQ_2 = {"quant_method": "gptq", "checkpoint_format": "gptq_v2"}
_PACKED = {
    "auto_round:auto_gptq": {"quant_method": "gptq"},
    "auto_round:gptqmodel": _GPTQ_2,
    "auto_round": _GPTQ_2,
    "auto_round:auto_awq": {"quant_method": "awq"},
}
"""How AutoRound's matrices lie, and who else writes them so."""
_FORMS = (
    None, "pack-quantized", "int-quantized", "float-quantized", "naive-quantized", "mixed-precision",
    "nvfp4-pack-quantized", "mxfp4-pack-quantized",
)  # fmt: skip
"""Forms of compressed-tensors."""


def said_plainly(folder: Path, config: Mapping[str, Any]) -> dict[str, Any]:
    """Return a configuration with one key for how the weights were rounded, whoever says it where.

    MLX says it under a key of its own, which counts before a copy under the usual one; older programs in a file beside.

    Raises:
        ModelFileError: the file beside is damaged.
    """
    if isinstance(said := config.get(_OF_MLX), Mapping):
        return {key: value for key, value in config.items() if key != _OF_MLX} | {KEY: {**said, "quant_method": MLX}}
    name = next((name for name in _BESIDE if (folder / name).is_file()), None)
    if name is None or config.get(KEY) is not None:
        return dict(config)
    said = {_OLDER.get(key, key): value for key, value in read_json(folder / name).items()}
    return {**config, KEY: {"quant_method": _BESIDE[name], **said}}


def method_of(config: Mapping[str, Any], path: Path) -> Method | None:
    """Return how the weights of a folder were rounded, from its configuration; None where they were not.

    Raises:
        ModelFileError: by a program, or in a form, that is not read; it is named.
    """
    said = config.get(KEY)
    if said is None:
        return None
    method = _known(said) if isinstance(said, Mapping) else None
    if method is None:
        raise ModelFileError(
            f"{path}: the weights were quantised by {named(said)} ({KEY}), and Orrery reads no such file",
            "take the folder that they were made from, or a GGUF of the same model; orrery export quantises afterwards",
        )
    return method


def _known(said: Mapping[str, Any]) -> Method | None:
    said = {**said, **_PACKED.get(str(said.get("packing_format")), {})}
    method, bits, group = said.get("quant_method"), said.get("bits"), said.get("group_size", 128)
    are_numbers = isinstance(bits, int) and isinstance(group, int)
    form = said.get("checkpoint_format", "gptq")
    if method == "gptq" and are_numbers and bits in GPTQ_BITS and form in ("gptq", "gptq_v2"):
        return None if said.get("is_marlin_format") else Gptq(bits, group, 1 if form == "gptq" else 0)
    if method == "awq" and are_numbers and bits == 4 and str(said.get("version", "gemm")).lower() == "gemm":
        return Awq(group)
    if method == MLX:
        return mlx_of(said)
    if method == "bitsandbytes":
        return Bits4() if said.get("load_in_4bit") else Bits8()
    if method == "fp8":
        # By default blocks of 128, as in transformers; other programs write ``weight_scale`` for the whole matrix.
        block = _block(said.get("weight_block_size", [128, 128]))
        return Fp8("fp8", (".weight_scale_inv", ".weight_scale"), block)
    if method == "fbgemm_fp8":
        return Fp8("fbgemm_fp8", (".weight_scale",), None)
    if method == "mxfp4":
        return Mxfp4()
    if method == "compressed-tensors" and _plain_form(said):
        return CompressedTensors(method, tuple(_blocks(said.get("config_groups"))))
    if method == "modelopt" and _of_modelopt(said).get("quant_algo") in ("FP8", "NVFP4"):
        return CompressedTensors(method, ())
    return None


def _of_modelopt(said: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return ModelOpt's settings: in a file beside they are an object of their own."""
    inner = said.get("quantization")
    return inner if isinstance(inner, Mapping) else said


def _plain_form(said: Mapping[str, Any]) -> bool:
    """Say whether all groups of a compressed-tensors folder are in forms that are read: no sparse or turned ones."""
    groups = said.get("config_groups")
    forms = [said.get("format")]
    if isinstance(groups, Mapping):
        forms += [group.get("format") for group in groups.values() if isinstance(group, Mapping)]
    sparse = said.get("sparsity_config")
    return (
        all(form in _FORMS for form in forms)
        and not said.get("transform_config")
        and (not sparse or (isinstance(sparse, Mapping) and sparse.get("format") in (None, "dense")))
    )


def _blocks(groups: Any) -> Iterator[tuple[int, int]]:
    """Yield the rows and columns that share a scale in one group of modules or another."""
    for group in groups.values() if isinstance(groups, Mapping) else ():
        weights = group.get("weights") if isinstance(group, Mapping) else None
        if isinstance(weights, Mapping):
            given = weights.get("block_structure")
            given = [int(size) for size in re.findall(r"\d{1,9}", given)] if isinstance(given, str) else given
            block = _block(given) or _block([1, weights.get("group_size")])
            yield from () if block is None else (block,)


def _block(given: Any) -> tuple[int, int] | None:
    if isinstance(given, list) and len(given) == 2 and all(isinstance(size, int) and size > 0 for size in given):
        return given[0], given[1]
    return None


def named(said: Any) -> str:
    """Return what a configuration says of how weights were rounded: ``gptq to 4 bits``."""
    method = said.get("quant_method") if isinstance(said, Mapping) else None
    bits = next((said[key] for key in ("bits", "w_bit", "nbits") if key in said), None) if method else None
    if method == "bitsandbytes":
        bits = 4 if said.get("load_in_4bit") else 8
    return f"{str(method)[:40] if method else 'an unnamed method'}{f' to {str(bits)[:9]} bits' if bits else ''}"
