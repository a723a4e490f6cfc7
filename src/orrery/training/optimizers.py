"""Optimizers of a recipe, and their state as named tensors."""

import operator
from typing import Any

import torch
from torch import Tensor, nn

from orrery.errors import ModelFileError, UsageError
from orrery.training.layer_rates import inside_blocks, layer_scales
from orrery.training.muon import MOMENTUM, Muon
from orrery.training.parallel.shards import holders, like, shared

KINDS = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam, "adamw": torch.optim.AdamW, "muon": Muon}


def build_optimizer(model: nn.Module, settings: Any) -> torch.optim.Optimizer:
    """Return the optimizer that ``training.optimizer`` names; weight decay reaches matrices only, Muon those of blocks.

    Norms' scales and biases are vectors: pulling them to zero would change what the layer means, not its size. So would
    pulling what a part lists in ``no_decay``, whatever its shape. Parameters of one ``scale`` of the rate are a group.
    The fused form is used: one kernel over all tensors, on the CPU as on a GPU; it takes those that the same processes
    share, apart from others.

    Raises:
        UsageError: Muon has nothing to do.
    """
    numbers = settings.model_dump(exclude={"kind", "rate", "weight_decay", "layer_decay"})
    decay = getattr(settings, "weight_decay", 0.0)
    parameters = {name: parameter for name, parameter in model.named_parameters() if parameter.requires_grad}
    scales = layer_scales(parameters, getattr(settings, "layer_decay", 1.0))
    kept = undecayed(model)
    groups: dict[tuple[float, bool, bool, tuple[int, ...]], dict[str, Any]] = {}
    # The greatest rate first: the order is that of the optimizer's state in checkpoints.
    for name, parameter in sorted(parameters.items(), key=lambda item: -scales[item[0]]):
        scale, matrix = scales[name], parameter.ndim >= 2 and id(parameter) not in kept
        orthogonal = settings.kind == "muon" and matrix and parameter.ndim == 2 and inside_blocks(name)
        first = {"params": [], "weight_decay": decay if matrix else 0.0, "lr": settings.rate * scale, "scale": scale}
        if orthogonal:
            first["orthogonal"] = True
        groups.setdefault((scale, matrix, orthogonal, holders(parameter)), first)["params"].append(parameter)
    if settings.kind == "muon" and not any(orthogonal for _, _, orthogonal, _ in groups):
        hint = "choose adamw, which Muon leaves all other parameters to"
        raise UsageError("training.optimizer muon: no block has a matrix to learn", hint)
    # torch's fused SGD takes no tensors that processes share.
    fused = settings.kind != "sgd" or not any(map(shared, parameters.values()))
    return KINDS[settings.kind](list(groups.values()), lr=settings.rate, fused=fused, **numbers)


def undecayed(model: nn.Module) -> frozenset[int]:
    """Return the identities of the parameters that parts list in ``no_decay``, by a name or a path below the part.

    Such a part's numbers are no matrix that multiplies a vector: rates of a state space and its steps, a filter of each
    channel, a learned key. Gu and Dao's code for Mamba marks its A and D so.

    Raises:
        AttributeError: a part has no parameter of a name that it lists.
    """
    fixed = (operator.attrgetter(path)(part) for part in model.modules() for path in getattr(part, "no_decay", ()))
    return frozenset(id(parameter) for parameter in fixed if parameter is not None)


def set_rate(optimizer: torch.optim.Optimizer, rate: float) -> None:
    """Set the learning rate of every group, by its scale."""
    for group in optimizer.param_groups:
        group["lr"] = rate * group["scale"]


def optimizer_tensors(model: nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """Return the optimizer's state as ``{"exp_avg/blocks.0.weight": tensor, ...}``."""
    tensors = {}
    for name, parameter in model.named_parameters():
        for key, value in optimizer.state.get(parameter, {}).items():
            if isinstance(value, Tensor):
                tensors[f"{key}/{name}"] = value
    return tensors


def restore_optimizer(model: nn.Module, optimizer: torch.optim.Optimizer, tensors: dict[str, Tensor]) -> None:
    """Give the optimizer the state that ``optimizer_tensors`` returned for the same model.

    Raises:
        ModelFileError: it has state of a parameter that the model lacks, or that is learned by another rule now.
    """
    parameters = dict(model.named_parameters())
    orthogonal = {id(one) for group in optimizer.param_groups if group.get("orthogonal") for one in group["params"]}
    for full_name, tensor in tensors.items():
        key, _, name = full_name.partition("/")
        if name not in parameters:
            message = f"the checkpoint's optimizer knows {name!r}, which the model does not have"
            raise ModelFileError(message, "resume with the recipe that wrote the checkpoint")
        if isinstance(optimizer, Muon) and (key == MOMENTUM) != (id(parameters[name]) in orthogonal):
            message = f"the checkpoint's optimizer learned {name!r} by another rule: another version began the run"
            raise ModelFileError(message, "finish the run with that version, or start a new one with another --output")
        # Adam counts its steps on the CPU, except in the fused form, where the count lies beside the weight.
        optimizer.state[parameters[name]][key] = like(tensor, parameters[name])
