"""Contrastive learning: texts that belong together become neighbours, all others of the batch do not."""

from collections.abc import Mapping
from copy import deepcopy
from typing import TYPE_CHECKING, Any, Literal

from orrery.objectives import Objective, Term, register
from orrery.schema.numbers import AboveZero
from orrery.schema.section import Section

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int
    from torch import Tensor, nn

    from orrery.models.inputs import Batch
    from orrery.models.model import ModelSpec
    from orrery.models.sentence_vectors import SentenceVectors

TERM = "match"
STEPS = "steps"
"""What the modules behind the pooling are called among those that the objective owns."""


@register
class Contrastive(Objective):
    """InfoNCE in both directions: ``-log exp(s_ij) / (exp(s_ij) + sum over other groups k of exp(s_ik))``, in nats.

    ``s_ij = cos(z_i, z_j) / temperature`` with ``z`` the final stream pooled over a row's tokens, by default the mean,
    and then what stands behind that pooling in the folder of the model to begin from (matrices, norms), which learns;
    summed over all ordered pairs of different rows of one group. van den Oord et al. 2018; the form with both
    directions is that of SimCLR (Chen et al. 2020). A batch has what the model reads, ``real`` and ``group`` [2B].

    Differs from SimCLR where more than two rows belong together: they are no negatives of each other. The term couples
    all rows of a batch, so that the batch cannot be split.
    """

    class Settings(Section):
        """``temperature`` divides the cosines: the smaller, the more the nearest wrong row counts.

        ``pooling`` is one of sentence-transformers: which vectors of a row make its one.
        """

        kind: Literal["contrastive"] = "contrastive"
        temperature: AboveZero = 0.05
        pooling: Literal["cls", "max", "mean", "mean_sqrt_len_tokens", "weightedmean", "lasttoken"] = "mean"

    needs = ("ids", "real", "group")

    def __init__(self, temperature: float = 0.05, pooling: str = "mean") -> None:
        self.temperature, self.pooling = temperature, pooling
        self.steps: nn.ModuleList | None = None

    def begin(self, vectors: "SentenceVectors") -> None:
        """Take a copy of the steps behind the pooling, where that is the one that is trained on."""
        learns = any(True for _ in vectors.steps.parameters())
        if learns and vectors.pooling.modes == (self.pooling,):
            self.steps = deepcopy(vectors.steps).requires_grad_(True)

    def modules(self, model: "nn.Module") -> "Mapping[str, nn.Module]":
        """Return the steps in their order, where one has something to learn."""
        return {} if self.steps is None else {STEPS: self.steps}

    def heads(self, spec: "ModelSpec") -> tuple[str, ...]:
        """Return none: the final stream is trained."""
        return ()

    def counts(self, batch: "Batch") -> dict[str, int]:
        """Count the ordered pairs of rows that belong together."""
        return {TERM: int(together(batch["group"]).sum())}

    def loss(self, model: Any, batch: "Batch") -> dict[str, Term]:
        """Return the summed cost of finding the rows that belong together."""
        from orrery.models.model import HIDDEN
        from orrery.models.sentence_vectors import POOLINGS

        group = batch["group"]

        def summed(stream: "nn.Module", x_BLD: "Tensor", real_BL: "Tensor | None") -> "Tensor":
            z_BD = POOLINGS[self.pooling](stream(x_BLD, real_BL), batch["real"])
            for step in self.steps or ():
                z_BD = step(z_BD)
            return info_nce(z_BD, group, self.temperature)

        (total,) = model(batch, {HIDDEN: summed}).values()
        return {TERM: Term(total, together(group).sum(), coupled=True)}


def together(group_B: "Int[Tensor, ' B']") -> "Bool[Tensor, 'B B']":
    """Return which two different rows belong together."""
    return (group_B[:, None] == group_B).fill_diagonal_(False)


def info_nce(z_BD: "Float[Tensor, 'B D']", group_B: "Int[Tensor, ' B']", temperature: float) -> "Float[Tensor, '']":
    """Return the sum of ``log(exp(s_ij) + sum over other groups of exp(s_ik)) - s_ij`` over rows that belong together.

    At least in float32. A row without others to be told from costs nothing.
    """
    import torch
    from torch.nn import functional as F

    wide_BD = F.normalize(z_BD if z_BD.dtype == torch.float64 else z_BD.float(), dim=-1)
    with torch.autocast(wide_BD.device.type, enabled=False):
        scores_BB = wide_BD @ wide_BD.mT / temperature
    same_BB = group_B[:, None] == group_B
    # The least number rather than minus infinity: without another group the gradient would be no number.
    others_B1 = scores_BB.masked_fill(same_BB, torch.finfo(scores_BB.dtype).min).logsumexp(-1, keepdim=True)
    costs_BB = torch.logaddexp(scores_BB, others_B1) - scores_BB
    return torch.where(together(group_B), costs_BB, 0.0).sum()
