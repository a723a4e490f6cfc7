"""Dropout as one number over a whole architecture."""

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from orrery.models.decoder import Decoder
from orrery.nn.attention.multihead import Scoring
from orrery.nn.residual import Dropout
from orrery.nn.spec import Value, traverse


def without_dropout(tree: Any) -> Any:
    """Return a tree of specs with every dropout at zero: what the numbers of a trained model depend on."""
    if isinstance(tree, Dropout.Spec):
        return Dropout.Spec(rate=0.0)
    if isinstance(tree, Value):
        parts = {f.name: getattr(tree, f.name) for f in fields(tree)}
        return replace(tree, **{k: 0.0 if k == "dropout" else without_dropout(v) for k, v in parts.items()})
    if isinstance(tree, Mapping):
        return {key: without_dropout(item) for key, item in tree.items()}
    return tuple(map(without_dropout, tree)) if isinstance(tree, tuple) else tree


def with_dropout(spec: Decoder.Spec, rate: float) -> Decoder.Spec:
    """Return the architecture with dropout ``rate`` on what each residual adds, and nowhere else.

    Attention patterns and embeddings lose theirs: on small data the residual's does the work, and a kernel without
    dropout on the pattern is several times faster on a processor.
    """
    plain = without_dropout(spec)
    blocks = tuple(
        replace(block, residuals={name: replace(part, dropout=rate) for name, part in block.residuals.items()})
        for block in plain.stack.blocks
    )
    return replace(plain, stack=replace(plain.stack, blocks=blocks))


def pattern_dropout(spec: Decoder.Spec) -> float:
    """Return the largest dropout that an attention of the architecture applies to its pattern."""
    return max((node.dropout for _, node in traverse(spec) if isinstance(node, Scoring)), default=0.0)
