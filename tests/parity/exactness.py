"""How far Orrery is from transformers in float64: its casts to float32 widened, as it is installed, its eager kernels.

As it is installed, transformers computes norms, softmax and rotary tables of many families in float32, whatever the
model's dtype; the difference that this leaves is its rounding. ``benchmarks/exactness.py`` records what is measured.
"""

import json
import warnings
from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from traceback import walk_tb
from typing import Any

import torch
import transformers
from torch import Tensor, nn

from orrery.exchange.reading.architecture import published
from orrery.exchange.reading.weights import from_theirs
from orrery.families import current_names, load_family, model_type, rules_of
from orrery.laws import outputs
from tests.goldens.cases import PLAIN, USUAL
from tests.parity import oracle
from tests.parity.helper import answer_of, error, load
from tests.parity.keys import answered, inputs, modules_of, written
from tests.parity.stand_ins import class_of, settings_of

WIDENED, INSTALLED, EAGER = "widened", "installed", "eager"
WAYS = (WIDENED, INSTALLED, EAGER)
SEEDS = (0, 1, 2)

Apart = dict[str, float]
"""The largest difference of the answer and of any gradient, in two digits."""


@dataclass(frozen=True)
class Answered:
    """What a reference computes from a configuration and a seed: its answer, and gradients by the names of its file."""

    settings: Any
    file: Mapping[str, Tensor]
    answer: Tensor
    gradients: Mapping[str, Tensor]


def measured(family: str) -> dict[str, Any]:
    """Return the differences of a family of transformers by the way in which the reference computes.

    Each is the largest over its configurations and the seeds of the weights; a way that the reference cannot go holds
    its error.
    """
    worst: dict[str, Any] = {}
    cases = list(configurations(family))
    for config in cases:
        for seed in SEEDS:
            for way, apart in compared(config, seed).items():
                worst[way] = worse(worst.get(way), apart)
    return {"by": f"transformers {transformers.__version__}", "configurations": len(cases), **worst}


def by_formulas(family: str) -> dict[str, Any]:
    """Return the differences of a family of our own from its golden outputs, computed in float64 throughout."""
    cases = outputs.cases(family)
    parts = [outputs.compared(outputs.answered(family, case), case["found"]) for case in cases]
    greatest = {name: rounded(max(part[name] for part in parts)) for name in ("logits", "gradients")}
    (by,) = {case["by"] for case in cases}
    return {"by": by, "configurations": len(cases), WIDENED: greatest}


def configurations(family: str) -> Iterator[dict[str, Any]]:
    """Yield the tiny configuration of a family and those of its golden outputs, as transformers writes them."""
    yield written(family)
    for _, config in PLAIN.get(family, ()):
        settings = settings_of(model_type(family), **{**USUAL, **config})
        full = {**settings.to_dict(), "architectures": [load_family(family).ARCHITECTURE]}
        yield json.loads(json.dumps(full))


def compared(config: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """Return how far our model is from the reference on each way, with the same weights."""
    exact = reference(config, seed, WIDENED)
    ours = model_of(config, exact.file)
    answer = answered(ours, exact.settings)
    weighted(answer).backward()
    by_way: dict[str, Any] = {WIDENED: apart(config, ours, answer, exact)}
    for way in (INSTALLED, EAGER):
        try:
            by_way[way] = apart(config, ours, answer, reference(config, seed, way))
        except RuntimeError as reason:  # what the reference cannot do is a finding
            by_way[way] = {"raises": f"{type(reason).__name__}: {reason}", "at": place_of(reason)}
    return by_way


def place_of(error: BaseException) -> str:
    """Return the function of transformers in which an error arose or whose call of another library raised it."""
    frames = [frame for frame, _ in walk_tb(error.__traceback__)]
    modules = [(frame.f_globals.get("__name__", ""), frame.f_code.co_name) for frame in frames]
    return next(f"{module}.{name}" for module, name in reversed(modules) if module.startswith("transformers."))


def reference(config: Mapping[str, Any], seed: int, way: str) -> Answered:
    """Return what the reference computes from a configuration, all its weights random."""
    make = class_of(config["architectures"][0])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # With a cache RWKV's reference writes into what its gradients need.
        settings = make.config_class.from_dict({**deepcopy(dict(config)), "use_cache": False})
        with oracle.widened(*modules_of(settings)) if way == WIDENED else nullcontext():
            model = make._from_config(settings, dtype=torch.float64, **kernels(settings, way))
            oracle.randomise(model, seed)
            model = model.double().eval()
            file = oracle.file_of(model)  # before the pass, in which RWKV's reference halves its own weights
            answer = answer_of(model(**inputs(settings)))
            weighted(answer).backward()
        return Answered(settings, file, answer.detach(), oracle.gradients_of(model))


def kernels(settings: Any, way: str) -> dict[str, str]:
    """Return the settings of the reference's kernels: none as it is installed."""
    if way == INSTALLED:
        return {}
    # Falcon's eager kernel adds ALiBi twice, the one that it uses by default once.
    attention = "sdpa" if settings.model_type == "falcon" else "eager"
    return {"attn_implementation": attention, "experts_implementation": "eager"}


def model_of(config: Mapping[str, Any], file: Mapping[str, Tensor]) -> Any:
    """Return our model of a configuration and a file of the reference."""
    model: Any = published(deepcopy(dict(config)), Path("config.json")).build(0)
    model = model.double().eval()
    load(model, ours_of(config, model, file))
    return model


def ours_of(config: Mapping[str, Any], model: nn.Module, file: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
    """Return the reference's tensors under the names of ours."""
    family = load_family(config["model_type"])
    return from_theirs(model, current_names(family, config, file), rules_of(family, config))


def weighted(answer: Tensor) -> Tensor:
    """Return the sum of an answer with random weights: the loss whose gradients are compared."""
    # Drawn in float64 always: some references answer in float32, whatever they are asked.
    weight = torch.randn(answer.shape, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    return (answer.double() * weight).sum()


def apart(config: Mapping[str, Any], ours: nn.Module, answer: Tensor, theirs: Answered) -> Apart:
    """Return the differences of the answer and of the gradients of every parameter that learns."""
    expected = ours_of(config, ours, theirs.gradients)
    gaps = [
        error(torch.zeros_like(weight) if weight.grad is None else weight.grad, expected[name])
        for name, weight in ours.named_parameters()
        if weight.requires_grad
    ]
    return {"logits": rounded(error(answer.detach(), theirs.answer)), "gradients": rounded(max(gaps))}


def rounded(value: float) -> float:
    """Return a difference in two digits: the others are chance."""
    return float(f"{value:.1e}")


def worse(before: dict[str, Any] | None, now: dict[str, Any]) -> dict[str, Any]:
    """Return the larger differences of two, or the error of either."""
    if before is None or "raises" in now:
        return now
    return before if "raises" in before else {name: max(before[name], now[name]) for name in now}
