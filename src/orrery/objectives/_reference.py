"""The reference model: the model as the run begins, frozen, and held to that by a hash."""

import copy
import hashlib
from typing import Any, final

import torch
from torch import Tensor, nn

from orrery.errors import RunError


@final
class Reference(nn.Module):
    """A model as it was when this was made: a copy in which nothing learns and nothing is dropped out.

    What does not learn in the model is shared with it: beside an adapter the copy costs the adapter alone, and with
    one that begins at zero, such as LoRA, it is the model without it. The sha256 of all weights is a tensor of its own,
    so that it is saved and resumed with the run.

    Shapes: those of the model.
    """

    digest: Tensor

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        shared: dict[int, Any] = {id(weight): weight for weight in model.parameters() if not weight.requires_grad}
        self.model = copy.deepcopy(model, shared).eval().requires_grad_(False)
        self.register_buffer("digest", self.measured())

    def forward(self, batch: Any, heads: Any = None) -> dict[str, Any]:
        """Return what the heads of the frozen model make of a batch, without a gradient."""
        with torch.no_grad():
            found: dict[str, Any] = self.model(batch, heads)
        return found

    @property
    def spec(self) -> Any:
        """The architecture."""
        return self.model.spec

    def measured(self) -> Tensor:
        """Return the sha256 over the names and bytes of all weights, as 32 numbers."""
        digest = hashlib.sha256()
        for name, tensor in self.model.state_dict().items():
            digest.update(name.encode())
            digest.update(tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().tobytes())
        return torch.frombuffer(bytearray(digest.digest()), dtype=torch.uint8)

    def check(self) -> None:
        """Refuse to go on with a reference that is not what it was.

        Raises:
            RunError: a weight has changed.
        """
        if not torch.equal(self.measured(), self.digest.cpu()):
            message = "the reference model has changed since the run began: its sha256 is another; nothing was saved"
            raise RunError(
                message, "nothing may train what the objective keeps frozen; resume from the last checkpoint"
            )
