"""The gradient of one global batch, in pieces: the same whatever the micro-batches and the ranks."""

from dataclasses import dataclass, field, replace
from typing import final

import torch
from torch import Tensor, nn

from orrery.data.batches.seeds import derive_seed
from orrery.errors import UsageError
from orrery.models.inputs import Batch
from orrery.objectives import Objective, Term
from orrery.training.contract import refuse_misfit
from orrery.training.distributed import Ranks
from orrery.training.pieces import pieces
from orrery.training.precision import Precision


@dataclass(frozen=True)
class StepLoss:
    """What a step's forward passes gave: loss, terms, counts, tokens, and rows whose loss is not finite.

    ``means`` are those of the terms that the objective reports, without their weights.
    """

    loss: float
    terms: dict[str, float]
    counts: dict[str, int]
    tokens: int
    bad_rows: list[range]
    means: dict[str, float] = field(default_factory=dict)


def rows_of(batch: Batch) -> int:
    """Return the number of rows, the first axis of every tensor of a batch."""
    return next(iter(batch.values())).shape[0]


def take(batch: Batch, rows: range) -> Batch:
    """Return some neighbouring rows of a batch."""
    return {name: tensor[rows.start : rows.stop] for name, tensor in batch.items()}


def to_device(batch: Batch, device: str) -> Batch:
    """Return the batch on the device."""
    return {name: tensor.to(device, non_blocking=True) for name, tensor in batch.items()}


def accumulate(
    model: nn.Module,
    objective: Objective,
    batch: Batch,
    *,
    micro_batch: int | None,
    seed: tuple[int, int],
    ranks: Ranks,
    precision: Precision,
    learner: nn.Module | None = None,
) -> StepLoss:
    """Add the gradient of ``sum over terms of weight * sum / count`` over the prepared global batch.

    Counts are of the global batch, known before the first forward pass, so that micro-batches and ranks
    divide by the same number; a term that counts nothing contributes 0. ``seed`` is (run seed, step): dropout
    of a piece depends on these and its first row only. ``learner`` has all that learns, the model by default.
    Raises ``UsageError`` naming a coupled term that would be split.
    """
    own = list(pieces(ranks.rows(rows_of(batch)), micro_batch))
    told = Pieces(objective, objective.counts(batch), ranks.parts > 1 or len(own) > 1)
    for rows, adds in ranks.passes(rows_of(batch), micro_batch):
        torch.manual_seed(derive_seed(*seed, "dropout", rows.start))
        with precision.context():
            terms = objective.loss(model, to_device(ranks.own(take(batch, rows)), precision.device))
        (told.loss(terms, rows) if adds else told.share_of(terms) * 0).backward()
    ranks.sum_gradients(parameter for parameter in (learner or model).parameters() if parameter.requires_grad)
    return told.step_loss(batch, ranks)


@final
class Pieces:
    """What the pieces of a step tell one after the other.

    Args:
        objective: whose terms they are.
        counts: of the global batch.
        split: whether it is computed in more than one piece.
    """

    def __init__(self, objective: Objective, counts: dict[str, int], split: bool) -> None:
        self.objective, self.counts, self.split = objective, counts, split
        self.rows: list[range] = []
        self.losses: list[Tensor] = []
        self.sums: dict[str, Tensor] = {}
        self.reported: dict[str, Tensor] = {}

    def share_of(self, terms: dict[str, Term]) -> Tensor:
        """Return what a piece's terms add to the loss of the global batch.

        Raises:
            UsageError: they are no sums over what was counted, or couple rows that are split.
        """
        refuse_misfit(self.objective, terms, self.counts)
        refuse_split(terms, self.split)
        return torch.stack([share(term, self.counts[name]) for name, term in terms.items()]).sum()

    def loss(self, terms: dict[str, Term], rows: range) -> Tensor:
        """Return what a piece's terms add to the loss of the global batch, and keep what they tell."""
        loss = self.share_of(terms)
        self.rows.append(rows)
        self.losses.append(loss.detach())
        add_shares(self.sums, terms, self.counts)
        reported = {name: replace(terms[name], weight=1.0) for name in self.objective.reports}
        add_shares(self.reported, reported, self.counts)
        return loss

    def step_loss(self, batch: Batch, ranks: Ranks) -> StepLoss:
        """Return what all pieces of all ranks came to."""
        objective, counts = self.objective, self.counts
        values = total_terms(self.sums, counts, ranks)
        piece_losses = torch.stack(self.losses).tolist() if self.losses else []
        bad = [rows for rows, value in zip(self.rows, piece_losses, strict=True) if not abs(value) < float("inf")]
        means = total_terms(self.reported, {name: counts[name] for name in objective.reports}, ranks)
        return StepLoss(sum(values.values()), values, counts, objective.tokens_of(batch, counts), bad, means)


def add_shares(sums: dict[str, Tensor], terms: dict[str, Term], counts: dict[str, int]) -> None:
    """Add what a piece's terms add to those of the global batch."""
    for name, term in terms.items():
        value = share(term, counts[name]).detach()
        sums[name] = sums[name] + value if name in sums else value


def share(term: Term, count: int) -> Tensor:
    """Return what a piece's term adds to the loss of the global batch."""
    return term.sum * (term.weight / max(1, count))


def refuse_split(terms: dict[str, Term], split: bool) -> None:
    """Raise ``UsageError`` for the first term that couples examples of a batch that is computed in pieces."""
    for name, term in terms.items():
        if term.coupled and split:
            message = f"the term {name!r} couples the examples of a batch, so the batch cannot be split"
            raise UsageError(message, "leave out training.micro_batch and use one process, or lower batches.size")


def total_terms(sums: dict[str, Tensor], counts: dict[str, int], ranks: Ranks) -> dict[str, float]:
    """Return each term's value over all ranks; a rank without rows adds nothing."""
    if not counts:
        return {}
    zero = torch.zeros(())
    values = ranks.sum(torch.stack([sums.get(name, zero).double().cpu() for name in counts]))
    return dict(zip(counts, values.tolist(), strict=True))
