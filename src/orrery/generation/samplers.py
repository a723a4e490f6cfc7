"""Samplers: from the logits of the next token to the token, by composed filters and one draw."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from orrery.errors import UsageError

Filter = Callable[[Tensor, Tensor], Tensor]
"""From logits ``[B, V]`` and the tokens each row holds already, ``[B, V]`` bool, to logits ``[B, V]``."""

Selection = Callable[[Tensor, Sequence[torch.Generator]], Tensor]
"""From logits ``[B, V]`` and one generator a row to ids ``[B]``."""


@dataclass(frozen=True)
class RepetitionPenalty:
    """``z / penalty`` where ``z > 0``, else ``z * penalty``, for every token in the row (CTRL, Keskar et al. 2019)."""

    penalty: float | int

    def __call__(self, logits_BV: Float[Tensor, "B V"], seen_BV: Bool[Tensor, "B V"]) -> Float[Tensor, "B V"]:
        """Make repeated tokens less likely; a penalty of one changes nothing."""
        lowered_BV = torch.where(logits_BV > 0, logits_BV / self.penalty, logits_BV * self.penalty)
        return torch.where(seen_BV, lowered_BV, logits_BV)


@dataclass(frozen=True)
class Temperature:
    """``z / temperature``: below one sharpens the distribution, above one flattens it (Ackley et al. 1985).

    Differs from Hugging Face: the greatest logit becomes 0 first, so that no temperature above 0 overflows; the
    probabilities are the same.
    """

    temperature: float | int

    def __call__(self, logits_BV: Float[Tensor, "B V"], seen_BV: Bool[Tensor, "B V"]) -> Float[Tensor, "B V"]:
        """Scale the logits."""
        return (logits_BV - logits_BV.amax(-1, keepdim=True)) / self.temperature


@dataclass(frozen=True)
class TopK:
    """Keep the ``k`` most probable tokens, and those equal to the last of them (Fan et al. 2018)."""

    k: int

    def __call__(self, logits_BV: Float[Tensor, "B V"], seen_BV: Bool[Tensor, "B V"]) -> Float[Tensor, "B V"]:
        """Return the logits, those of the other tokens at minus infinity."""
        least_B1 = logits_BV.topk(min(self.k, logits_BV.shape[-1])).values[:, -1:]
        return logits_BV.masked_fill(logits_BV < least_B1, float("-inf"))


@dataclass(frozen=True)
class TopP:
    """Nucleus: the fewest most probable tokens whose mass reaches ``p`` (Holtzman et al. 2020, section 3.1)."""

    p: float | int

    def __call__(self, logits_BV: Float[Tensor, "B V"], seen_BV: Bool[Tensor, "B V"]) -> Float[Tensor, "B V"]:
        """Hide a token when those before it already hold ``p``; the first always stays."""
        sorted_BV, order_BV = logits_BV.sort(dim=-1, descending=True, stable=True)
        mass_BV = sorted_BV.softmax(-1)
        outside_BV = mass_BV.cumsum(-1) - mass_BV >= self.p
        outside_BV[:, 0] = False
        hidden_BV = torch.zeros_like(outside_BV).scatter(1, order_BV, outside_BV)
        return logits_BV.masked_fill(hidden_BV, float("-inf"))


@dataclass(frozen=True)
class MinP:
    """Keep tokens at least ``p`` times as probable as the most probable one (Nguyen et al. 2024)."""

    p: float | int

    def __call__(self, logits_BV: Float[Tensor, "B V"], seen_BV: Bool[Tensor, "B V"]) -> Float[Tensor, "B V"]:
        """Return the logits, those of the other tokens at minus infinity."""
        mass_BV = logits_BV.softmax(-1)
        return logits_BV.masked_fill(mass_BV < self.p * mass_BV.amax(-1, keepdim=True), float("-inf"))


@dataclass(frozen=True)
class VocabularyLimit:
    """Keep the ids below ``size``: a model's vocabulary may be padded with ids that its tokenizer does not have."""

    size: int

    def __call__(self, logits_BV: Float[Tensor, "B V"], seen_BV: Bool[Tensor, "B V"]) -> Float[Tensor, "B V"]:
        """Return the logits, those of the other tokens at minus infinity."""
        padding_V = torch.arange(logits_BV.shape[-1], device=logits_BV.device) >= self.size
        return logits_BV.masked_fill(padding_V, float("-inf"))


