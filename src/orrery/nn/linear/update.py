"""What tokens do to a state and ask of it: a value with the three forms that a mixer needs."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace

from jaxtyping import Bool, Float
from torch import Tensor

from orrery.nn.linear import matrix_state


class Update(ABC):
    """What tokens ``[B, L]`` do to a state ``[B, H, C, E]``, in order, and what each reads of it, ``[B, L, H, E]``."""

    @abstractmethod
    def only(self, real_BL: Bool[Tensor, "B L"]) -> "Update":
        """Return the update in which the other tokens, all on the right, leave the state alone."""

    @abstractmethod
    def step(self, state_BHCE: Float[Tensor, "B H C E"]) -> tuple[Float[Tensor, "B L H E"], Float[Tensor, "B H C E"]]:
        """Take the one token of each row: the definition."""

    @abstractmethod
    def parallel(
        self, state_BHCE: Float[Tensor, "B H C E"]
    ) -> tuple[Float[Tensor, "B L H E"], Float[Tensor, "B H C E"]]:
        """Take all pairs of tokens at once."""

    @abstractmethod
    def chunked(
        self, state_BHCE: Float[Tensor, "B H C E"], size: int
    ) -> tuple[Float[Tensor, "B L H E"], Float[Tensor, "B H C E"]]:
        """Take pieces of ``size`` tokens, a power of two."""


@dataclass(frozen=True)
class OuterProduct(Update):
    """``S_t = diag(exp(g_t)) S_{t-1} + k_t v_t^T``, ``y_t = q_t S_t``: see ``nn/linear/matrix_state.py``.

    Shapes: q and k ``[B, L, H, C]``, v ``[B, L, H, E]``, log decay ``[B, L, H, C]`` or ``[B, L, H, 1]``.
    """

    q: Tensor
    k: Tensor
    v: Tensor
    decay: Tensor

    def only(self, real_BL: Bool[Tensor, "B L"]) -> "OuterProduct":
        """Let the other tokens write nothing, and nothing fade meanwhile."""
        real_BL11 = real_BL[..., None, None]
        return replace(self, k=self.k * real_BL11, decay=self.decay * real_BL11)

    def step(self, state_BHCE: Float[Tensor, "B H C E"]) -> tuple[Float[Tensor, "B L H E"], Float[Tensor, "B H C E"]]:
        """Fade, write, read."""
        q, k, v, decay = (x[:, 0] for x in (self.q, self.k, self.v, self.decay))
        y_BHE, after = matrix_state.step(q, k, v, decay, state_BHCE)
        return y_BHE[:, None], after

    def parallel(
        self, state_BHCE: Float[Tensor, "B H C E"]
    ) -> tuple[Float[Tensor, "B L H E"], Float[Tensor, "B H C E"]]:
        """Take all pairs of tokens at once."""
        return matrix_state.parallel(self.q, self.k, self.v, self.decay, state_BHCE)

    def chunked(
        self, state_BHCE: Float[Tensor, "B H C E"], size: int
    ) -> tuple[Float[Tensor, "B L H E"], Float[Tensor, "B H C E"]]:
        """Take pieces of ``size`` tokens."""
        return matrix_state.chunked(self.q, self.k, self.v, self.decay, state_BHCE, size)
