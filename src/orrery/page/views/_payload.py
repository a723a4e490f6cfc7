"""What a view sends: facts as JSON, numbers as tensors, and checks, in one safetensors file."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import safetensors.torch
from torch import Tensor

from orrery.inspection.checks import Check


@dataclass(frozen=True)
class Payload:
    """Facts, tensors and checks of one view.

    The bytes are a safetensors file, which any reader opens; ``view`` in its ``__metadata__`` is JSON with ``facts``
    and ``checks``. Pictures are sent as uint8, numbers that are shown as float16 or float32.

    Attributes:
        facts: values of JSON; a number that is not finite becomes null.
        tensors: by name.
        checks: what was verified of the numbers of this very view.
    """

    facts: Mapping[str, Any]
    tensors: Mapping[str, Tensor] = field(default_factory=dict)
    checks: Sequence[Check] = ()

    def to_bytes(self) -> bytes:
        """Return the file."""
        checks = [
            {"name": check.name, "value": check.value, "bound": check.bound, "passed": check.passed}
            for check in self.checks
        ]
        # One entry: the order of several is not the same twice.
        metadata = {"view": to_json({"facts": self.facts, "checks": checks})}
        tensors = {name: value.detach().cpu().contiguous() for name, value in self.tensors.items()}
        return safetensors.torch.save(tensors, metadata)


def to_json(value: Any) -> str:
    """Return a value as JSON in the strict sense: a number that is not finite is null."""
    return json.dumps(_finite(value), allow_nan=False, separators=(",", ":"))


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, str | int) or value is None:  # before the abstract types, which ask all of their subclasses
        return value
    if isinstance(value, Mapping):
        return {str(key): _finite(inner) for key, inner in value.items()}
    if isinstance(value, Sequence):
        return [_finite(inner) for inner in value]
    return value