def most_probable(logits_BV: Float[Tensor, "B V"], generators: Sequence[torch.Generator]) -> Int[Tensor, "B"]:
    """Return the token of the highest logit, the lowest id among equals; draws nothing."""
    return logits_BV.argmax(-1)


def draw(logits_BV: Float[Tensor, "B V"], generators: Sequence[torch.Generator]) -> Int[Tensor, "B"]:
    """Draw from ``softmax(logits)`` by inverting its distribution function at one uniform number a row.

    Each row asks its own generator, on the CPU, so its draw depends neither on its neighbours nor on the device.
    """
    uniform_B = torch.cat([torch.rand(1, dtype=torch.float64, generator=rng) for rng in generators])
    reached_BV = logits_BV.double().softmax(-1).cumsum(-1)
    total_B1 = reached_BV[:, -1:]
    # Rounding may lift the product to the total itself, behind which no token lies.
    below_B1 = total_B1.nextafter(torch.zeros_like(total_B1))
    goal_B1 = torch.minimum(uniform_B[:, None].to(total_B1.device) * total_B1, below_B1)
    return torch.searchsorted(reached_BV, goal_B1, right=True)[:, 0]


@dataclass(frozen=True)
class Sampler:
    """Filters in order, then a pick."""

    filters: tuple[Filter, ...]
    pick: Selection

    def filtered(self, logits_BV: Float[Tensor, "B V"], seen_BV: Bool[Tensor, "B V"]) -> Float[Tensor, "B V"]:
        """Return the logits that the pick sees."""
        for keep in self.filters:
            logits_BV = keep(logits_BV, seen_BV)
        return logits_BV

    def __call__(
        self,
        logits_BV: Float[Tensor, "B V"],
        seen_BV: Bool[Tensor, "B V"],
        generators: Sequence[torch.Generator],
    ) -> Int[Tensor, "B"]:
        """Return the next token of each row."""
        wide = torch.promote_types(logits_BV.dtype, torch.float32)
        return self.pick(self.filtered(logits_BV.to(wide), seen_BV), generators)


GREEDY = Sampler((), most_probable)


def sampler(
    *,
    temperature: float | int = 0,
    top_k: int | None = None,
    top_p: float | int | None = None,
    min_p: float | int | None = None,
    repetition_penalty: float | int | None = None,
    vocabulary: int | None = None,
) -> Sampler:
    """Return the sampler that these settings describe, its filters in Hugging Face's order.

    Args:
        temperature: divides the logits; 0 picks the most probable token, and then only the penalty has an effect.
        top_k: how many tokens stay possible.
        top_p: the mass that stays possible, in (0, 1].
        min_p: the least probability, as a share of the greatest, in [0, 1].
        repetition_penalty: 1 changes nothing, more than 1 discourages tokens of the prompt and the answer.
        vocabulary: ids from here on are never chosen; for models whose vocabulary is padded.

    Raises:
        UsageError: a setting outside its range, named with its value.
    """
    _check("temperature", temperature, 0 <= temperature < float("inf"), "0 (greedy) or more")
    _check("top_k", top_k, top_k is None or top_k >= 1, "at least 1")
    _check("top_p", top_p, top_p is None or 0 < top_p <= 1, "above 0 and at most 1")
    _check("min_p", min_p, min_p is None or 0 <= min_p <= 1, "between 0 and 1")
    penalty = repetition_penalty
    _check(
        "repetition_penalty",
        penalty,
        penalty is None or 0 < penalty < float("inf"),
        "above 0; 1 changes nothing",
    )
    greedy = temperature == 0
    settings: tuple[tuple[Callable[..., Filter], float | int | None], ...] = (
        (VocabularyLimit, vocabulary),
        (RepetitionPenalty, repetition_penalty),
        (Temperature, None if greedy else temperature),
        (TopK, None if greedy else top_k),
        (TopP, None if greedy else top_p),
        (MinP, None if greedy else min_p),
    )
    filters = tuple(kind(value) for kind, value in settings if value is not None)
    return Sampler(filters, most_probable if greedy else draw)


def _check(name: str, value: float | int | None, sound: bool, allowed: str) -> None:
    if not sound:
        raise UsageError(f"{name} = {value} is not possible", f"it must be {allowed}")
