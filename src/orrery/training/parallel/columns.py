"""Which tokens of a row each of several processes computes: a piece near its beginning and one near its end."""

import torch
from torch import Tensor

from orrery.models.inputs import Batch
from orrery.models.places import count_positions
from orrery.nn.cache.contract import UNCACHED
from orrery.nn.cross_entropy import IGNORED

BEYOND = {"targets": IGNORED, "documents": -1}
"""What stands in a field behind the end of a row; in the others it is 0."""


def columns_of(length: int, context: int, number: int) -> Tensor:
    """Return the places of a row that a process computes: of ``2 context`` equal pieces one, and its mirror image.

    A token sees those before it, so that pieces near the end take more time: each process has as much to do (Dubey et
    al. 2024, https://arxiv.org/abs/2407.21783, section 3.3.2). Where the pieces do not divide the row, the last places
    lie behind its end.
    """
    size = -(-length // (2 * context))
    pieces = (number, 2 * context - 1 - number)
    return torch.cat([torch.arange(piece * size, (piece + 1) * size) for piece in pieces])


def own_columns(batch: Batch, context: int, number: int) -> Batch:
    """Return what a process computes of the rows of a batch of texts, with the position of each token in its row.

    What has one number a token is cut; a prefix of a row becomes one of each token.
    """
    ids_BL = batch["ids"]
    rows, length = ids_BL.shape
    own = columns_of(length, context, number)
    beyond = own >= length
    told = {"positions": count_positions(UNCACHED, ids_BL, _real(batch), batch.get("documents")), **batch}
    told["positions"] = told["positions"].expand(rows, length)
    if "prefix" in told and told["prefix"].dim() == 1:
        told["prefix"] = told["prefix"][:, None].expand(rows, length)
    if beyond.any() and "documents" not in told:
        told.setdefault("real", torch.ones(rows, length, dtype=torch.bool))
    here = own.clamp(max=length - 1)
    return {
        name: field[:, here].masked_fill(beyond, BEYOND.get(name, 0)) if field.shape == ids_BL.shape else field
        for name, field in told.items()
    }


def _real(batch: Batch) -> Tensor | None:
    """Return which tokens are real, as fields of a batch say."""
    real, documents = batch.get("real"), batch.get("documents")
    if documents is None:
        return real
    return documents >= 0 if real is None else real & (documents >= 0)
