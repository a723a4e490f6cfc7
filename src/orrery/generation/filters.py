"""Filters: what becomes of the logits of the next token before one is chosen."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor


@dataclass(frozen=True)
class History:
    """Which tokens each row holds when its next one is chosen.

    Attributes:
        prompt_BV: whether a token stands in what the row began with.
        written_BV: how many times the answer holds it.
        last_BN: the last tokens of each row in their order, -1 where it is shorter; none where no filter asks for them.
    """

    prompt_BV: Bool[Tensor, "B V"]
    written_BV: Int[Tensor, "B V"]
    last_BN: Int[Tensor, "B N"] | None = None

    @staticmethod
    def of(
        rows: Sequence[Sequence[int]],
        like_BV: Float[Tensor, "B V"],
        answers: Sequence[Sequence[int]] = (),
        window: int = 0,
    ) -> "History":
        """Return the history of rows, and of their answers so far, for logits like these.

        ``window`` is how many of the last tokens of a row are kept in their order.
        """
        prompt_BV = torch.zeros(like_BV.shape, dtype=torch.bool)
        written_BV = torch.zeros(like_BV.shape, dtype=torch.int32)
        for row, ids in enumerate(rows):
            prompt_BV[row, torch.tensor(ids, dtype=torch.long)] = True
        for row, ids in enumerate(answers):
            written_BV[row] = torch.bincount(torch.tensor(ids, dtype=torch.long), minlength=like_BV.shape[1])
        last_BN = _last(rows, answers, window).to(like_BV.device) if window else None
        return History(prompt_BV.to(like_BV.device), written_BV.to(like_BV.device), last_BN)

    @staticmethod
    def joined(histories: "Sequence[History]") -> "History":
        """Return the histories of several batches as those of one."""
        prompts, counts = zip(*((own.prompt_BV, own.written_BV) for own in histories), strict=True)
        last = [own.last_BN for own in histories if own.last_BN is not None]
        return History(torch.cat(prompts), torch.cat(counts), torch.cat(last) if last else None)

    @property
    def seen(self) -> Bool[Tensor, "B V"]:
        """Return whether a row holds a token at all."""
        return self.prompt_BV | (self.written_BV > 0)

    def within(self, window: int) -> Bool[Tensor, "B V"]:
        """Return whether a token is among so many of the last ones of a row."""
        assert self.last_BN is not None
        B, V = self.prompt_BV.shape
        last_BN = self.last_BN[:, -window:]
        found_BV = torch.zeros(B, V + 1, dtype=torch.bool, device=last_BN.device)
        return found_BV.scatter_(1, torch.where(last_BN < 0, V, last_BN), True)[:, :V]

    def add(self, tokens_B: Int[Tensor, "B"]) -> None:
        """Count one more token in each row, in place."""
        self.written_BV.scatter_add_(1, tokens_B[:, None], torch.ones_like(self.written_BV[:, :1]))
        if self.last_BN is not None:
            self.last_BN.copy_(torch.cat([self.last_BN[:, 1:], tokens_B[:, None]], 1))

    def select(self, rows: Sequence[int]) -> "History":
        """Return the history of the given rows."""
        kept = torch.tensor(rows, dtype=torch.long, device=self.prompt_BV.device)
        last_BN = None if self.last_BN is None else self.last_BN[kept]
        return History(self.prompt_BV[kept], self.written_BV[kept], last_BN)


def _last(rows: Sequence[Sequence[int]], answers: Sequence[Sequence[int]], window: int) -> Int[Tensor, "B N"]:
    """Return the last tokens of rows and their answers, behind -1 where there are fewer."""
    found_BN = torch.full((len(rows), window), -1, dtype=torch.long)
    for row, ids in enumerate(rows):
        answer = answers[row] if answers else ()
        last_ids = [*ids[-window:], *answer[-window:]][-window:]
        found_BN[row, window - len(last_ids) :] = torch.tensor(last_ids, dtype=torch.long)
    return found_BN


Filter = Callable[[Tensor, History], Tensor]
"""From logits ``[B, V]`` and what each row holds already to logits ``[B, V]``."""


@dataclass(frozen=True)
class VocabularyLimit:
    """Keep the ids below ``size``: a model's vocabulary may be padded with ids that its tokenizer does not have."""

    size: int

    def __call__(self, logits_BV: Float[Tensor, "B V"], history: History | None = None) -> Float[Tensor, "B V"]:
        """Return the logits, those of the other tokens at minus infinity."""
        if logits_BV.shape[-1] <= self.size:
            return logits_BV
        padding_V = torch.arange(logits_BV.shape[-1], device=logits_BV.device) >= self.size
        return logits_BV.masked_fill(padding_V, float("-inf"))


