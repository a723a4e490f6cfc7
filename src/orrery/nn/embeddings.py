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
        self, ids_BL: Int[Tensor, "B L"], token_types_BL: Int[Tensor, "B L"] | None = None
    ) -> Float[Tensor, "B L D"]:
        """Look the rows up.

        Raises:
            UsageError: token types, of which this embedding has none.
        """
        if token_types_BL is not None:
            raise UsageError("this model has no token types", "leave token_types (token_type_ids) away")
        return self.token(ids_BL)


class TokenTypeEmbedding(nn.Module):
    """``E[id] + S[token type]``: which sentence of a pair a token belongs to (Devlin et al. 2019, section 3).

    Shapes: ids and token types ``[B, L]`` to ``[B, L, D]``; without token types all tokens are in the first.
    """

    @spec
    class Spec(ModuleSpec):
        """The numbers of tokens and of token types."""

        vocabulary: int
        token_types: int

        @property
        def input(self) -> Tokens:
            """What it reads."""
            return Tokens(self.vocabulary)

        def build(self, width: int) -> "TokenTypeEmbedding":
            """Return the two tables."""
            return TokenTypeEmbedding(self, width)

    def __init__(self, spec: Spec, width: int) -> None:
        super().__init__()
        self.token = nn.Embedding(spec.vocabulary, width)
        self.segment = nn.Embedding(spec.token_types, width)

    def forward(
        self, ids_BL: Int[Tensor, "B L"], token_types_BL: Int[Tensor, "B L"] | None = None
    ) -> Float[Tensor, "B L D"]:
        """Add the token type's vector to the token's."""
        return self.token(ids_BL) + self.segment(torch.zeros_like(ids_BL) if token_types_BL is None else token_types_BL)


def check_ids(ids: Int[Tensor, "..."], vocabulary: int) -> None:
    """Refuse token numbers outside the vocabulary before a kernel meets them.

    Raises:
        DataError: names the first bad number and the vocabulary.
    """
    if not _all_below(vocabulary, ids):
        bad = ids[(ids < 0) | (ids >= vocabulary)]
        raise DataError(
            f"token id {int(bad.flatten()[0])} is outside the vocabulary of {vocabulary}",
            "was the text encoded with another tokenizer?",
        )


def _all_below(count: int, numbers: Int[Tensor, "..."]) -> bool:
    """Say whether all numbers are among ``count``; one reading, since each token that is written is asked for."""
    if not numbers.numel():
        return True
    least, greatest = numbers.aminmax()
    return int(least) >= 0 and int(greatest) < count


def check_token_types(token_types: Int[Tensor, "..."], count: int) -> None:
    """Refuse numbers of token types that a model does not have.

    Raises:
        DataError: names the first bad number and the count.
    """
    if not _all_below(count, token_types):
        bad = token_types[(token_types < 0) | (token_types >= count)]
        raise DataError(
            f"token type {int(bad.flatten()[0])}, but the model has {count}, counted from 0",
            "give token_type_ids as its tokenizer writes them: 0 for the first text, 1 for the second",
        )
