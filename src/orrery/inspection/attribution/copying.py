"""Copying: whether what a head writes makes the tokens that it looks at more probable, read off its weights."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from orrery.errors import UsageError
from orrery.inspection.attribution.frozen import matrix_of
from orrery.inspection.attribution.sublayers import output_matrices, sublayers
from orrery.inspection.attribution.view import wide
from orrery.inspection.attribution.vocabulary import vocabulary_head
from orrery.models.model import Model
from orrery.models.word_embeddings import embedding_table
from orrery.nn.attention.multihead import MultiHeadAttention, NoGate
from orrery.nn.norms import LayerNorm, RMSNorm


def copying_scores(model: Model) -> tuple[list[str], Float[Tensor, "N H"]]:
    """Return the keys of the attentions over a model's own tokens, and how far each head copies, from 0 to 1.

    ``(1 + sum Re(l) / sum |l|) / 2`` over the eigenvalues ``l`` of ``U W_out_h W_v_h E^T``, which says how much looking
    at one token adds to the logit of another (Elhage et al. 2021): 1 if every token, or mixture of them, raises
    itself, 0 if it lowers itself, one half for a random head. The eigenvalues are those of a matrix as small as a
    head. Gains of the norms around a head count, their scales and what lies between the layers do not.

    Args:
        model: one that scores a vocabulary and reads the same from a table of its own width.

    Raises:
        UsageError: no such vocabulary, or no head with one matrix for its values, whichever token looks.
    """
    head, table_VD = vocabulary_head(model), wide(embedding_table(model))
    matrix_VD = matrix_of(head.vocabulary)
    if table_VD.shape != matrix_VD.shape:
        raise UsageError("this model does not score the tokens that it reads, or not from their width", "see its parts")
    # [D, D]: from the stream at the end to the table of the beginning, through every token.
    both_DD = table_VD.T @ (matrix_VD * _gain(model.stack.final, matrix_VD))
    keys, scores = [], []
    for layer in sublayers(model.stack):
        for key, leaf in layer.leaves.items():
            if isinstance(leaf, MultiHeadAttention) and type(leaf.gate) is NoGate and key.endswith(".attention"):
                value_KCD = (matrix_of(leaf.v) * _gain(layer.residual.pre, table_VD)).unflatten(
                    0, (-1, leaf.head_width)
                )
                out_HCD = output_matrices(leaf, matrix_of(leaf.q).shape[0] // leaf.head_width)
                value_HCD = value_KCD.repeat_interleave(len(out_HCD) // len(value_KCD), dim=0)
                keys.append(key)
                scores.append(_copying(value_HCD @ both_DD @ out_HCD.mT))
    if not scores:
        raise UsageError("no head of this model has one matrix for its values", "look at trace.head_roles()")
    return keys, torch.stack(scores)


def _copying(circuit_HCC: Tensor) -> Float[Tensor, "H"]:
    value_HC = torch.linalg.eigvals(circuit_HCC)
    return (1 + value_HC.real.sum(-1) / value_HC.abs().sum(-1)) / 2


def _gain(norm: nn.Module, like: Tensor) -> Tensor:
    """Return the factor of each channel that a norm has learned, one where there is none."""
    if isinstance(norm, LayerNorm | RMSNorm) and norm.weight is not None:
        return wide(norm.weight) + norm.offset
    return like.new_ones(like.shape[-1])
