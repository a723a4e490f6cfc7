"""Decoders, whose rows and whose blocks processes may share."""

from typing import Any

from torch import nn

from orrery.models.decoder import Decoder
from orrery.nn.stack import Stack


def decoder_of(model: nn.Module) -> Decoder | None:
    """Return a model that reads tokens and writes the next ones by one stack of blocks; nothing of another one."""
    described: Any = model
    spec = getattr(model, "spec", None)
    if spec is None or not spec.writes or tuple(spec.inputs) != ("ids",):
        return None
    return described if isinstance(described.stack, Stack) else None
