"""The table a model reads its tokens from, as word vectors: filled from them at the start, looked at like them."""

import torch
from torch import Tensor, nn

from orrery.errors import UsageError
from orrery.models.word2vec.vectors import Vectors
from orrery.text.tokenizer import Tokenizer

SPACES = ("\u0120", "\u2581")
"""How byte-level BPE and SentencePiece write the space before a word."""


def word_of(token: str) -> str:
    """Return the word that a token of the vocabulary spells, without the mark of the space before it."""
    return token[1:] if token[:1] in SPACES and len(token) > 1 else token


def embedding_table(model: nn.Module) -> Tensor:
    """Return the table ``[V, D]`` that a model reads tokens from.

    Raises:
        UsageError: it reads no tokens.
    """
    reader = getattr(model, "reader", model)
    table = getattr(getattr(reader, "embed", None), "token", None)
    if not isinstance(table, nn.Embedding):
        raise UsageError(f"{type(model).__name__} has no table of tokens", "take a model that reads text")
    return table.weight


@torch.no_grad()
def initialise_embeddings(model: nn.Module, tokenizer: Tokenizer, vectors: Vectors) -> int:
    """Copy the vector of each token that is a word into its row; return how many were.

    Called after the weights are drawn: rows without a vector stay as they are, and a tied head gets the same rows.

    Raises:
        UsageError: the widths differ, the table has fewer rows than the tokenizer ids, or no token is a word there.
    """
    table = embedding_table(model)
    rows, width = table.shape
    if width != vectors.matrix.shape[1]:
        raise UsageError(
            f"the embeddings are {width:,} wide, the word vectors {vectors.matrix.shape[1]:,}",
            "give the model the width of the vectors, or train vectors of the model's width",
        )
    if rows < tokenizer.size:
        message = f"the embeddings have {rows:,} rows, the tokenizer {tokenizer.size:,} ids"
        raise UsageError(message, "give the model at least the tokenizer's vocabulary")
    words = [word_of(tokenizer.token(id)) for id in range(tokenizer.size)]
    known = [(row, vectors.ids[word]) for row, word in enumerate(words) if word in vectors.ids]
    if not known:
        raise UsageError(
            f"none of the tokenizer's {tokenizer.size:,} tokens is among the {len(vectors.words):,} words with vectors",
            "use a tokenizer of whole words (kind: word), and the same case in both",
        )
    ids, numbers = (list(side) for side in zip(*known, strict=True))
    table[ids] = torch.from_numpy(vectors.matrix[numbers]).to(table)
    return len(known)


def vectors_of(model: nn.Module, tokenizer: Tokenizer) -> Vectors:
    """Return a model's table as word vectors, each token in the vocabulary's own spelling.

    Raises:
        UsageError: it reads no tokens.
    """
    table = embedding_table(model).detach().float().cpu().numpy()
    tokens = [tokenizer.token(id) for id in range(min(tokenizer.size, len(table)))]
    named = [id for id, token in enumerate(tokens) if token]
    return Vectors([tokens[id] for id in named], table[named])
