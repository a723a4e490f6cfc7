"""Bits a byte: a loss that does not depend on the tokenizer."""

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from orrery.metrics import Metric, MetricSettings, register
from orrery.metrics._nats import measured, nats

if TYPE_CHECKING:
    from torch import Tensor

    from orrery.data.sources import HeldBack
    from orrery.models.inputs import Batch
    from orrery.objectives import Term


@register
class BitsPerByte(Metric):
    """``loss / ln 2 / bytes a token``, of a loss that is nats a token of text."""

    class Settings(MetricSettings):
        """It has no settings."""

        kind: Literal["bpb"] = "bpb"

    needs_bytes = True

    def measure(self, model: Any, batch: "Batch", terms: "Mapping[str, Term]") -> "Tensor":
        """Return the sums and counts of the loss."""
        return measured(terms)

    def value(self, sums: "Tensor", held_back: "HeldBack") -> float:
        """Return the bits a byte."""
        assert held_back.bytes_per_token is not None
        return nats(sums) / math.log(2) / held_back.bytes_per_token
