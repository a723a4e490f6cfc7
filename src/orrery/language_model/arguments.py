"""What a user hands to a model, checked: rows of ids, one number for each token, strings that end an answer."""

from collections.abc import Sequence

import torch
from torch import Tensor

from orrery.errors import UsageError
from orrery.generation.generate import too_long
from orrery.nn.embeddings import TokenTypeEmbedding, check_ids, check_token_types
from orrery.nn.spec import ModuleSpec

Ids = Tensor | Sequence[Sequence[int]]


def rows_of(name: str, ids: Ids, vocabulary: int, context: int) -> Tensor:
    """Return rows of ids as a tensor: of the vocabulary that they belong to, and no longer than the context.

    Raises:
        UsageError: there is no token, or there are too many.
        DataError: an id outside the vocabulary.
    """
    ids_BL = torch.as_tensor(ids, dtype=torch.long)
    if ids_BL.dim() != 2 or ids_BL.numel() == 0:
        raise UsageError(f"{name} of shape {list(ids_BL.shape)}", "give rows of at least one token: [B, L]")
    check_ids(ids_BL, vocabulary)
    if ids_BL.shape[1] > context:
        raise too_long(ids_BL.shape[1], context)
    return ids_BL


def one_each(name: str, given: Ids, ids_BL: Tensor) -> Tensor:
    """Return what is given for each token as a tensor.

    Raises:
        UsageError: it has another shape than the ids.
    """
    each = torch.as_tensor(given)
    if each.shape != ids_BL.shape:
        raise UsageError(
            f"{name} of shape {list(each.shape)} for input_ids of {list(ids_BL.shape)}",
            "give one number for each token",
        )
    return each


def strings_of(stop: str | Sequence[str]) -> list[str]:
    """Return the strings that end an answer. Raises `UsageError` for anything else."""
    strings = [stop] if isinstance(stop, str) else stop
    if not isinstance(strings, list | tuple) or not all(isinstance(string, str) for string in strings):
        raise UsageError(f"stop={stop!r} is neither a text nor a list of texts", 'give stop="\\n\\n", for example')
    return list(strings)


def token_types_of(token_type_ids: Ids, ids_BL: Tensor, embed: ModuleSpec | None) -> Tensor:
    """Return the token type of each token.

    Raises:
        DataError: one that the model does not have.
        UsageError: the embedding has no token types, or they have another shape than the ids.
    """
    if not isinstance(embed, TokenTypeEmbedding.Spec):
        raise UsageError("this model has no token types", "leave token_type_ids away")
    token_types_BL = one_each("token_type_ids", token_type_ids, ids_BL).long()
    check_token_types(token_types_BL, embed.token_types)
    return token_types_BL
