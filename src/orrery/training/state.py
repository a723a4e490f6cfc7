"""The state of a run between steps, and a model's weights as named tensors."""

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from orrery.errors import DataError, ModelFileError, RunError, UsageError
from orrery.exchange.reading.architecture import CONFIGURATION, FAMILY
from orrery.nn.spec import from_json, to_json
from orrery.training.distributed import Alone, Ranks
from orrery.training.parallel.shards import like, own_part, shared
from orrery.tuning import TRANSFORMS

AGAIN = "begin another run, with a lower training.optimizer.rate or a longer training.schedule.warmup; "
AGAIN += "--model.from RUN begins from this one's newest sound checkpoint"
"""What is to be done where numbers are not finite: a run that goes on learns as it did before."""
OBJECTIVE = "objective"
"""What the names of an objective's own tensors begin with, among those of the optimizer."""


@dataclass
class Progress:
    """How far a run is: everything of the loop that a resumed run must take up.

    ``norm`` is the last finite gradient norm before clipping, ``best`` the best value so far of the metric that
    ``decides``, ``best_loss`` the loss of that model, ``waited`` the number of evaluations since then, ``window`` holds
    the losses since the last line of metrics, ``measured`` the means of the terms that the objective reports;
    ``pending`` says that the line of this very step was due but not written, because the run was asked to stop.
    """

    step: int = 0
    tokens: int = 0
    skipped: int = 0
    norm: float = 0.0
    best: float | None = None
    best_loss: float | None = None
    decides: str = "loss"
    pending: bool = False
    waited: int = 0
    window: list[float] = field(default_factory=list)
    measured: dict[str, list[float]] = field(default_factory=dict)

    def state(self) -> dict[str, Any]:
        """Return the progress as JSON values."""
        return asdict(self)


class Learner(nn.Module):
    """A model and what its objective owns, as one: the model's names stay, behind ``objective.`` come its own."""

    def __init__(self, model: nn.Module, owned: nn.ModuleDict) -> None:
        super().__init__()
        for name, child in model.named_children():
            self.add_module(name, child)
        for name, parameter in model.named_parameters(recurse=False):
            self.register_parameter(name, parameter)
        self.add_module(OBJECTIVE, owned)


def model_tensors(model: nn.Module) -> dict[str, Tensor]:
    """Return the weights and buffers by name; a tied tensor comes once, under its first name."""
    tensors: dict[str, Tensor] = {}
    seen: set[tuple[int, torch.Size]] = set()
    for name, tensor in model.state_dict(keep_vars=True).items():
        # A part of a shared tensor may be empty, and then lies nowhere; such tensors are parameters.
        place = (id(tensor) if shared(tensor) else tensor.data_ptr(), tensor.shape)
        if tensor.numel() == 0 or place not in seen:
            tensors[name] = tensor.detach()
            seen.add(place)
    return tensors


