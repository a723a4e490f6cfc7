"""The checks of a trace: looking changed no number, patterns mix to the output, parts add up to the stream."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase

import torch
from torch import Tensor

from orrery.models.assemblies import Assembly
from orrery.nn.residual import Identity, Residual
from orrery.nn.stack import Stack


@dataclass(frozen=True)
class Check:
    """One verified fact: a value and the bound that it may not pass."""

    name: str
    value: float
    bound: float

    @property
    def passed(self) -> bool:
        """Whether the value is within its bound; NaN is not."""
        return self.value <= self.bound


def error(a: Tensor, b: Tensor) -> float:
    """Return ``max|a - b| / max(1, max|b|)``."""
    return float((a - b).abs().max() / b.abs().max().clamp(min=1))


def check_sight(seen: Tensor, unseen: Tensor) -> Check:
    """Compare the logits with and without the recorder: they are equal bit for bit."""
    different = int((seen != unseen).sum()) - int((seen.isnan() & unseen.isnan()).sum())
    return Check("looking changes no number", float(different), 0.0)


def check_mixing(values: Mapping[str, Tensor]) -> Check:
    """Compare ``pattern @ v`` with what the kernel put out, in every attention."""
    worst, dtype = 0.0, torch.float64
    for key, pattern_BHLS in values.items():
        if key.endswith(".pattern"):
            path = key.removesuffix("pattern")
            v_BKSC, mixed_BHLC = values[f"{path}v"], values[f"{path}mixed"]
            v_BHSC = v_BKSC.repeat_interleave(pattern_BHLS.shape[1] // v_BKSC.shape[1], dim=1)
            worst = _worse(worst, error(pattern_BHLS @ v_BHSC, mixed_BHLC))
            dtype = mixed_BHLC.dtype
    return Check("patterns times values are the kernel's output", worst, _bound(dtype))


def check_gates(values: Mapping[str, Tensor]) -> list[Check]:
    """Compare the states that follow from the gates, step by step, with the engine's, where there are recurrences."""
    worst = None
    for key, stepwise_BLD in values.items():
        if key.endswith(".stepwise"):
            state_BLD = values[f"{key.removesuffix('stepwise')}state"]
            worst = _worse(worst or 0.0, error(stepwise_BLD, state_BLD))
    return [] if worst is None else [Check("gates step by step give the engine's states", worst, _bound(torch.float32))]


def check_stream(
    model: Assembly, values: Mapping[str, Tensor], edit: Mapping[str, object], notes: list[str]
) -> list[Check]:
    """Compare the embeddings plus all that was added with the stream before the final norm, where that is a law.

    Appends to ``notes`` where it is not: a norm or a factor on the stream itself, or an edit of the stream.
    """
    if not sums_up(model.stack):
        notes.append("no sum of parts: in this model a norm or a factor acts on the stream itself")
        return []
    stream = [key for key in values if re.fullmatch(r".*\.resid(_pre|_post)?", key)]
    if any(fnmatchcase(key, pattern) for key in stream for pattern in edit):
        notes.append("no sum of parts: an edit replaced the stream")
        return []
    bound = _bound(values["embedded"].dtype)
    return [Check("embeddings and additions sum to the stream", stream_error(model.stack, values), bound)]


def sums_up(stack: Stack) -> bool:
    """Say whether the stream is the sum of the embeddings and all additions: no slot acts on the stream itself."""
    residuals = [module for module in stack.modules() if isinstance(module, Residual)]
    return all(isinstance(slot, Identity) for residual in residuals for slot in (residual.skip, residual.out))


def rebuilt_stream(values: Mapping[str, Tensor]) -> Tensor:
    """Return the embeddings plus everything that was added by the answering stack, in float64."""
    added = [value for key, value in values.items() if key.startswith("blocks.") and key.endswith(".added")]
    return sum((value.double() for value in added), start=values["embedded"].double())


def stream_error(stack: Stack, values: Mapping[str, Tensor]) -> float:
    """Return how far the rebuilt stream is from the one before the final norm."""
    last = values[f"blocks.{len(stack.order) - 1}.resid_post"]
    return error(rebuilt_stream(values), last.double())


def _worse(a: float, b: float) -> float:
    """Return the greater, and NaN if either is."""
    return b if not b <= a else a


def _bound(dtype: torch.dtype) -> float:
    """Return 1e-5, or four units in the last place where a 16-bit format is coarser than that.

    Measured on random gpt2 and llama of 2 to 12 blocks in bfloat16: at most two units.
    """
    return max(1e-5, 4 * torch.finfo(dtype).eps)