@dataclass(frozen=True)
class LogitBias:
    """``z_i + bias_i`` for the tokens that have one: 100 chooses a token, -100 forbids it, as in OpenAI's interface."""

    biases: tuple[tuple[int, float | int], ...]

    @staticmethod
    def of(biases: Mapping[int, float | int]) -> "LogitBias":
        """Return the filter of these biases by id."""
        return LogitBias(tuple(sorted(biases.items())))

    def __call__(self, logits_BV: Float[Tensor, "B V"], history: History) -> Float[Tensor, "B V"]:
        """Return the logits with the biases added."""
        ids = torch.tensor([id for id, _ in self.biases], dtype=torch.long, device=logits_BV.device)
        values = torch.tensor([value for _, value in self.biases], dtype=logits_BV.dtype, device=logits_BV.device)
        return logits_BV.index_add(1, ids, values.expand(len(logits_BV), -1))


@dataclass(frozen=True)
class RepetitionPenalty:
    """``z / penalty`` where ``z > 0``, else ``z * penalty``, for every token in the row (CTRL, Keskar et al. 2019).

    With a ``window`` of N, for the last N tokens of the row alone, as llama.cpp has it.
    """

    penalty: float | int
    window: int | None = None

    def __call__(self, logits_BV: Float[Tensor, "B V"], history: History) -> Float[Tensor, "B V"]:
        """Make repeated tokens less likely; a penalty of one changes nothing."""
        lowered_BV = torch.where(logits_BV > 0, logits_BV / self.penalty, logits_BV * self.penalty)
        seen_BV = history.seen if self.window is None else history.within(self.window)
        return torch.where(seen_BV, lowered_BV, logits_BV)


@dataclass(frozen=True)
class PresencePenalty:
    """``z - penalty`` for every token that the answer holds, as in OpenAI's interface; the prompt does not count."""

    penalty: float | int

    def __call__(self, logits_BV: Float[Tensor, "B V"], history: History) -> Float[Tensor, "B V"]:
        """Make tokens of the answer less likely, below 0 more likely."""
        return logits_BV - self.penalty * (history.written_BV > 0)


@dataclass(frozen=True)
class FrequencyPenalty:
    """``z - penalty * count``, by how many times the answer holds a token, as in OpenAI's interface."""

    penalty: float | int

    def __call__(self, logits_BV: Float[Tensor, "B V"], history: History) -> Float[Tensor, "B V"]:
        """Make tokens less likely with each time they were written, below 0 more likely."""
        return logits_BV - self.penalty * history.written_BV


@dataclass(frozen=True)
class Temperature:
    """``z / temperature``: below one sharpens the distribution, above one flattens it (Ackley et al. 1985).

    Differs from Hugging Face: the greatest logit becomes 0 first, so that no temperature above 0 overflows; the
    probabilities are the same.
    """

    temperature: float | int

    def __call__(self, logits_BV: Float[Tensor, "B V"], history: History) -> Float[Tensor, "B V"]:
        """Scale the logits."""
        return (logits_BV - logits_BV.amax(-1, keepdim=True)) / self.temperature


@dataclass(frozen=True)
class TopK:
    """Keep the ``k`` most probable tokens, and those equal to the last of them (Fan et al. 2018)."""

    k: int

    def __call__(self, logits_BV: Float[Tensor, "B V"], history: History) -> Float[Tensor, "B V"]:
        """Return the logits, those of the other tokens at minus infinity."""
        least_B1 = logits_BV.topk(min(self.k, logits_BV.shape[-1])).values[:, -1:]
        return logits_BV.masked_fill(logits_BV < least_B1, float("-inf"))


