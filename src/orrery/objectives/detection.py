"""Detection: which things a picture shows, and the box around each; who answers for which is matched."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from orrery.errors import UsageError
from orrery.objectives import NeededHead, Objective, Term, register
from orrery.schema.numbers import NotNegative, Part
from orrery.schema.section import Section

if TYPE_CHECKING:
    from torch import Tensor, nn

    from orrery.models.inputs import Batch
    from orrery.models.model import ModelSpec
    from orrery.text.tokenizer import Tokenizer

LABEL, PLACE, OVERLAP = "label", "place", "overlap"
CLASSES = "classes"
"""The head of YOLOS that scores the labels of its detection tokens, whose boxes another head gives."""
UNITS = 1000
"""Parts of a query in which those that say nothing are counted: counts are whole numbers."""


@register
class Detection(Objective):
    """``-w log p(label) + 5 |b - b'|_1 + 2 (1 - GIoU(b, b'))`` of each thing and the query that is matched to it.

    Carion et al. 2020, sections 3.1 and A.2. The matching is the cheapest assignment of queries to things by
    ``-p(label) + 5 |b - b'|_1 - 2 GIoU``; a query without a thing should say nothing, with the weight ``nothing``. The
    labels' term is the mean over the queries by their weights, the others are means over the things. Boxes are the
    middle, width and height as shares of the sides. A batch has ``images``, ``boxes`` [B, N, 4] and ``classes`` [B, N].
    """

    class Settings(Section):
        """``head`` is trained; ``nothing`` is the weight of a query without a thing, the others those of the terms."""

        kind: Literal["detection"] = "detection"
        head: str = "boxes"
        nothing: Part = 0.1
        place: NotNegative = 5.0
        overlap: NotNegative = 2.0

    needs = ("images", "boxes", "classes")
    reports = (LABEL, PLACE, OVERLAP)

    def __init__(self, head: str = "boxes", nothing: float = 0.1, place: float = 5.0, overlap: float = 2.0) -> None:
        self.head, self.nothing, self.weights = head, nothing, (place, overlap)
        self.parts: tuple[str, ...] = (head,)
        self.queries = 0

    def needed_head(self, labels: Mapping[str, int]) -> NeededHead | None:
        """Return a head with one label for each that occurs."""
        return NeededHead(self.head, "boxes", len(labels), tuple(labels))

    def heads(self, spec: "ModelSpec") -> tuple[str, ...]:
        """Return the head, and the one for the labels alone that YOLOS has beside it."""
        return (*((CLASSES,) if CLASSES in spec.heads else ()), self.head)

    def bind(self, spec: "ModelSpec", tokenizer: "Tokenizer | None") -> None:
        """Take how many queries the head has, and whether another one scores the labels.

        Raises:
            UsageError: there is no such head.
        """
        found = spec.heads.get(self.head)
        queries = getattr(found, "queries", getattr(found, "tokens", None))
        if queries is None:
            known = ", ".join(spec.head_names) or "none"
            raise UsageError(f"the model has no head {self.head} for boxes", f"it has: {known}")
        self.queries, self.parts = int(queries), self.heads(spec)

    def counts(self, batch: "Batch") -> dict[str, int]:
        """Count the queries by their weights, in parts of one, and the things."""
        from orrery.nn.cross_entropy import IGNORED

        things = (batch["classes"] != IGNORED).sum(1)
        matched, queries = int(things.clamp(max=self.queries).sum()), len(things) * self.queries
        weights = round(UNITS * (matched + self.nothing * (queries - matched)))
        return {LABEL: weights, PLACE: int(things.sum()), OVERLAP: int(things.sum())}

    def tokens_of(self, batch: "Batch", counts: Mapping[str, int]) -> int:
        """Return the pictures."""
        return len(batch["images"])

    def loss(self, model: Any, batch: "Batch") -> dict[str, Term]:
        """Return the cost of the labels, and how far the boxes of the matched queries are away."""
        import torch
        from torch.nn import functional as F

        from orrery.nn.boxes import corners, giou

        def wide(head: "nn.Module", x_BLD: "Tensor", real: "Tensor | None") -> "Tensor":
            found: Tensor = head(x_BLD, real)
            return found.to(torch.promote_types(found.dtype, torch.float32))

        found = model(batch, dict.fromkeys(self.parts, wide))
        said: Tensor = torch.cat([found[name] for name in self.parts], -1)
        logits, boxes = said[..., :-4], said[..., -4:]
        classes, wanted = batch["classes"], batch["boxes"].to(said.dtype)
        rows, queries, things = self.matched(logits.detach(), boxes.detach(), classes, wanted)
        nobody = logits.shape[-1] - 1
        targets = torch.full(logits.shape[:2], nobody, device=said.device)
        targets[rows, queries] = classes[rows, things]
        weights = torch.ones(nobody + 1, dtype=said.dtype, device=said.device)
        weights[nobody] = self.nothing
        label = F.cross_entropy(logits.flatten(0, 1), targets.flatten(), weights, reduction="sum")
        ours, theirs = boxes[rows, queries], wanted[rows, things]
        away = (ours - theirs).abs().sum()
        apart = (1 - giou(corners(ours), corners(theirs))).sum()
        counts = self.counts(batch)
        return {
            LABEL: Term(UNITS * label, counts[LABEL]),
            PLACE: Term(away, counts[PLACE], self.weights[0]),
            OVERLAP: Term(apart, counts[OVERLAP], self.weights[1]),
        }

    def matched(
        self, logits: "Tensor", boxes: "Tensor", classes: "Tensor", wanted: "Tensor"
    ) -> "tuple[Tensor, Tensor, Tensor]":
        """Return the numbers of pictures, queries and things that belong together, each ``[N]``."""
        import torch

        from orrery.nn.boxes import corners, giou
        from orrery.nn.cross_entropy import IGNORED
        from orrery.scores.assignment import cheapest

        numbers = classes.clamp(min=0)[:, None].expand(-1, logits.shape[1], -1)
        overlap = giou(corners(boxes)[:, :, None], corners(wanted)[:, None])
        cost = -logits.softmax(-1).gather(2, numbers) - self.weights[1] * overlap
        cost = cost + self.weights[0] * (boxes[:, :, None] - wanted[:, None]).abs().sum(-1)
        finite = cost.double().nan_to_num(nan=1e30, posinf=1e30, neginf=-1e30)  # the loss itself tells of these
        costs, real, found = finite.cpu().numpy(), (classes != IGNORED).cpu().numpy(), []
        for row, own in enumerate(real):
            queries, things = (torch.from_numpy(each) for each in cheapest(costs[row][:, own]))
            there = torch.from_numpy(own.nonzero()[0])
            found.append(torch.stack([torch.full_like(queries, row), queries, there[things]]))
        rows, queries, things = torch.cat(found, 1).to(classes.device)
        return rows, queries, things
