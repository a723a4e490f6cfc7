"""Linear systems whose numbers do not depend on the token: many at once, each with one input and one output.

``h_t = A h_{t-1} + B u_t`` and ``y_t = C h_t`` is a step; over a row it is a convolution with the kernel
``K_t = C A^t B``, beside what the state before the row still says. A state has E real numbers; where a system is
complex, they are the real and imaginary parts of half as many, whose conjugates are implied.
"""

from abc import ABC, abstractmethod

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor

PIECE = 64
"""Tokens of a piece: at each end of it the state is known."""
SHORT = 1024
"""Tokens of a row that is convolved as a whole where nobody asks for states; longer ones would need much memory."""


class LinearSystem(ABC):
    """F systems, discretised: what a step does, and what many steps do at once."""

    @abstractmethod
    def advance(self, h_NFE: Float[Tensor, "N F E"], u_NF: Float[Tensor, "N F"]) -> Float[Tensor, "N F E"]:
        """Return ``A h + B u``."""

    @abstractmethod
    def read(self, h_NFE: Float[Tensor, "N F E"]) -> Float[Tensor, "N F"]:
        """Return ``C h``."""

    @abstractmethod
    def kernel(self, length: int) -> Float[Tensor, "F L"]:
        """Return ``C A^t B`` for t = 0 ... length - 1."""

    @abstractmethod
    def marks(self, length: int) -> Float[Tensor, "F E L"]:
        """Return ``A^t B``: what an input has left in the state after t more tokens."""

    @abstractmethod
    def echoes(self, length: int) -> Float[Tensor, "F L E"]:
        """Return ``C A^(t+1)``: what a state still says at the tokens behind it."""

    @abstractmethod
    def carry(
        self, h_NFE: Float[Tensor, "N F E"], written_NPFE: Float[Tensor, "N P F E"], size: int
    ) -> Float[Tensor, "N P+1 F E"]:
        """Return the state before each of P pieces of ``size`` tokens, and that after the last.

        ``written`` is what the inputs of a piece leave in the state at its end.
        """


def in_pieces(
    system: LinearSystem, u_NTF: Float[Tensor, "N T F"], real_NT: Bool[Tensor, "N T"] | None, h_NFE: Tensor
) -> tuple[Float[Tensor, "N T F"], Float[Tensor, "N F E"]]:
    """Return outputs and states, convolving inside pieces alone; padding on the right leaves the state alone."""
    tokens = u_NTF.shape[1]
    u_NPTF, states = _states(system, u_NTF, h_NFE)
    y_NPTF = convolved(u_NPTF, system.kernel(u_NPTF.shape[2])) + _echoed(system, states, u_NPTF)
    return y_NPTF.flatten(1, 2)[:, :tokens], _after(system, states, u_NTF, real_NT, u_NPTF.shape[2])


def in_rows(
    system: LinearSystem, u_NTF: Float[Tensor, "N T F"], real_NT: Bool[Tensor, "N T"] | None, h_NFE: Tensor
) -> tuple[Float[Tensor, "N T F"], Float[Tensor, "N F E"]]:
    """Return outputs and states, convolving whole rows with the kernel of their length (Gu et al. 2022, section 2.4).

    Pieces are there for the states alone: what the first still says along the row, and which one is the last.
    """
    tokens = u_NTF.shape[1]
    u_NPTF, states = _states(system, u_NTF, h_NFE)
    free = system.carry(h_NFE, torch.zeros_like(states[:, 1:]), u_NPTF.shape[2])
    y_NTF = _echoed(system, free, u_NPTF).flatten(1, 2)[:, :tokens]
    y_NTF = y_NTF + convolved(u_NTF[:, None], system.kernel(tokens))[:, 0]
    return y_NTF, _after(system, states, u_NTF, real_NT, u_NPTF.shape[2])


def from_nothing(
    system: LinearSystem, u_NTF: Float[Tensor, "N T F"], real_NT: Bool[Tensor, "N T"] | None, h_NFE: Tensor
) -> tuple[Float[Tensor, "N T F"], Float[Tensor, "N F E"]]:
    """Return the outputs behind an empty state, which comes back as it is: only the kernel of the row is needed."""
    if u_NTF.shape[1] > SHORT:
        return in_pieces(system, u_NTF, real_NT, h_NFE)
    return convolved(u_NTF[:, None], system.kernel(u_NTF.shape[1]))[:, 0], h_NFE


def convolved(u_NPTF: Float[Tensor, "N P T F"], kernel_FT: Float[Tensor, "F T"]) -> Float[Tensor, "N P T F"]:
    """Return ``y_t = sum_s K_s u_{t-s}`` in each piece, by the product of Fourier transforms."""
    size = u_NPTF.shape[2]
    product = torch.fft.rfft(u_NPTF.transpose(2, 3), 2 * size) * torch.fft.rfft(kernel_FT, 2 * size)
    return torch.fft.irfft(product, 2 * size)[..., :size].transpose(2, 3)


def _states(system: LinearSystem, u_NTF: Tensor, h_NFE: Tensor) -> tuple[Tensor, Tensor]:
    """Return the inputs in pieces, the last filled up with zeros, and the states at all their ends."""
    size = min(PIECE, u_NTF.shape[1])
    u_NPTF = F.pad(u_NTF, (0, 0, 0, -u_NTF.shape[1] % size)).unflatten(1, (-1, size))
    written_NPFE = torch.einsum("nptf,fet->npfe", u_NPTF, system.marks(size).flip(2))
    return u_NPTF, system.carry(h_NFE, written_NPFE, size)


def _echoed(system: LinearSystem, states_NPFE: Tensor, u_NPTF: Tensor) -> Float[Tensor, "N P T F"]:
    """Return what the state before each piece says in it."""
    return torch.einsum("npfe,fte->nptf", states_NPFE[:, :-1], system.echoes(u_NPTF.shape[2]))


def _after(
    system: LinearSystem, states_NPFE: Tensor, u_NTF: Tensor, real_NT: Tensor | None, size: int
) -> Float[Tensor, "N F E"]:
    """Return the states after the last real tokens: whole pieces, and the rest of each row step by step."""
    rows, tokens = u_NTF.shape[:2]
    if real_NT is None:
        h_NFE = states_NPFE[:, tokens // size]
        for at in range(tokens - tokens % size, tokens):
            h_NFE = system.advance(h_NFE, u_NTF[:, at])
        return h_NFE
    length_N, row_N = real_NT.sum(1), torch.arange(rows, device=u_NTF.device)
    whole_N = length_N // size
    h_NFE = states_NPFE[row_N, whole_N]
    for at in range(size - 1):
        place_N = whole_N * size + at
        after = system.advance(h_NFE, u_NTF[row_N, place_N.clamp(max=tokens - 1)])
        h_NFE = torch.where((place_N < length_N)[:, None, None], after, h_NFE)
    return h_NFE
