"""A model's low-rank adapters as a folder that peft loads: ``adapter_config.json`` and safetensors."""

import json
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from orrery.checkpoints.disk import machine_errors, write_text
from orrery.checkpoints.tensors import write_tensors
from orrery.errors import UsageError
from orrery.models.model import Model
from orrery.tuning._description import describe
from orrery.tuning.lora import AdaptedLinear, LoRA
from orrery.tuning.peft.places import (
    BASE_CONFIG,
    CONFIG,
    PREFIX,
    SIDES,
    WEIGHTS,
    Adaptable,
    PeftTensor,
    matrices_of,
    places_of,
)

_MERGE = "merge it instead: orrery.tuning.merge(lm.model); our own layout keeps it: lm.save(folder, layout='own')"


@dataclass(frozen=True)
class _Product:
    """``scale B A`` beside a matrix of theirs; ``a`` is ``[R, in]``, ``b`` ``[out, R]``."""

    a: Tensor
    b: Tensor
    scale: float

    @property
    def numbers(self) -> tuple[int, float]:
        """Return peft's ``r`` and ``lora_alpha``."""
        return len(self.a), self.scale * len(self.a)


def save_adapter(lm: Adaptable, folder: str | Path) -> dict[str, Tensor]:
    """Write the low-rank adapters of a model, and the parameters that learn beside them, as peft does.

    ``peft.PeftModel.from_pretrained(base, folder)`` loads them over the same base. Adapters on parts of a matrix that
    the reference stores as one (q, k and v of GPT-2) become one adapter of the sum of their ranks, whose B holds theirs
    in blocks; of their own rank where all parts have the same A, as an adapter that peft wrote has.

    Args:
        lm: a ``LanguageModel``, or what ``read`` returns; a Hugging Face folder that it came from is noted as the base.
        folder: made where it is missing.

    Returns:
        The tensors, by peft's names.

    Raises:
        UsageError: the model has no adapter, or one that peft's files cannot hold; it is named.
        MachineError: the disk refuses.
    """
    folder = Path(folder)
    config, tensors = _contents(lm)
    with machine_errors(folder, sum(tensor.nbytes for tensor in tensors.values())):
        folder.mkdir(parents=True, exist_ok=True)
        fresh = folder / f".{WEIGHTS}.tmp-{os.getpid()}"
        try:
            write_tensors(fresh, tensors, {"format": "pt"})
            os.replace(fresh, folder / WEIGHTS)
        finally:
            fresh.unlink(missing_ok=True)
        write_text(folder / CONFIG, json.dumps(config, indent=2) + "\n")
    return tensors


def _contents(lm: Adaptable) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Return the settings and the tensors of an adapter, in peft's words."""
    model = lm.model
    transforms = _adapters(model)
    describe(model)
    places = places_of(lm)
    matrices = matrices_of(model, places)
    adapted = {n: m for n, m in model.named_modules(remove_duplicate=False) if isinstance(m, AdaptedLinear)}
    used = {name: place for name, place in matrices.items() if any(linear in adapted for linear in place.linears)}
    _refuse_homeless(adapted, used)
    products = {name: _product(model, place) for name, place in used.items()}
    whole = _whole(model, places, transforms)
    if doubled := used.keys() & {name.rpartition(".")[0] for name in whole}:
        raise UsageError(f"{min(doubled)} has an adapter, and learns whole too, which peft's files cannot hold", _MERGE)
    tensors = {PREFIX + name: tensor for name, tensor in whole.items()}
    for name, product in products.items():
        for side, tensor in zip(SIDES, (product.a, product.b), strict=True):
            tensors[f"{PREFIX}{name}{side}"] = tensor.detach().contiguous()
    config = {
        "base_model_name_or_path": str(lm.folder) if (lm.folder / BASE_CONFIG).is_file() else None,
        "bias": "none",
        "fan_in_fan_out": any(place.turned for place in used.values()),
        "inference_mode": True,
        "lora_dropout": transforms[0].dropout,
        "modules_to_save": sorted({name.rpartition(".")[0] for name in whole}) or None,
        "peft_type": "LORA",
        "task_type": _task(model),
        **_numbers(products),
    }
    return config, tensors


