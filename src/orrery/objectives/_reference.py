"""A frozen copy of the model that a run begins with, and the proof that it has stayed as it was."""

import hashlib
from collections.abc import Iterator
from copy import deepcopy
from typing import Any, cast

import torch
from torch import Tensor, nn

from orrery.errors import RunError


class Reference(nn.Module):
    """The model as it was, without dropout and gradients; ``digest`` is the sha256 of its tensors, saved beside them.

    A model with an adapter is copied with it: before the first step the adapter changes nothing.
    """

    digest: Tensor

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = deepcopy(model).requires_grad_(False).eval()
        self.register_buffer("digest", self._digest())

    def train(self, mode: bool = True) -> "Reference":
        """Stay in the mode of evaluation."""
        return self

    @torch.no_grad()
    def __call__(self, *call: Any, **how: Any) -> dict[str, Any]:
        """Return what the model's heads make of a batch."""
        return cast(dict[str, Any], self.model(*call, **how))

    def check(self) -> None:
        """Compare the tensors with the digest.

        Raises:
            RunError: a number has changed.
        """
        if not torch.equal(self._digest().to(self.digest.device), self.digest):
            message = "the reference model is not the one that the run began with: a tensor of it has changed"
            raise RunError(message, "nothing may train it; resume from the last checkpoint")

    def _digest(self) -> Tensor:
        found = hashlib.sha256()
        for part in self._bytes():
            found.update(part)
        return torch.frombuffer(bytearray(found.digest()), dtype=torch.uint8).clone()

    def _bytes(self) -> Iterator[bytes]:
        for name, tensor in self.model.state_dict().items():
            yield name.encode()
            yield tensor.detach().contiguous().cpu().flatten().view(torch.uint8).numpy().tobytes()
