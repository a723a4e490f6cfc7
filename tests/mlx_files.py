"""Folders as mlx-lm writes them, made with numpy: this package has wheels for few machines, and tests need none.

What is written here was compared with mlx 0.32 and mlx-lm 0.32: ``rounded`` gives the bytes of ``mlx.core.quantize``
for every number of bits and every group, and ``in_their_layout`` the tensors that ``mlx_lm.utils.save_model`` writes
of the same folder of transformers, but for gpt-oss, whose layout was read in the source of mlx-lm alone.
"""

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from orrery.checkpoints.tensors import read_tensors, write_tensors
from orrery.exchange.saving.save import save_model
from orrery.families import load_family
from tiny_models import randomised


def rounded(matrix: Tensor, bits: int, group: int) -> tuple[dict[str, Tensor], Tensor]:
    """Return the words, scales and biases that MLX makes of a matrix, and the matrix that these stand for."""
    grouped, most = matrix.numpy().astype(np.float32).reshape(*matrix.shape[:-1], -1, group), 2**bits - 1
    low, high = grouped.min(-1, keepdims=True), grouped.max(-1, keepdims=True)
    below = np.abs(low) > np.abs(high)
    step = np.maximum((high - low) / np.float32(most), np.float32(1e-7))
    step, edge = np.where(below, step, -step), np.where(below, low, high)
    at_zero = np.rint(edge / step)
    scale = np.where(at_zero != 0, edge / np.where(at_zero == 0, 1, at_zero), step).astype(np.float32)
    bias = np.where(at_zero != 0, edge, 0).astype(np.float32)
    number = np.clip(np.rint((grouped - bias) / scale), 0, most).astype(np.uint8)
    stream = np.unpackbits(number.reshape(*matrix.shape, 1), axis=-1, bitorder="little")[..., :bits]
    packed = np.packbits(stream.reshape(*matrix.shape[:-1], -1), axis=-1, bitorder="little")
    parts = {"weight": packed.view(np.uint32), "scales": scale[..., 0], "biases": bias[..., 0]}
    meant = torch.from_numpy(number * scale + bias).reshape(matrix.shape)
    return {name: torch.from_numpy(np.ascontiguousarray(part)) for name, part in parts.items()}, meant


Tensors = dict[str, Tensor]


def _stacked(tensors: Tensors, names: Mapping[str, str]) -> Tensors:
    """Return the experts of each layer in one tensor, under the names that mlx-lm has for their matrices."""
    kept, experts = {}, {}
    for name, tensor in tensors.items():
        found = re.fullmatch(r"(.*)\.experts\.(\d+)\.(\w+)\.weight", name)
        if found is None:
            kept[name] = tensor
        else:
            whole = f"{found[1]}.switch_mlp.{names.get(found[3], found[3])}.weight"
            experts.setdefault(whole, {})[int(found[2])] = tensor
    return kept | {name: torch.stack([own[x] for x in sorted(own)]) for name, own in experts.items()}


def _named(tensors: Tensors, *pairs: tuple[str, str]) -> Tensors:
    renamed = tensors
    for pattern, target in pairs:
        renamed = {re.sub(pattern, target, name): tensor for name, tensor in renamed.items()}
    return renamed


def _changed(tensors: Tensors, pattern: str, change: Callable[[Tensor], Tensor]) -> Tensors:
    return {name: change(one).contiguous() if re.search(pattern, name) else one for name, one in tensors.items()}


def _halved(tensors: Tensors, fused: str, gate: str, up: str) -> Tensors:
    """Return two tensors for each that holds two."""
    halved = {}
    for name, tensor in tensors.items():
        whole = fused in name
        names = [name.replace(fused, part) for part in (gate, up)] if whole else [name]
        halved |= dict(zip(names, tensor.chunk(2, -2) if whole else [tensor], strict=True))
    return halved


def _of_granite(tensors: Tensors) -> Tensors:
    sparse = any("block_sparse_moe" in name for name in tensors)
    own, theirs = ("block_sparse_moe", "block_sparse_moe.switch_mlp") if sparse else ("shared_mlp", "mlp")
    named = _named(tensors, (rf"{own}\.output_linear", f"{theirs}.down_proj"))
    return _halved(named, f"{own}.input_linear", f"{theirs}.gate_proj", f"{theirs}.up_proj")


def _of_deepseek(tensors: Tensors, heads: int = 2, plain: int = 6) -> Tensors:
    split = dict(_stacked(tensors, {}))
    for name in [name for name in split if name.endswith("kv_b_proj.weight")]:
        of_heads = split.pop(name).unflatten(0, (heads, -1))
        split[name.replace("kv_b_proj", "embed_q")] = of_heads[:, :plain].mT.contiguous()
        split[name.replace("kv_b_proj", "unembed_out")] = of_heads[:, plain:].contiguous()
    return split