def currently_named(model: nn.Module, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the tensors of a checkpoint, of the model or of its optimizer, under the names that they have now."""
    current = getattr(model, "current_name", str)

    def renamed(full_name: str) -> str:
        kind, slash, name = full_name.rpartition("/")
        return full_name if name.startswith(f"{OBJECTIVE}.") else f"{kind}{slash}{current(name)}"

    return {renamed(name): tensor for name, tensor in tensors.items()}


@torch.no_grad()
def load_model_tensors(model: nn.Module, tensors: dict[str, Tensor]) -> None:
    """Copy named tensors into a model; raise ``ModelFileError`` unless names, shapes and dtypes agree."""
    own = model_tensors(model)
    faults = {
        "missing": sorted(own.keys() - tensors.keys()),
        "unexpected": sorted(tensors.keys() - own.keys()),
        "of another shape or dtype": [
            name
            for name in own.keys() & tensors.keys()
            if (own[name].shape, own[name].dtype) != (tensors[name].shape, tensors[name].dtype)
        ],
    }
    differences = [f"{len(names)} {kind}: {', '.join(sorted(names)[:10])}" for kind, names in faults.items() if names]
    if differences:
        raise ModelFileError(
            f"the weights do not fit the model ({'; '.join(differences)})", "use the recipe that wrote them"
        )
    for name, tensor in own.items():
        own_part(tensor).copy_(own_part(like(tensors[name], tensor)))


def first_bad_tensor(model: nn.Module, ranks: Ranks | None = None) -> str:
    """Name the first weight that is not finite, else the first such gradient, in the model's own order."""
    parameters = dict(model.named_parameters())
    for kind in ("weight", "gradient"):
        bad = [_is_bad(each if kind == "weight" else each.grad) for each in parameters.values()]
        counts = (ranks or Alone()).sum(torch.tensor(bad).int()).tolist()
        for name, count in zip(parameters, counts, strict=True):
            if count:
                return f"{kind} {name}"
    return "none (only the loss)"


def _is_bad(tensor: Tensor | None) -> bool:
    """Say whether what this process has of a tensor is not finite."""
    return tensor is not None and not bool(torch.isfinite(own_part(tensor)).all())


def refuse_bad_weights(model: nn.Module, step: int, ranks: Ranks | None = None) -> None:
    """Raise ``RunError`` if a weight is not finite, so that no such checkpoint ever replaces a good one."""
    if (ranks or Alone()).any(any(map(_is_bad, model.parameters()))):
        message = f"step {step}: {first_bad_tensor(model, ranks)} is not finite; nothing was saved"
        raise RunError(message, AGAIN)


def refuse_other_facts(saved: Mapping[str, str], facts: Mapping[str, str]) -> None:
    """Raise ``DataError`` where a fingerprint is not the one that the run was started with."""
    for name, value in saved.items():
        if facts.get(name) != value:
            raise DataError(
                f"the {name} is not the one this run was started with ({value[:12]})",
                f"bring the old {name} back, or start a new run with another --output",
            )


def magnitude(model: nn.Module) -> float:
    """Return the sum of the squares of a model's weights, which differs from that of other weights."""
    return sum((float(each.detach().float().square().sum()) for each in model.parameters()), 0.0)


def refuse_unlike(known: Mapping[str, str], weights: float, ranks: Ranks) -> None:
    """Refuse processes of one run that differ, as machines do that read files of their own.

    Args:
        known: of this process, by name: version, recipe, checkpoint, data.
        weights: the `magnitude` of those that it begins with; other processors may round otherwise.
        ranks: all of them call this.

    Raises:
        UsageError: there is one.
    """
    first = json.loads(ranks.told(json.dumps({**known, "weights": weights})))
    other = [name for name, value in known.items() if first.get(name) != value]
    alike = math.isclose(first["weights"], weights, rel_tol=1e-5) or str(first["weights"]) == str(weights)  # both nan
    other += [] if alike else ["weights"]
    if ranks.any(bool(other)):
        own = ", ".join(f"{name} ({str({**known, 'weights': weights}[name])[:12]})" for name in other)
        has = f"process {ranks.rank} has another {own} than the first" if other else "another one says what it has"
        hint = "give all of them one version, recipe, model and data, and a folder on a disk that they share"
        raise UsageError(f"the processes of the run differ: {has}", hint)


def refuse_another_model(saved: Mapping[str, Any], spec_found: Mapping[str, Any]) -> None:
    """Raise ``DataError`` where the recipe now describes another architecture than that of the checkpoint.

    A version of the program may read a recipe otherwise than the one that began the run. What the files call by older
    names is the same.
    """
    if saved == spec_found:
        return
    beside = (TRANSFORMS, FAMILY, CONFIGURATION)
    before, now = (from_json({key: of[key] for key in of if key not in beside}) for of in (saved, spec_found))
    if before == now:
        return
    old, new = (to_json(each) for each in (before, now))
    keys = ", ".join(key for key in old if old.get(key) != new.get(key)) or "its kind"
    raise DataError(
        f"the recipe describes another model than the checkpoint holds ({keys}): another version began it",
        "finish the run with that version, or start a new run with another --output",
    )
