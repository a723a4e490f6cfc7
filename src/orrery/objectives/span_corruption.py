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
        ids = [] if tokenizer is None else sentinels(tokenizer)
        if tokenizer is None or not ids:
            hint = "tokenizer.frame: t5 gives a trained tokenizer a hundred; or name the tokenizer.file of such a model"
            raise UsageError("the objective span_corruption needs the sentinels <extra_id_0>, <extra_id_1> ...", hint)
        self.sentinels_N = torch.tensor(ids)
        assert spec.first_token is not None
        self.start, self.end = spec.first_token, tokenizer.special("end")
        self.pad = tokenizer.special("pad") if "pad" in tokenizer.roles else self.end

    def prepare(self, batch: "Batch", rng: "torch.Generator") -> "Batch":
        """Take spans out of each row; a row of fewer than two tokens loses none and has the end as its target.

        Raises:
            UsageError: a row loses more spans than there are sentinels.
        """
        real_BL = real_tokens(batch)
        lengths_B = real_BL.sum(1)
        # Real tokens first, in their order: padding may stand on either side.
        ids_BL = batch["ids"].gather(1, (~real_BL).long().argsort(dim=1, stable=True))
        lost_BL = lost_tokens(lengths_B, ids_BL.shape[1], self.probability, self.mean_span, rng)
        first_BL = lost_BL & ~before(lost_BL)
        self._refuse_too_many(int(first_BL.sum(1).max()), ids_BL.shape[1])
        sources = self._sources(ids_BL, lengths_B, lost_BL, first_BL)
        return taught(sources, self._targets(ids_BL, lost_BL, first_BL), self.start, self.pad)

    def _sources(self, ids_BL: "Tensor", lengths_B: "Tensor", lost_BL: "Tensor", first_BL: "Tensor") -> "list[Tensor]":
        """Return what is left of each text: a sentinel in the place of each span, and the end."""
        import torch

        marked_BL = torch.where(first_BL, self._sentinel(first_BL), ids_BL)
        real_BL = torch.arange(ids_BL.shape[1]) < lengths_B[:, None]
        left_BL = real_BL & (~lost_BL | first_BL)
        found_BL = marked_BL.gather(1, (~left_BL).long().argsort(dim=1, stable=True))
        return self._ended(found_BL, left_BL.sum(1))

    def _targets(self, ids_BL: "Tensor", lost_BL: "Tensor", first_BL: "Tensor") -> "list[Tensor]":
        """Return the spans that each text has lost, each behind its sentinel, and the end."""
        sizes_B = lost_BL.sum(1) + first_BL.sum(1)
        # A lost token stands behind those lost before it, and behind the sentinels up to its own.
        place_BL = lost_BL.long().cumsum(1) - 1 + first_BL.long().cumsum(1)
        rows_N, places_N = lost_BL.nonzero(as_tuple=True)
        found_BL = ids_BL.new_zeros(len(ids_BL), int(sizes_B.max()))
        found_BL[rows_N, place_BL[rows_N, places_N]] = ids_BL[rows_N, places_N]
        rows_N, places_N = first_BL.nonzero(as_tuple=True)
        found_BL[rows_N, place_BL[rows_N, places_N] - 1] = self._sentinel(first_BL)[rows_N, places_N]
        return self._ended(found_BL, sizes_B)

    def _sentinel(self, first_BL: "Tensor") -> "Tensor":
        """Return for each token the sentinel of the last span that began at it or before it."""
        return self.sentinels_N[(first_BL.long().cumsum(1) - 1).clamp(min=0)]

    def _ended(self, ids_BL: "Tensor", sizes_B: "Tensor") -> "list[Tensor]":
        """Return the first tokens of each row, as many as it has, and the end."""
        from torch.nn.functional import pad

        padded_BL = pad(ids_BL, (0, 1), value=self.end)
        padded_BL.scatter_(1, sizes_B[:, None], self.end)
        return [row[: size + 1] for row, size in zip(padded_BL, sizes_B.tolist(), strict=True)]

    def _refuse_too_many(self, spans: int, length: int) -> None:
        if spans > len(self.sentinels_N):
            message = f"a row of {length:,} tokens loses {spans} spans, and the tokenizer has "
            message += f"{len(self.sentinels_N)} sentinels"
            raise UsageError(message, "lower batches.length or objective.probability, or raise objective.mean_span")


def before(flags_BL: "Tensor") -> "Tensor":
    """Return what the token before each has; the first has none before it."""
    import torch

    return torch.cat([torch.zeros_like(flags_BL[:, :1]), flags_BL[:, :-1]], 1)


def sentinels(tokenizer: "Tokenizer") -> list[int]:
    """Return the ids of ``<extra_id_0>``, ``<extra_id_1>`` and so on, as many as there are without a gap."""
    ids: list[int] = []
    while (id := tokenizer.id(f"<extra_id_{len(ids)}>")) is not None:
        ids.append(id)
    return ids


def lost_tokens(
    lengths_B: "Tensor", width: int, probability: float, mean_span: float, rng: "torch.Generator"
) -> "Tensor":
    """Return which tokens of a text are lost, none of fewer than two. Shapes: ``[B]`` to ``[B, width]``."""
    import torch

    wanted_B = (lengths_B * probability).round().long().clamp(min=1)
    lost_B = torch.minimum(wanted_B, (lengths_B - 1).clamp(min=0))
    spans_B = torch.minimum((lost_B / mean_span).round().long().clamp(min=1), lengths_B - lost_B)
    most = max(1, int(spans_B.max()))
    kept_BN = compositions(lengths_B - lost_B, spans_B, most, rng)
    gone_BN = compositions(lost_B, spans_B, most, rng)
    ends_BN = (kept_BN + gone_BN).cumsum(1)
    steps_BL = torch.zeros(len(lengths_B), width + 1, dtype=torch.long)
    # A span of no tokens, where there are fewer spans than in the longest row, begins and ends at one place.
    steps_BL.scatter_add_(1, ends_BN - gone_BN, torch.ones_like(ends_BN))
    steps_BL.scatter_add_(1, ends_BN, -torch.ones_like(ends_BN))
    return steps_BL.cumsum(1)[:, :width] > 0


def compositions(totals_B: "Tensor", parts_B: "Tensor", most: int, rng: "torch.Generator") -> "Tensor":
    """Return ``parts`` whole numbers of at least one whose sum is ``total``, each way equally likely, and zeros behind.

    Shapes: ``[B]`` and ``[B]`` to ``[B, most]``.
    """
    import torch

    width = max(1, int(totals_B.max()))
    place_W = torch.arange(width)
    # Of the places between two things, parts - 1 are cuts: those with the smallest of uniform numbers.
    drawn_BW = torch.rand(len(totals_B), width, generator=rng, dtype=torch.float64)
    drawn_BW = drawn_BW.masked_fill((place_W == 0) | (place_W >= totals_B[:, None]), 2.0)
    cut_BW = drawn_BW.argsort(1).argsort(1) < parts_B[:, None] - 1
    found_BN = torch.zeros(len(totals_B), most, dtype=torch.long)
    there_BW = (place_W < totals_B[:, None]).long()
    return found_BN.scatter_add_(1, cut_BW.long().cumsum(1).clamp(max=most - 1), there_BW)
