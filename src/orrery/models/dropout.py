"""Dropout as one number over a whole architecture."""

from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from typing import Any, TypeVar

from orrery.models.encoder_decoder import EncoderDecoder
from orrery.models.recurrent_encoder import RecurrentEncoder
from orrery.nn.attention.multihead import ScoreSettings
from orrery.nn.residual import Dropout, Residual
from orrery.nn.spec import ModuleSpec, Value, traverse

Spec = TypeVar("Spec", bound=ModuleSpec)


def without_dropout(tree: Any) -> Any:
    """Return a tree of specs with every dropout at zero: what the numbers of a trained model depend on."""

    def without(node: Value) -> Value:
        if isinstance(node, Dropout.Spec):
            return Dropout.Spec(rate=0.0)
        return replace(node, dropout=0.0) if isinstance(node, Residual.Spec | ScoreSettings) else node

    return _mapped(tree, without)


def with_dropout(spec: Spec, rate: float) -> Spec:
    """Return the architecture with dropout ``rate`` on what each residual adds, and nowhere else.

    Attention patterns and embeddings lose theirs: on small data the residual's does the work, and a kernel without
    dropout on the pattern is several times faster on a processor. A recurrent encoder-decoder has one residual, its
    decoder, so there the embedded words of both sides have the dropout as well.
    """

    def with_rate(node: Value) -> Value:
        if isinstance(node, RecurrentEncoder.Spec):
            return replace(node, enter=words)
        if isinstance(node, EncoderDecoder.Spec) and isinstance(node.reader, RecurrentEncoder.Spec):
            return replace(node, decoder=replace(node.decoder, start=words))
        return replace(node, dropout=rate) if isinstance(node, Residual.Spec) else node

    words = Dropout.Spec(rate=rate)
    changed: Spec = _mapped(without_dropout(spec), with_rate)
    return changed


def pattern_dropout(spec: ModuleSpec) -> float:
    """Return the largest dropout that an attention of the architecture applies to its pattern."""
    return max((node.dropout for _, node in traverse(spec) if isinstance(node, ScoreSettings)), default=0.0)


def _mapped(tree: Any, change: Callable[[Value], Value]) -> Any:
    """Return a tree of specs with every node changed, the leaves first."""
    if isinstance(tree, Value):
        return change(replace(tree, **{f.name: _mapped(getattr(tree, f.name), change) for f in fields(tree)}))
    if isinstance(tree, Mapping):
        return {key: _mapped(item, change) for key, item in tree.items()}
    return tuple(_mapped(item, change) for item in tree) if isinstance(tree, tuple) else tree
