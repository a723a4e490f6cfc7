"""Adapters from folders, for rows of a batch: peft's, and those that were saved here with their base."""

from collections.abc import Mapping
from pathlib import Path

import torch
from torch import nn

from orrery.errors import ModelFileError
from orrery.exchange.reading.read import read
from orrery.models.model import Model
from orrery.tuning import RowAdapters, lora_pairs
from orrery.tuning._row_adapters import Pairs
from orrery.tuning.peft import adapter_pairs, is_adapter
from orrery.tuning.peft.places import Adaptable


def read_pairs(lm: Adaptable, folder: str | Path) -> Pairs:
    """Return A and B of the adapter in a folder by the name of their linear, B times its scale.

    Args:
        lm: a ``LanguageModel``, or what ``read`` returns: the base, which stays as it is.
        folder: of peft's, or a model with a LoRA in our own layout, such as a run's ``final``.

    Raises:
        ModelFileError: files are missing or damaged, or do not fit the base.
        UsageError: the adapter brings more than A and B.
    """
    if is_adapter(folder):
        return adapter_pairs(lm, folder)
    stored = read(folder)
    pairs = lora_pairs(stored.model)
    _refuse_other_base(lm.model, stored.model, stored.folder)
    return pairs


def read_adapters(lm: Adaptable, folders: Mapping[str, str | Path]) -> RowAdapters:
    """Return the adapters of a base by the name that a request will give.

    Raises:
        ModelFileError: as ``read_pairs``.
        UsageError: as ``read_pairs``, or an adapter changes what has no rows, as an expert.
    """
    adapters = RowAdapters(lm.model)
    for name, folder in folders.items():
        adapters.add(name, read_pairs(lm, folder))
    return adapters


def _refuse_other_base(base: Model, adapted: Model, folder: Path) -> None:
    """Refuse an adapter that was trained beside other matrices: it would answer, and wrongly."""
    hint = "load the base that it was trained on"
    own, theirs = _tensors(base), _tensors(adapted)
    if own.keys() != theirs.keys():
        raise ModelFileError(f"{folder} is not an adapter of this model: their tensors have other names", hint)
    for name, tensor in own.items():
        other = theirs[name]
        if tensor.shape != other.shape or not torch.equal(tensor.cpu(), other.to(tensor.dtype)):
            raise ModelFileError(f"{folder} is not an adapter of this model: {name} differs", hint)


def _tensors(model: Model) -> dict[str, nn.Parameter]:
    return {name: part for name, part in model.named_parameters() if not name.endswith((".lora_a", ".lora_b"))}
