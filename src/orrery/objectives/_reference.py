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

    What does not learn in the model is shared with it. So a model with an adapter costs the adapter once more, and
    where that begins at zero, as LoRA does, the reference is the model without it.
    """

    digest: Tensor

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        shared: dict[int, Any] = {id(weight): weight for weight in model.parameters() if not weight.requires_grad}
        self.model = deepcopy(model, shared).requires_grad_(False).eval()
        self.register_buffer("digest", self._digest())

    @property
    def spec(self) -> Any:
        """The architecture."""
        return self.model.spec

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
        hasher = hashlib.sha256()
        for part in self._bytes():
            hasher.update(part)
        return torch.frombuffer(bytearray(hasher.digest()), dtype=torch.uint8).clone()

    def _bytes(self) -> Iterator[bytes]:
        for name, tensor in self.model.state_dict().items():
            yield name.encode()
            yield tensor.detach().contiguous().cpu().flatten().view(torch.uint8).numpy().tobytes()
