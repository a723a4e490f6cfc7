"""What the assemblies share: which tokens of padded rows are real, and which kernel can compute them all."""

import torch
from jaxtyping import Bool, Int
from torch import Tensor, nn

from orrery.errors import UsageError
from orrery.nn.attention.kernels import Kernel, eager, sdpa
from orrery.nn.attention.multihead import MultiHeadAttention, NoSinks, ScoreSettings
from orrery.nn.heads import LanguageModelHead
from orrery.nn.spec import ModuleSpec, Value, traverse


def real_of(tokens_BN: Int[Tensor, "B N"], lengths_B: Int[Tensor, "B"] | None) -> Bool[Tensor, "B N"] | None:
    """Return which tokens of right-padded rows are real."""
    if lengths_B is None:
        return None
    return torch.arange(tokens_BN.shape[1], device=tokens_BN.device) < lengths_B[:, None]


def default_kernel(spec: Value) -> Kernel:
    """Return the fused kernel, or the definition where an attention caps its scores, which the fused one cannot."""
    return eager if caps_scores(spec) else sdpa


def caps_scores(spec: Value) -> bool:
    """Say whether an attention of this architecture caps its scores."""
    return any(isinstance(part, ScoreSettings) and part.cap is not None for _, part in traverse(spec))


def keeps_pattern(spec: Value) -> bool:
    """Say whether the kernel that keeps the pattern can compute it: no caps, sinks or learned biases."""
    sinks = any(isinstance(p, MultiHeadAttention.Spec) and p.sinks != NoSinks.Spec() for _, p in traverse(spec))
    biases = any(isinstance(part, ModuleSpec) and part.learns_bias for _, part in traverse(spec))
    return not (caps_scores(spec) or sinks or biases)


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


def tie(table: nn.Embedding, head: LanguageModelHead) -> None:
    """Let a head use the embedding table itself.

    Raises:
        UsageError: their shapes differ.
    """
    if table.weight.shape != head.vocabulary.weight.shape:
        raise UsageError(
            f"a tied head needs a table of {tuple(head.vocabulary.weight.shape)}, "
            f"the embeddings have {tuple(table.weight.shape)}",
            "untie the head (concatenated positions leave narrower embeddings)",
        )
    head.vocabulary.weight = table.weight
