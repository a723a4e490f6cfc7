"""Heads: from the final stream to an answer."""

from jaxtyping import Float
from torch import Tensor, nn

from orrery.nn.residual import Identity
from orrery.nn.spec import ModuleSpec, spec


class LanguageModelHead(nn.Module):
    """``logits = cap(U transform(x) + b)``: a score for every token of the vocabulary.

    Tied, ``U`` is the embedding table itself (Press and Wolf 2017): one storage, and the gradients of both uses add.
    Shapes: ``[B, L, D]`` to ``[B, L, V]``.
    """

    @spec
    class Spec(ModuleSpec):
        """``tied`` shares the embedding table; ``transform`` comes before the product, ``cap`` after it."""

        vocabulary: int
        tied: bool = True
        bias: bool = False
        transform: ModuleSpec = Identity.Spec()
        cap: ModuleSpec = Identity.Spec()

        def build(self, width: int) -> "LanguageModelHead":
            """Return the head; its owner ties the table."""
            return LanguageModelHead(self, width)

    def __init__(self, spec: Spec, width: int) -> None:
        super().__init__()
        self.transform, self.cap = spec.transform.build(width), spec.cap.build(width)
        self.vocabulary = nn.Linear(width, spec.vocabulary, bias=spec.bias)

    def forward(self, x_BLD: Float[Tensor, "*B D"]) -> Float[Tensor, "*B V"]:
        """Score the vocabulary."""
        return self.cap(self.vocabulary(self.transform(x_BLD)))
