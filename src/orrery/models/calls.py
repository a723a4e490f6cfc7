"""What the calls of the assemblies share: which tokens of padded rows are real, and what a target begins with."""

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from orrery.errors import UsageError


def real_of(tokens_BN: Int[Tensor, "B N"], lengths_B: Int[Tensor, "B"] | None) -> Bool[Tensor, "B N"] | None:
    """Return which tokens of right-padded rows are real."""
    if lengths_B is None:
        return None
    return torch.arange(tokens_BN.shape[1], device=tokens_BN.device) < lengths_B[:, None]


def check_start(start: int, vocabulary: int) -> None:
    """Refuse a start token outside the vocabulary of the targets, which configurations may leave at a default.

    Raises:
        UsageError: it is.
    """
    if not 0 <= start < vocabulary:
        raise UsageError(
            f"targets begin with token {start}, but the model writes {vocabulary} tokens",
            "set decoder_start_token_id in the configuration",
        )