def _adapters(model: Model) -> list[LoRA]:
    """Return the transforms, which must all be low-rank adapters."""
    if not model.transforms:
        raise UsageError("the model has no adapter to write for peft", "apply one: orrery.tuning.lora.LoRA")
    others = [transform.kind for transform in model.transforms if not isinstance(transform, LoRA)]
    if others:
        raise UsageError(f"peft's files cannot hold the transforms {', '.join(others)} of this model", _MERGE)
    transforms: list[LoRA] = list(model.transforms)
    if len({transform.dropout for transform in transforms}) > 1:
        rates = ", ".join(str(transform.dropout) for transform in transforms)
        raise UsageError(f"the adapters have the dropouts {rates}, and peft's files hold one", _MERGE)
    return transforms


def _refuse_homeless(adapted: Mapping[str, AdaptedLinear], used: Mapping[str, PeftTensor]) -> None:
    held = {linear for place in used.values() for linear in place.linears}
    seen = {id(adapted[name]) for name in held if name in adapted}
    for name, module in adapted.items():
        if id(module) not in seen:
            message = f"{name} is no matrix of its own in the reference's model, so peft has no adapter for it"
            raise UsageError(message, _MERGE)


def _product(model: Model, place: PeftTensor) -> _Product:
    """Return what stands beside a matrix of theirs, for all its parts at once."""
    parts = [model.get_submodule(name) for name in place.linears]
    adapted = [part for part in parts if isinstance(part, AdaptedLinear)]
    first, rows = adapted[0], place.rows
    assert rows is not None
    same = all(p.scale == first.scale and torch.equal(p.lora_a, first.lora_a) for p in adapted)
    if same and len(adapted) == len(parts):
        return _Product(first.lora_a, rows.join([part.lora_b for part in adapted]), first.scale)
    a, start, blocks = torch.cat([part.lora_a for part in adapted]), 0, []
    for part in parts:
        assert isinstance(part.out_features, int)
        block = a.new_zeros(part.out_features, len(a))
        if isinstance(part, AdaptedLinear):
            end = start + part.lora_b.shape[1]
            block[:, start:end] = part.lora_b.detach() * (part.scale / first.scale)
            start = end
        blocks.append(block)
    return _Product(a, rows.join(blocks), first.scale)


def _whole(model: Model, places: Mapping[str, PeftTensor], transforms: Sequence[LoRA]) -> dict[str, Tensor]:
    """Return the tensors of the reference's modules of which something learns beside the adapters."""
    learning = {id(parameter) for transform in transforms for _, parameter in transform.asked(model)}
    names = {name for name, p in model.named_parameters(remove_duplicate=False) if id(p) in learning}
    holding = [place for place in places.values() if names.intersection(place.ours)]
    if homeless := names.difference(*(place.ours for place in holding)):
        message = f"{min(homeless)} learned beside the adapter and has no place in the family's files"
        raise UsageError(message, "our own layout keeps it: lm.save(folder, layout='own')")
    modules = {place.module for place in holding}
    own = dict(model.named_parameters(remove_duplicate=False))
    return {
        place.theirs: place.rule.join([own[name].detach() for name in place.ours])
        for place in places.values()
        if place.module in modules
    }


def _numbers(products: Mapping[str, _Product]) -> dict[str, Any]:
    """Return the most usual rank and alpha, and by module those that differ."""
    (rank, alpha), _ = Counter(product.numbers for product in products.values()).most_common(1)[0]
    numbers = {name: product.numbers for name, product in products.items()}
    return {
        "alpha_pattern": {name: own for name, (_, own) in numbers.items() if own != alpha},
        "lora_alpha": alpha,
        "r": rank,
        "rank_pattern": {name: own for name, (own, _) in numbers.items() if own != rank},
        "target_modules": sorted(products),
    }


def _task(model: Model) -> str | None:
    """Return peft's word for a model that writes; any other is called as its base is."""
    if not model.spec.writes:
        return None
    return "SEQ_2_SEQ_LM" if model.spec.reads_source else "CAUSAL_LM"
