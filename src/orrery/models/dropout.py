"""Dropout as one number over a whole architecture."""

from dataclasses import replace

from orrery.models.decoder import Decoder
from orrery.nn.attention.multihead import MultiHeadAttention, Scoring
from orrery.nn.residual import Dropout, Identity, Residual
from orrery.nn.spec import ModuleSpec


def with_dropout(spec: Decoder.Spec, rate: float) -> Decoder.Spec:
    """Return the architecture with dropout ``rate`` on what each residual adds, and nowhere else.

    Attention patterns and embeddings lose theirs: on small data the residual's does the work, and a kernel without
    dropout on the pattern is several times faster on a processor.
    """
    blocks = tuple(
        replace(block, residuals={name: _residual(part, rate) for name, part in block.residuals.items()})
        for block in spec.stack.blocks
    )
    start = Identity.Spec() if isinstance(spec.stack.start, Dropout.Spec) else spec.stack.start
    return replace(spec, stack=replace(spec.stack, blocks=blocks, start=start))


def pattern_dropout(spec: Decoder.Spec) -> float:
    """Return the largest dropout that an attention of the architecture applies to its pattern."""
    branches = (part.branch for block in spec.stack.blocks for part in block.residuals.values())
    return max((b.scoring.dropout for b in branches if isinstance(b, MultiHeadAttention.Spec)), default=0.0)


def _residual(part: Residual.Spec, rate: float) -> Residual.Spec:
    return replace(part, dropout=rate, branch=_quiet(part.branch))


def _quiet(branch: ModuleSpec) -> ModuleSpec:
    if isinstance(branch, MultiHeadAttention.Spec):
        return replace(branch, scoring=Scoring(scale=branch.scoring.scale))
    return branch
