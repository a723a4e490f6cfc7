"""Denoising: a text from what five noises have left of it."""

from typing import TYPE_CHECKING, Any, Literal

from pydantic import model_validator
from pydantic_core import PydanticCustomError

from orrery.errors import UsageError
from orrery.objectives import register
from orrery.objectives._from_source import FromSource, taught
from orrery.objectives._real import real_tokens
from orrery.schema.numbers import AboveZero, Fraction, Share
from orrery.schema.section import Section

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from orrery.models.inputs import Batch
    from orrery.models.model import ModelSpec
    from orrery.text.tokenizer import Tokenizer

ENDS = (".", "!", "?", "\n", "\u010a", "\u2026", "\u3002")
"""What a token ends with that ends a sentence; U+010A is the line end of byte-level vocabularies."""


@register
class Denoising(FromSource):
    """``-log p(y_t | x, y_<t)``: ``y`` is a text, ``x`` the same text after noises.

    Lewis et al. 2020, section 2.2, in this order: sentence permutation and document rotation for a share of the rows
    each; token masking, text infilling and token deletion for a share of the tokens each. Infilling puts one mask
    token in the place of a span whose length is drawn from a Poisson distribution, also of none. The defaults are the
    paper's choice for its large model (section 5): 30 % infilled, every row's sentences permuted. Both sides end with
    the end token.

    Differs from their code: a span may begin inside a word; sentences end at a token that ends with a mark of one; and
    of rows as long as the model's context the last token is left out, for the end token.
    """

    class Settings(Section):
        """``permutation`` and ``rotation`` are shares of rows, ``masking``, ``infilling``, ``deletion`` of tokens."""

        kind: Literal["denoising"] = "denoising"
        permutation: Share = 1.0
        rotation: Share = 0.0
        masking: Fraction = 0.0
        infilling: Fraction = 0.3
        deletion: Fraction = 0.0
        mean_span: AboveZero = 3.0

        @model_validator(mode="after")
        def _some_noise(self) -> "Denoising.Settings":
            if not (self.permutation or self.rotation or self.masking or self.infilling or self.deletion):
                raise PydanticCustomError("noise", "without any noise the target is the source: give one a share")
            return self

    needs = ("ids",)
    makes = ("source", "source_real", "ids", "targets")

    def __init__(
        self,
        permutation: float = 1.0,
        rotation: float = 0.0,
        masking: float = 0.0,
        infilling: float = 0.3,
        deletion: float = 0.0,
        mean_span: float = 3.0,
    ) -> None:
        self.permutation, self.rotation, self.masking = permutation, rotation, masking
        self.infilling, self.deletion, self.mean_span = infilling, deletion, mean_span
        self.start = self.end = self.pad = self.mask = self.most = 0
        self.ends_V: Tensor

    def bind(self, spec: "ModelSpec", tokenizer: "Tokenizer | None") -> None:
        """Take the special tokens, and make the table of tokens that end a sentence.

        Raises:
            UsageError: the model is no encoder-decoder, or the tokenizer has no mask token.
        """
        import torch

        super().bind(spec, tokenizer)
        if tokenizer is None or "mask" not in tokenizer.roles:
            hint = "tokenizer.frame: roberta or bert gives a trained tokenizer one; or name tokenizer.file"
            raise UsageError("the objective denoising needs a mask token, and the tokenizer has none", hint)
        assert spec.first_token is not None
        self.start, self.end, self.mask = spec.first_token, tokenizer.special("end"), tokenizer.special("mask")
        self.pad = tokenizer.special("pad") if "pad" in tokenizer.roles else self.end
        self.most = spec.context
        spelt = [tokenizer.token(id) for id in range(tokenizer.size)]
        self.ends_V = torch.tensor(
            [token.endswith(ENDS) and id not in tokenizer.control for id, token in enumerate(spelt)]
        )

    def prepare(self, batch: "Batch", rng: "torch.Generator") -> "Batch":
        """Make the noise of each row."""
        texts = [row[real][: self.most - 1] for row, real in zip(batch["ids"], real_tokens(batch), strict=True)]
        sources = [self._ended(self.noisy(ids, rng)[: self.most - 1]) for ids in texts]
        return taught(sources, [self._ended(ids) for ids in texts], self.start, self.pad)

    def noisy(self, ids_L: "Tensor", rng: "torch.Generator") -> "Tensor":
        """Return one text after the noises."""
        import torch

        permuted, rotated = torch.rand(2, generator=rng).tolist()
        if permuted < self.permutation:
            ids_L = permute(ids_L, self.ends_V[ids_L], rng)
        if rotated < self.rotation:
            ids_L = rotate(ids_L, rng)
        if self.masking:
            ids_L = ids_L.masked_fill(torch.rand(len(ids_L), generator=rng) < self.masking, self.mask)
        if self.infilling:
            ids_L = infill(ids_L, round(self.infilling * len(ids_L)), self.mean_span, self.mask, rng)
        if self.deletion:
            ids_L = ids_L[torch.rand(len(ids_L), generator=rng) >= self.deletion]
        return ids_L

    def _ended(self, ids_L: "Tensor") -> "Tensor":
        import torch

        return torch.cat([ids_L, ids_L.new_tensor([self.end])])


def permute(ids_L: "Tensor", ends_L: "Tensor", rng: "torch.Generator") -> "Tensor":
    """Return the sentences in another order, each equally likely; what stands behind the last end is one too."""
    import torch

    sentence_L = torch.cat([ends_L.new_zeros(1), ends_L])[: len(ids_L)].long().cumsum(0)
    sentences = int(sentence_L[-1]) + 1 if len(ids_L) else 0
    place_N = torch.randperm(sentences, generator=rng)
    return ids_L[place_N[sentence_L].argsort(stable=True)]


def rotate(ids_L: "Tensor", rng: "torch.Generator") -> "Tensor":
    """Return a text that begins at one of its tokens, all equally likely, and goes on with what stood before it."""
    import torch

    return ids_L.roll(-int(torch.randint(max(1, len(ids_L)), (), generator=rng)))


def infill(ids_L: "Tensor", lost: int, mean_span: float, mask: int, rng: "torch.Generator") -> "Tensor":
    """Return a text in which spans, ``lost`` tokens together, are one mask token each, all places equally likely.

    A span of no tokens is a mask token between two.
    """
    import torch

    spans_N = span_lengths(lost, mean_span, rng)
    kept, spans = len(ids_L) - lost, len(spans_N)
    # Kept tokens and spans in a row: which of these places are spans decides where each span begins.
    slots = torch.randperm(kept + spans, generator=rng)[:spans].sort().values
    width_P = torch.ones(kept + spans, dtype=torch.long)
    width_P[slots] = spans_N
    starts_P = width_P.cumsum(0) - width_P
    found_P = ids_L[starts_P.clamp(max=max(0, len(ids_L) - 1))] if len(ids_L) else ids_L
    found_P[slots] = mask
    return found_P


def span_lengths(total: int, mean: float, rng: "torch.Generator") -> "Tensor":
    """Return lengths drawn from a Poisson distribution until their sum is ``total``; the last is cut to fit."""
    import torch

    drawn: list[Any] = [torch.zeros(0, dtype=torch.long)]
    while sum(int(part.sum()) for part in drawn) < total:
        rates_N = torch.full((int(2 * total / mean) + 1,), mean)
        drawn.append(torch.poisson(rates_N, generator=rng).long())
    lengths_N = torch.cat(drawn)
    before_N = lengths_N.cumsum(0) - lengths_N
    kept_N = before_N < total
    return torch.minimum(lengths_N, total - before_N)[kept_N]
