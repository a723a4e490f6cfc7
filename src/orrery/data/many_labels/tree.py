"""A tree over the labels: each part is cut in two halves of like labels, until parts are small (X-BERT's indexer)."""

from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

from orrery.data.many_labels.features import SparseRows

SKETCH = 256
"""Numbers that stand for a sparse label vector: random projections keep its angles (Johnson and Lindenstrauss 1984)."""
ROUNDS = 20


def label_vectors(features: SparseRows, labels: Sequence[Sequence[int]], count: int, seed: int) -> Float[Tensor, "N F"]:
    """Return ``sum of x over the texts of a label``, of length one, in a random projection (PIFA; Yu et al. 2022).

    A label without a text has a random vector, so that it lands in some cluster.
    """
    rng = torch.Generator().manual_seed(seed)
    sketch_NF = features.times(torch.randn(features.width, SKETCH, generator=rng) / SKETCH**0.5)
    sums_NF = torch.zeros(count, SKETCH)
    rows = torch.tensor([row for row, own in enumerate(labels) for _ in own], dtype=torch.long)
    numbers = torch.tensor([label for own in labels for label in own], dtype=torch.long)
    sums_NF.index_add_(0, numbers, sketch_NF[rows])
    empty = sums_NF.norm(dim=1) == 0
    sums_NF[empty] = torch.randn(int(empty.sum()), SKETCH, generator=rng)
    return torch.nn.functional.normalize(sums_NF, dim=1)


def clusters(vectors_NF: Float[Tensor, "N F"], most: int, seed: int) -> Int[Tensor, "N"]:
    """Return the number of the cluster of each vector: at most ``most`` in each, in the order of a tree of halves.

    Balanced spherical 2-means: of ``2 n`` vectors the ``n`` go to a centre whose difference of cosines to both centres
    is largest (Prabhu et al. 2018, section 4.1).
    """
    rng = torch.Generator().manual_seed(seed)
    parts = [torch.arange(len(vectors_NF))]
    while max(map(len, parts)) > most:
        parts = [half for part in parts for half in (_halves(vectors_NF, part, rng) if len(part) > 1 else [part])]
    found = torch.empty(len(vectors_NF), dtype=torch.long)
    for number, part in enumerate(parts):
        found[part] = number
    return found


def _halves(vectors_NF: Tensor, part: Tensor, rng: torch.Generator) -> list[Tensor]:
    own = vectors_NF[part]
    centres = own[torch.randperm(len(part), generator=rng)[:2]]
    half, before = len(part) // 2, None
    for _ in range(ROUNDS):
        order = (own @ (centres[0] - centres[1])).argsort(descending=True, stable=True)
        if before is not None and torch.equal(order[:half].sort().values, before):
            break
        before = order[:half].sort().values
        centres = torch.nn.functional.normalize(
            torch.stack([own[order[:half]].mean(0), own[order[half:]].mean(0)]), dim=1
        )
    return [part[order[:half]], part[order[half:]]]