def _of_gpt_oss(tensors: Tensors) -> Tensors:
    split = {}
    for name, tensor in tensors.items():
        if ".experts." not in name:
            split[name] = tensor
            continue
        stem, end = name.removesuffix("_bias"), "bias" if name.endswith("_bias") else "weight"
        turned = tensor if end == "bias" else tensor.mT
        rows = -1 if end == "bias" else -2
        fused = "gate_up_proj" in stem
        for half, part in enumerate(("gate_proj", "up_proj") if fused else ("down_proj",)):
            chosen = torch.arange(half, turned.shape[rows], 2 if fused else 1)
            split[f"{re.sub(r'(gate_up|down)_proj', part, stem)}.{end}"] = turned.index_select(rows, chosen)
    return split


_FILTERS = r"(conv1d|conv_1d|conv\.conv)\.weight$"
_MIXTRAL = {"w1": "gate_proj", "w2": "down_proj", "w3": "up_proj"}
LAYOUTS: Mapping[str, Callable[[Tensors], Tensors]] = {
    "apertus": lambda tensors: _changed(tensors, r"alpha_[pn]$", lambda one: one.reshape(())),
    "deepseek_v3": _of_deepseek,
    "glm4_moe": lambda tensors: _stacked(tensors, {}),
    "gpt2": lambda tensors: _changed(
        _named(tensors, (r"^transformer\.", "model.")), r"(c_attn|c_proj|c_fc)\.weight", lambda one: one.mT
    ),
    "gpt_neox": lambda tensors: _named(
        tensors, (r"^gpt_neox\.layers\.", "model.h."), (r"^gpt_neox\.", "model."), (r"^embed_out", "model.embed_out")
    ),
    "gpt_oss": _of_gpt_oss,
    "gptj": lambda tensors: _named(tensors, (r"^transformer\.", "model.")),
    "granitemoe": _of_granite,
    "granitemoehybrid": lambda tensors: _changed(_of_granite(tensors), _FILTERS, lambda one: one.mT),
    "jamba": lambda tensors: _changed(_stacked(tensors, {}), _FILTERS, lambda one: one.mT),
    "lfm2": lambda tensors: _changed(tensors, r"conv\.conv\.weight", lambda one: one.mT),
    "llama": lambda tensors: tensors,
    "mamba": lambda tensors: _changed(tensors, _FILTERS, lambda one: one.mT),
    "minimax_m2": lambda tensors: _stacked(tensors, _MIXTRAL),
    "mixtral": lambda tensors: _stacked(tensors, _MIXTRAL),
    "nemotron_h": lambda tensors: _changed(
        _stacked(tensors, {"up_proj": "fc1", "down_proj": "fc2"}), _FILTERS, lambda one: one.mT
    ),
    "olmoe": lambda tensors: _stacked(tensors, {}),
    "qwen3_next": lambda tensors: _changed(
        _changed(_stacked(tensors, {}), _FILTERS, lambda one: one.mT),
        r"(layernorm|[qk]_norm|model\.norm)\.weight$",
        lambda one: one + 1,
    ),
    "recurrent_gemma": lambda tensors: _changed(tensors, _FILTERS, lambda one: one.mT),
}
"""What mlx-lm makes of the tensors of a family's folder."""


def in_their_layout(folder: Path, family: str, **changed: Any) -> tuple[Path, Path]:
    """Return a folder of transformers with the smallest model of a family, and that of mlx-lm."""
    config = {**load_family(family).TINY, **changed}
    model = randomised(load_family(family).spec(config).build(0))
    plain, theirs = folder / "plain", folder / "mlx"
    for one in (plain, theirs):
        save_model(one, model, family, config)
    tensors = LAYOUTS[family](read_tensors(plain / "model.safetensors"))
    write_tensors(theirs / "model.safetensors", tensors, {"format": "mlx"})
    return plain, theirs


def round_folder(folder: Path, said: Mapping[str, Any], packings: Mapping[str, tuple[int, int]], *keys: str) -> Tensors:
    """Round matrices of a folder of mlx-lm, and say it under some keys; return all of its tensors as they are meant.

    Args:
        folder: the folder.
        said: what its configuration says.
        packings: bits and group by a regular expression of the module's name; others are left.
        keys: where it is said.
    """
    tensors, meant = read_tensors(folder / "model.safetensors"), {}
    packed = dict(tensors)
    for name, tensor in tensors.items():
        module = name.removesuffix(".weight")
        how = next((how for pattern, how in packings.items() if re.search(pattern, module)), None)
        if how is None or tensor.dim() < 2:
            meant[name] = tensor
            continue
        parts, meant[name] = rounded(packed.pop(name).float(), *how)
        packed |= {f"{module}.{part}": value for part, value in parts.items()}
    write_tensors(folder / "model.safetensors", packed, {"format": "mlx"})
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, **dict.fromkeys(keys, said)}))
    return meant