@dataclass(frozen=True)
class TopP:
    """Nucleus: the fewest most probable tokens whose mass reaches ``p`` (Holtzman et al. 2020, section 3.1)."""

    p: float | int

    def __call__(self, logits_BV: Float[Tensor, "B V"], history: History) -> Float[Tensor, "B V"]:
        """Hide a token when those before it already hold ``p``; the first always stays."""
        return _fewest(logits_BV, logits_BV, self.p)


@dataclass(frozen=True)
class TypicalP:
    """Keep the fewest tokens whose surprise lies closest to what is expected, and whose mass reaches ``p``.

    Closest is ``|-log p_i - H|``, where ``H`` is the entropy of the next token (locally typical sampling, Meister et
    al. 2023, equation 5); so a token may be left out because it is too probable.
    """

    p: float | int

    def __call__(self, logits_BV: Float[Tensor, "B V"], history: History) -> Float[Tensor, "B V"]:
        """Hide a token when more typical ones already hold ``p``; the most typical always stays."""
        logp_BV = logits_BV.log_softmax(-1)
        # 0 log 0 is 0: a token that is impossible adds nothing to the entropy, and comes last.
        entropy_B1 = -(logp_BV.exp() * logp_BV).nan_to_num(0.0).sum(-1, keepdim=True)
        return _fewest(logits_BV, -(logp_BV + entropy_B1).abs(), self.p)


@dataclass(frozen=True)
class MinP:
    """Keep tokens at least ``p`` times as probable as the most probable one (Nguyen et al. 2024)."""

    p: float | int

    def __call__(self, logits_BV: Float[Tensor, "B V"], history: History) -> Float[Tensor, "B V"]:
        """Return the logits, those of the other tokens at minus infinity."""
        mass_BV = logits_BV.softmax(-1)
        return logits_BV.masked_fill(mass_BV < self.p * mass_BV.amax(-1, keepdim=True), float("-inf"))


LOGITS_ALONE = (VocabularyLimit, LogitBias, Temperature, TopK, TopP, TypicalP, MinP)
"""The filters that look at the logits and not at the history."""


_NEAR = 512
"""Tokens of the highest ranks that are put in order first: most often no other can stay."""


def _fewest(logits_BV: Float[Tensor, "B V"], rank_BV: Float[Tensor, "B V"], p: float | int) -> Float[Tensor, "B V"]:
    """Hide a token when those of a higher rank already hold the mass ``p``; the first always stays."""
    mass_BV = logits_BV.softmax(-1)
    vocabulary = logits_BV.shape[-1]
    ids_BN, stays_BN, sure = _staying(rank_BV, mass_BV, p, min(_NEAR, vocabulary))
    if not sure:
        ids_BN, stays_BN, _ = _staying(rank_BV, mass_BV, p, vocabulary)
    hidden_BV = torch.ones_like(logits_BV, dtype=torch.bool).scatter(1, ids_BN, ~stays_BN)
    return logits_BV.masked_fill(hidden_BV, float("-inf"))


def _staying(
    rank_BV: Float[Tensor, "B V"], mass_BV: Float[Tensor, "B V"], p: float | int, near: int
) -> tuple[Int[Tensor, "B N"], Bool[Tensor, "B N"], bool]:
    """Return the ids of the highest ranks, which of them stay, and whether no other token could.

    Of tokens of one rank the lower id is the first.
    """
    by_id_BN = rank_BV.topk(near).indices.sort(-1).values
    order_BN = rank_BV.gather(1, by_id_BN).argsort(dim=-1, descending=True, stable=True)
    ids_BN = by_id_BN.gather(1, order_BN)
    ranks_BN, own_BN = rank_BV.gather(1, ids_BN), mass_BV.gather(1, ids_BN)
    stays_BN = own_BN.cumsum(-1) - own_BN < p
    stays_BN[:, 0] = True
    least_B = ranks_BN.masked_fill(~stays_BN, float("inf")).amin(-1)
    return ids_BN, stays_BN, near == rank_BV.shape[1] or bool((least_B > ranks_BN[:, -1]).all())
