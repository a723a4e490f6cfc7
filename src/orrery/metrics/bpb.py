"""Bits a byte: a loss that does not depend on the tokenizer."""

import math
from typing import TYPE_CHECKING, Literal

from orrery.metrics import MetricSettings, register
from orrery.metrics._of_the_loss import OfTheLoss, nats

if TYPE_CHECKING:
    from torch import Tensor

    from orrery.data.sources import HeldBack


@register
class BitsPerByte(OfTheLoss):
    """``loss / ln 2 / bytes a token``, of a loss that is nats a token of text."""

    class Settings(MetricSettings):
        """It has no settings."""

        kind: Literal["bpb"] = "bpb"

    needs_bytes = True

    def value(self, sums: "Tensor", held_back: "HeldBack") -> float:
        """Return the bits a byte."""
        assert held_back.bytes_per_token is not None
        return nats(sums) / math.log(2) / held_back.bytes_per_token
