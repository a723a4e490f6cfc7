"""The gated delta rule: before a value is written, what the state already says to its key is taken away.

``S_t = (I - b_t k_t k_t^T) exp(g_t) S_{t-1} + b_t k_t v_t^T`` and ``y_t = q_t S_t``, in each head by itself, with a log
decay ``g_t <= 0`` and a share ``b_t`` between 0 and 1 (Yang et al. 2025; with ``g = 0`` the delta rule, Schlag et al.
2021). With keys of length one and ``b = 1`` the state afterwards says exactly ``v_t`` to ``k_t``.

What is written, ``u_t = b_t (v_t - k_t exp(g_t) S_{t-1})``, follows from what was written before by a triangular system
(the WY form): ``(I + diag(b) (F * K K^T)) U = diag(b) (V - exp(G) K S_0)``, where F holds what is left of one token at
a later one and G the sums of decays. So a piece is solved at once, and then it is a sum of the outer products
``k_t u_t^T``. Padding has ``k = 0`` and ``g = 0``. Formats are as in ``nn/linear/matrix_state.py``.
"""

from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from orrery.nn.linear import matrix_state
from orrery.nn.linear.matrix_state import full_precision
from orrery.nn.linear.update import Update


def step(
    q_BHC: Float[Tensor, "B H C"],
    k_BHC: Float[Tensor, "B H C"],
    v_BHE: Float[Tensor, "B H E"],
    decay_BH: Float[Tensor, "B H"],
    share_BH: Float[Tensor, "B H"],
    state_BHCE: Float[Tensor, "B H C E"],
) -> tuple[Float[Tensor, "B H E"], Float[Tensor, "B H C E"]]:
    """Fade, correct the state towards one value a row, and read: the definition."""
    q, k, v, decay, share = (x.to(state_BHCE.dtype) for x in (q_BHC, k_BHC, v_BHE, decay_BH, share_BH))
    with full_precision(state_BHCE):
        state_BHCE = decay.exp()[..., None, None] * state_BHCE
        said_BHE = (k[..., None, :] @ state_BHCE)[..., 0, :]
        state_BHCE = state_BHCE + (share[..., None] * k)[..., :, None] * (v - said_BHE)[..., None, :]
        return (q[..., None, :] @ state_BHCE)[..., 0, :].to(v_BHE.dtype), state_BHCE


def chunked(
    q_BLHC: Float[Tensor, "B L H C"],
    k_BLHC: Float[Tensor, "B L H C"],
    v_BLHE: Float[Tensor, "B L H E"],
    decay_BLH: Float[Tensor, "B L H"],
    share_BLH: Float[Tensor, "B L H"],
    state_BHCE: Float[Tensor, "B H C E"],
    size: int,
) -> tuple[Float[Tensor, "B L H E"], Float[Tensor, "B H C E"]]:
    """Solve pieces of ``size`` tokens, all at once, and carry the state from each piece to the next.

    Raises:
        UsageError: the size is not a power of two.
    """
    tokens, size = q_BLHC.shape[1], matrix_state.piece_size(q_BLHC.shape[1], size)
    with full_precision(state_BHCE):
        given = (q_BLHC, k_BLHC, v_BLHE, decay_BLH[..., None], share_BLH[..., None])
        q, k, v, decay, share = (matrix_state.pieces(x.to(state_BHCE.dtype), size) for x in given)
        total_BHNT1 = matrix_state.running(decay)
        pattern_TS, a_T1, b_T1 = matrix_state.faded(total_BHNT1, q.dtype)
        left_T1, last_11 = total_BHNT1.to(q.dtype).exp(), total_BHNT1[..., -1:, :]
        kept_BHNSC = k * b_T1
        system_BHNTS = (share * k * a_T1) @ kept_BHNSC.mT * pattern_TS
        own, old = _solved(system_BHNTS, torch.cat([v, left_T1 * k], -1) * share).split([v.shape[-1], k.shape[-1]], -1)
        at_end_BHNTC = k * (last_11 - total_BHNT1).to(k.dtype).exp()
        befores, corrections, after = _carry(own, old, at_end_BHNTC, last_11.to(k.dtype).exp(), state_BHCE)
        inside_BHNTE = ((q * a_T1) @ kept_BHNSC.mT * pattern_TS) @ corrections
        y_BHNTE = inside_BHNTE + (left_T1 * q) @ befores
    return matrix_state.joined(y_BHNTE, tokens).to(v_BLHE.dtype), after


def _solved(system_TS: Tensor, right_TE: Tensor) -> Tensor:
    """Solve ``(I + L) U = R`` for L strictly below the diagonal: what stands on it or above is not read."""
    return torch.linalg.solve_triangular(system_TS, right_TE, upper=False, unitriangular=True)


def _carry(
    own_BHNTE: Tensor, old_BHNTC: Tensor, keys_BHNTC: Tensor, left_BHN11: Tensor, state_BHCE: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the state before each piece, what is written in it, and the state after the last."""
    befores, corrections = [], []
    for own, old, keys, left in zip(
        *(x.unbind(2) for x in (own_BHNTE, old_BHNTC, keys_BHNTC, left_BHN11)), strict=True
    ):
        befores.append(state_BHCE)
        corrections.append(own - old @ state_BHCE)
        state_BHCE = left * state_BHCE + keys.mT @ corrections[-1]
    return torch.stack(befores, 2), torch.stack(corrections, 2), state_BHCE


@dataclass(frozen=True)
class Delta(Update):
    """The rule for tokens: q and k ``[B, L, H, C]``, v ``[B, L, H, E]``, log decay and share ``[B, L, H]``."""

    q: Tensor
    k: Tensor
    v: Tensor
    decay: Tensor
    share: Tensor

    def only(self, real_BL: Bool[Tensor, "B L"]) -> "Delta":
        """Let the other tokens write nothing, and nothing fade meanwhile."""
        return replace(self, k=self.k * real_BL[..., None, None], decay=self.decay * real_BL[..., None])

    def step(self, state_BHCE: Float[Tensor, "B H C E"]) -> tuple[Float[Tensor, "B L H E"], Float[Tensor, "B H C E"]]:
        """Fade, correct, read."""
        q, k, v, decay, share = (x[:, 0] for x in self._given)
        y_BHE, after = step(q, k, v, decay, share, state_BHCE)
        return y_BHE[:, None], after

    def parallel(
        self, state_BHCE: Float[Tensor, "B H C E"]
    ) -> tuple[Float[Tensor, "B L H E"], Float[Tensor, "B H C E"]]:
        """Solve one system of all tokens: a piece that is as long as the row."""
        tokens = self.q.shape[1]
        return chunked(*self._given, state_BHCE, size=1 << max(tokens - 1, 0).bit_length())

    def chunked(
        self, state_BHCE: Float[Tensor, "B H C E"], size: int
    ) -> tuple[Float[Tensor, "B L H E"], Float[Tensor, "B H C E"]]:
        """Solve pieces of ``size`` tokens."""
        return chunked(*self._given, state_BHCE, size)

    @property
    def _given(self) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
        return self.q, self.k, self.v, self.decay, self.share
