"""Span corruption: the spans that a text has lost, from what is left of it."""

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from orrery.errors import UsageError
from orrery.objectives import register
from orrery.objectives._from_source import FromSource, taught
from orrery.objectives._real import real_tokens
from orrery.schema.numbers import NoTruth, Part
from orrery.schema.section import Section

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from orrery.models.inputs import Batch
    from orrery.models.model import ModelSpec
    from orrery.text.tokenizer import Tokenizer

MeanSpan = Annotated[float, Field(ge=1), NoTruth]


@register
class SpanCorruption(FromSource):
    """``-log p(y_t | x, y_<t)``: ``x`` is a text with a sentinel for each lost span, ``y`` the spans behind theirs.

    Of ``n`` tokens ``round(probability n)`` are lost, at least one and never all, in ``round(lost / mean_span)``
    spans; the lengths of the spans and of what stands between them are a composition of these numbers, all equally
    likely. The text begins with what is kept. Raffel et al. 2020, section 3.1.4 and their code, whose targets have no
    sentinel behind the last span as the paper's figure has. Both sides end with the end token.

    Differs from their code: rows are corrupted as they come, so that a source is shorter than ``batches.length``;
    there rows are made longer beforehand so that the source fills it.
    """

    class Settings(Section):
        """Lost spans: their share of the text, and their mean length."""

        kind: Literal["span_corruption"] = "span_corruption"
        probability: Part = 0.15
        mean_span: MeanSpan = 3.0

    needs = ("ids",)
    makes = ("source", "source_real", "ids", "targets")

    def __init__(self, probability: float = 0.15, mean_span: float = 3.0) -> None:
        self.probability, self.mean_span = probability, mean_span
        self.start = self.end = self.pad = 0
        self.sentinels_N: Tensor

    def bind(self, spec: "ModelSpec", tokenizer: "Tokenizer | None") -> None:
        """Take the sentinels, and the tokens that begin and end a target.

        Raises:
            UsageError: the model is no encoder-decoder, or the tokenizer has no sentinels.
        """
        import torch

        super().bind(spec, tokenizer)
        found = [] if tokenizer is None else sentinels(tokenizer)
        if tokenizer is None or not found:
            hint = "tokenizer.frame: t5 gives a trained tokenizer a hundred; or name the tokenizer.file of such a model"
            raise UsageError("the objective span_corruption needs the sentinels <extra_id_0>, <extra_id_1> ...", hint)
        self.sentinels_N = torch.tensor(found)
        assert spec.first_token is not None
        self.start, self.end = spec.first_token, tokenizer.special("end")
        self.pad = tokenizer.special("pad") if "pad" in tokenizer.roles else self.end

    def prepare(self, batch: "Batch", rng: "torch.Generator") -> "Batch":
        """Take spans out of each row; a row of fewer than two tokens loses none and has the end as its target."""
        ids_BL, real_BL = batch["ids"], real_tokens(batch)
        pairs = [self.corrupted(row[real], rng) for row, real in zip(ids_BL, real_BL, strict=True)]
        return taught([source for source, _ in pairs], [target for _, target in pairs], self.start, self.pad)

    def corrupted(self, ids_L: "Tensor", rng: "torch.Generator") -> tuple["Tensor", "Tensor"]:
        """Return what is left of a text, and the spans that it lost.

        Raises:
            UsageError: it loses more spans than there are sentinels.
        """
        import torch

        lost_L = lost_tokens(len(ids_L), self.probability, self.mean_span, rng)
        before_L = torch.cat([lost_L.new_zeros(1), lost_L[:-1]])[: len(lost_L)]
        first_L = lost_L & ~before_L
        spans = int(first_L.sum())
        if spans > len(self.sentinels_N):
            message = f"a row of {len(ids_L):,} tokens loses {spans} spans, and the tokenizer has "
            message += f"{len(self.sentinels_N)} sentinels"
            raise UsageError(message, "lower batches.length or objective.probability, or raise objective.mean_span")
        end = ids_L.new_tensor([self.end])
        marked_L = torch.where(first_L, self.sentinels_N[(first_L.long().cumsum(0) - 1).clamp(min=0)], ids_L)
        lost_M = ids_L[lost_L]
        places_N = first_L[lost_L].nonzero()[:, 0]
        target = lost_M.new_empty(len(lost_M) + spans)
        at_N = places_N + torch.arange(spans)
        own = torch.ones(len(target), dtype=torch.bool)
        own[at_N] = False
        target[at_N], target[own] = self.sentinels_N[:spans], lost_M
        return torch.cat([marked_L[~lost_L | first_L], end]), torch.cat([target, end])


def sentinels(tokenizer: "Tokenizer") -> list[int]:
    """Return the ids of ``<extra_id_0>``, ``<extra_id_1>`` and so on, as many as there are without a gap."""
    found: list[int] = []
    while (id := tokenizer.id(f"<extra_id_{len(found)}>")) is not None:
        found.append(id)
    return found


def lost_tokens(length: int, probability: float, mean_span: float, rng: "torch.Generator") -> "Tensor":
    """Return which tokens of a text are lost: none of fewer than two. Shapes: ``[L]`` of bool."""
    import torch

    if length < 2:
        return torch.zeros(length, dtype=torch.bool)
    lost = min(max(round(length * probability), 1), length - 1)
    spans = min(max(round(lost / mean_span), 1), length - lost)
    both = torch.stack([composition(length - lost, spans, rng), composition(lost, spans, rng)], 1).flatten()
    return (torch.arange(2 * spans) % 2 == 1).repeat_interleave(both)


def composition(total: int, parts: int, rng: "torch.Generator") -> "Tensor":
    """Return ``parts`` whole numbers of at least one whose sum is ``total``, each way equally likely."""
    import torch

    cuts = torch.randperm(total - 1, generator=rng)[: parts - 1].sort().values + 1
    ends = torch.cat([torch.tensor([0]), cuts, torch.tensor([total])])
    return ends.diff()
