"""The generator of replaced-token detection: a narrower encoder, derived from the discriminator."""

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from orrery.models.encoder import Encoder


def generator_spec(spec: "Encoder.Spec", fraction: float) -> "Encoder.Spec":
    """Return an encoder of ``fraction`` of the width, the heads and the hidden channels, with a masked head.

    Depth, positions, vocabulary, dropout, the channels of a head and the width of the embeddings stay: what is narrower
    than the embeddings is reached by a projection behind their norm (Clark et al. 2020, section 3.2).

    Raises:
        UsageError: the heads do not divide so.
    """
    from orrery.nn.elementwise import Activation, Projection
    from orrery.nn.heads import LanguageModelHead
    from orrery.nn.norms import LayerNorm
    from orrery.nn.residual import Chain

    entry, width = spec.stack.entry_width(spec.width), max(1, round(spec.width * fraction))
    stack = _narrowed(spec.stack, spec.width, width, fraction)
    if entry == spec.width:
        start = Chain.Spec(parts=(spec.stack.start, Projection.Spec(width=width)))
        stack = replace(stack, start=start)
    before = (Projection.Spec(width=entry), Activation.Spec(activation="gelu"), LayerNorm.Spec(eps=1e-12))
    head = LanguageModelHead.Spec(
        vocabulary=spec.embed.vocabulary,  # type: ignore[union-attr]
        tied=True,
        bias=True,
        transform=Chain.Spec(parts=before),
    )
    return replace(spec, width=width, stack=replace(stack, entry=entry), heads={"masked": head})


def _narrowed(tree: Any, old: int, width: int, fraction: float) -> Any:
    """Return a tree of specs whose attention, feed-forward and projections to the old width are narrower."""
    from orrery.errors import UsageError
    from orrery.nn.attention.multihead import MultiHeadAttention
    from orrery.nn.elementwise import Projection
    from orrery.nn.feedforward.mlp import MLP
    from orrery.nn.spec import Value

    if isinstance(tree, Mapping):
        return {key: _narrowed(item, old, width, fraction) for key, item in tree.items()}
    if isinstance(tree, tuple):
        return tuple(_narrowed(item, old, width, fraction) for item in tree)
    if not isinstance(tree, Value):
        return tree
    inner = {field.name: _narrowed(getattr(tree, field.name), old, width, fraction) for field in fields(tree)}
    narrowed: Any = replace(tree, **inner)
    if isinstance(narrowed, MultiHeadAttention.Spec):
        heads = round(narrowed.heads * fraction)
        if heads < 1 or heads * narrowed.head_width != width:
            message = f"a generator of {fraction:g} of the width {old} has {width} channels, which is no whole number "
            message += f"of heads of {narrowed.head_width}"
            raise UsageError(
                message, f"objective.generator: n / {narrowed.heads} for a whole n, such as {1 / narrowed.heads:g}"
            )
        return replace(narrowed, heads=heads, kv_heads=heads)
    if isinstance(narrowed, MLP.Spec):
        return replace(narrowed, hidden=max(1, round(narrowed.hidden * fraction)))
    return (
        replace(narrowed, width=width) if isinstance(narrowed, Projection.Spec) and narrowed.width == old else narrowed
    )
