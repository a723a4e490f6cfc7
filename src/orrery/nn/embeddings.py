"""Embeddings: from token numbers to vectors."""

from jaxtyping import Float, Int
from torch import Tensor, nn

from orrery.errors import DataError
from orrery.nn.spec import ModuleSpec, spec


class TokenEmbedding(nn.Module):
    """``E[id]``: row ``id`` of the table, bit for bit ``onehot(id) @ E``. Shapes: ``[B, L]`` to ``[B, L, D]``."""

    @spec
    class Spec(ModuleSpec):
        """The number of tokens."""

        vocabulary: int

        def build(self, width: int) -> "TokenEmbedding":
            """Return a table of normal numbers."""
            return TokenEmbedding(self.vocabulary, width)

    def __init__(self, vocabulary: int, width: int) -> None:
        super().__init__()
        self.token = nn.Embedding(vocabulary, width)

    def forward(self, ids_BL: Int[Tensor, "B L"]) -> Float[Tensor, "B L D"]:
        """Look the rows up."""
        return self.token(ids_BL)


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
