"""Embeddings: from token numbers to vectors."""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from orrery.errors import DataError, UsageError
from orrery.nn.inputs import Tokens
from orrery.nn.spec import ModuleSpec, spec


class TokenEmbedding(nn.Module):
    """``E[id]``: row ``id`` of the table, bit for bit ``onehot(id) @ E``. Shapes: ``[B, L]`` to ``[B, L, D]``."""

    @spec
    class Spec(ModuleSpec):
        """The number of tokens."""

        vocabulary: int

        @property
        def input(self) -> Tokens:
            """What it reads."""
            return Tokens(self.vocabulary)

        def build(self, width: int) -> "TokenEmbedding":
            """Return a table of normal numbers."""
            return TokenEmbedding(self.vocabulary, width)

    def __init__(self, vocabulary: int, width: int) -> None:
        super().__init__()
        self.token = nn.Embedding(vocabulary, width)

    def forward(
        self, ids_BL: Int[Tensor, "B L"], segments_BL: Int[Tensor, "B L"] | None = None
    ) -> Float[Tensor, "B L D"]:
        """Look the rows up.

        Raises:
            UsageError: segments, of which this embedding has none.
        """
        if segments_BL is not None:
            raise UsageError("this model has no segments", "leave segments (token_type_ids) away")
        return self.token(ids_BL)


class SegmentedEmbedding(nn.Module):
    """``E[id] + S[segment]``: which sentence of a pair a token belongs to (Devlin et al. 2019, section 3).

    Shapes: ids and segments ``[B, L]`` to ``[B, L, D]``; without segments all tokens are in the first.
    """

    @spec
    class Spec(ModuleSpec):
        """The numbers of tokens and of segments."""

        vocabulary: int
        segments: int

        @property
        def input(self) -> Tokens:
            """What it reads."""
            return Tokens(self.vocabulary)

        def build(self, width: int) -> "SegmentedEmbedding":
            """Return the two tables."""
            return SegmentedEmbedding(self, width)

    def __init__(self, spec: Spec, width: int) -> None:
        super().__init__()
        self.token = nn.Embedding(spec.vocabulary, width)
        self.segment = nn.Embedding(spec.segments, width)

    def forward(
        self, ids_BL: Int[Tensor, "B L"], segments_BL: Int[Tensor, "B L"] | None = None
    ) -> Float[Tensor, "B L D"]:
        """Add the segment's vector to the token's."""
        return self.token(ids_BL) + self.segment(torch.zeros_like(ids_BL) if segments_BL is None else segments_BL)


def check_ids(ids: Int[Tensor, "..."], vocabulary: int) -> None:
    """Refuse token numbers outside the vocabulary before a kernel meets them.

    Raises:
        DataError: names the first bad number and the vocabulary.
    """
    bad = ids[(ids < 0) | (ids >= vocabulary)]
    if bad.numel():
        raise DataError(
            f"token id {int(bad.flatten()[0])} is outside the vocabulary of {vocabulary}",
            "was the text encoded with another tokenizer?",
        )


def check_segments(segments: Int[Tensor, "..."], count: int) -> None:
    """Refuse numbers of segments that a model does not have.

    Raises:
        DataError: names the first bad number and the count.
    """
    bad = segments[(segments < 0) | (segments >= count)]
    if bad.numel():
        raise DataError(
            f"segment {int(bad.flatten()[0])}, but the model has {count}, counted from 0",
            "give token_type_ids as its tokenizer writes them: 0 for the first text, 1 for the second",
        )
