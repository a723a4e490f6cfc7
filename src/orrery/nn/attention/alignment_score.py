"""How well a decoder's state fits each place of the source: additive (Bahdanau) and multiplicative (Luong)."""

from abc import ABC, abstractmethod

import torch
from jaxtyping import Float
from torch import Tensor, nn

from orrery.nn.spec import ModuleSpec, spec


class AlignmentScore(nn.Module, ABC):
    """``e_j = score(q, m_j)``. Shapes: q ``[B, D]`` and keys ``[B, S, E]`` to ``[B, S]``."""

    @abstractmethod
    def keys(self, encoder_states_BSM: Float[Tensor, "B S M"]) -> Float[Tensor, "B S E"]:
        """Return what of the score depends on the encoder states alone, computed once a sentence."""

    @abstractmethod
    def forward(self, q_BD: Float[Tensor, "B D"], keys_BSE: Float[Tensor, "B S E"]) -> Float[Tensor, "B S"]:
        """Return the score of every place of the source."""


class Additive(AlignmentScore):
    """``e_j = v · tanh(W q + U m_j)`` (Bahdanau et al. 2015, appendix A.1.2).

    Luong's "concat", ``v · tanh(W [q; m_j])``, is the same function: the product falls into two.
    """

    @spec
    class Spec(ModuleSpec):
        """The width of the encoder states and of the hidden layer."""

        encoder_width: int
        hidden: int

        def build(self, width: int) -> "Additive":
            """Return the scoring for states of ``width``."""
            return Additive(self, width)

    def __init__(self, spec: Spec, width: int) -> None:
        super().__init__()
        self.q = nn.Linear(width, spec.hidden, bias=False)
        self.k = nn.Linear(spec.encoder_width, spec.hidden, bias=False)
        self.v = nn.Linear(spec.hidden, 1, bias=False)

    def keys(self, encoder_states_BSM: Float[Tensor, "B S M"]) -> Float[Tensor, "B S E"]:
        """Return ``U m_j``."""
        return self.k(encoder_states_BSM)

    def forward(self, q_BD: Float[Tensor, "B D"], keys_BSE: Float[Tensor, "B S E"]) -> Float[Tensor, "B S"]:
        """Return the score of every place of the source."""
        return self.v(torch.tanh(self.q(q_BD)[:, None] + keys_BSE))[..., 0]


class Dot(AlignmentScore):
    """``e_j = q · m_j`` (Luong et al. 2015, equation 8): the state and those of the encoder are of one width."""

    @spec
    class Spec(ModuleSpec):
        """It has no settings."""

        def build(self, width: int) -> "Dot":
            """Return the scoring; it has no parameters."""
            return Dot()

    def keys(self, encoder_states_BSM: Float[Tensor, "B S M"]) -> Float[Tensor, "B S E"]:
        """Return the encoder states themselves."""
        return encoder_states_BSM

    def forward(self, q_BD: Float[Tensor, "B D"], keys_BSE: Float[Tensor, "B S E"]) -> Float[Tensor, "B S"]:
        """Return the score of every place of the source."""
        return torch.einsum("bd,bsd->bs", q_BD, keys_BSE)


class General(AlignmentScore):
    """``e_j = q · W m_j`` (Luong et al. 2015, equation 8)."""

    @spec
    class Spec(ModuleSpec):
        """The width of the encoder states."""

        encoder_width: int

        def build(self, width: int) -> "General":
            """Return the scoring for states of ``width``."""
            return General(self, width)

    def __init__(self, spec: Spec, width: int) -> None:
        super().__init__()
        self.k = nn.Linear(spec.encoder_width, width, bias=False)

    def keys(self, encoder_states_BSM: Float[Tensor, "B S M"]) -> Float[Tensor, "B S E"]:
        """Return ``W m_j``."""
        return self.k(encoder_states_BSM)

    def forward(self, q_BD: Float[Tensor, "B D"], keys_BSE: Float[Tensor, "B S E"]) -> Float[Tensor, "B S"]:
        """Return the score of every place of the source."""
        return torch.einsum("bd,bsd->bs", q_BD, keys_BSE)
