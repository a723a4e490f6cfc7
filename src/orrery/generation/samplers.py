"""Samplers: from the logits of the next token to the token, by composed filters and one draw."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import torch
from jaxtyping import Float, Int
from torch import Tensor

from orrery.errors import UsageError
from orrery.generation.filters import (
    LOGITS_ALONE,
    Filter,
    FrequencyPenalty,
    History,
    LogitBias,
    MinP,
    PresencePenalty,
    RepetitionPenalty,
    Temperature,
    TopK,
    TopP,
    TypicalP,
    VocabularyLimit,
)

Selection = Callable[[Tensor, Sequence[torch.Generator]], Tensor]
"""From logits ``[B, V]`` and one generator a row to ids ``[B]``."""


def most_probable(logits_BV: Float[Tensor, "B V"], generators: Sequence[torch.Generator]) -> Int[Tensor, "B"]:
    """Return the token of the highest logit, the lowest id among equals; draws nothing."""
    if logits_BV.device.type != "cpu":
        return logits_BV.argmax(-1)
    return torch.from_numpy(logits_BV.numpy().argmax(-1))  # the same in a tenth of the time


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

    @property
    def draws(self) -> bool:
        """Whether a token is drawn; else it is the most probable one."""
        return self.pick is draw

    @property
    def looks_back(self) -> bool:
        """Whether a filter may ask which tokens a row holds."""
        return not all(isinstance(keep, LOGITS_ALONE) for keep in self.filters)

    @property
    def window(self) -> int:
        """How many of the last tokens of a row a filter asks for in their order."""
        return max((keep.window or 0 for keep in self.filters if isinstance(keep, RepetitionPenalty)), default=0)

    def filtered(self, logits_BV: Float[Tensor, "B V"], history: History) -> Float[Tensor, "B V"]:
        """Return the logits that the pick sees, in float32 at least."""
        logits_BV = logits_BV.to(torch.promote_types(logits_BV.dtype, torch.float32))
        for keep in self.filters:
            logits_BV = keep(logits_BV, history)
        return logits_BV

    def __call__(
        self, logits_BV: Float[Tensor, "B V"], history: History, generators: Sequence[torch.Generator]
    ) -> Int[Tensor, "B"]:
        """Return the next token of each row."""
        return self.pick(self.filtered(logits_BV, history), generators)


MOST = 10_000
"""What may be added to a logit or taken from it: far more than logits differ by, and no number overflows."""
MOST_BACK = 1 << 20
"""Tokens that a penalty may look back at."""
GREEDY = Sampler((), most_probable)


def sampler(
    *,
    temperature: float | int = 0,
    top_k: int | None = None,
    top_p: float | int | None = None,
    min_p: float | int | None = None,
    typical_p: float | int | None = None,
    repetition_penalty: float | int | None = None,
    repetition_window: int | None = None,
    presence_penalty: float | int | None = None,
    frequency_penalty: float | int | None = None,
    logit_bias: Mapping[int, float | int] | None = None,
    vocabulary: int | None = None,
) -> Sampler:
    """Return the sampler that these settings describe, its filters in Hugging Face's order.

    Args:
        temperature: divides the logits; 0 picks the most probable token, and then only bias and penalties count.
        top_k: how many tokens stay possible.
        top_p: the mass that stays possible, in (0, 1].
        min_p: the least probability, as a share of the greatest, in [0, 1].
        typical_p: the mass of the most typical tokens that stays possible, in (0, 1].
        repetition_penalty: 1 changes nothing, more than 1 discourages tokens of the prompt and the answer.
        repetition_window: how many of the last tokens ``repetition_penalty`` counts; all where it is left out.
        presence_penalty: taken from the logit of each token of the answer; 0 changes nothing.
        frequency_penalty: the same, once for each time that the answer holds the token.
        logit_bias: what is added to the logits of some ids.
        vocabulary: ids from here on are never chosen; for models whose vocabulary is padded.

    Raises:
        UsageError: a setting outside its range, named with its value.
    """
    _check("temperature", temperature, 0 <= temperature < float("inf"), "0 (greedy) or more")
    _check("top_k", top_k, top_k is None or top_k >= 1, "at least 1")
    for name, share in (("top_p", top_p), ("typical_p", typical_p)):
        _check(name, share, share is None or 0 < share <= 1, "above 0 and at most 1")
    _check("min_p", min_p, min_p is None or 0 <= min_p <= 1, "between 0 and 1")
    penalty = repetition_penalty
    _check("repetition_penalty", penalty, penalty is None or 0 < penalty < float("inf"), "above 0; 1 changes nothing")
    window = repetition_window
    _check("repetition_window", window, window is None or 1 <= window <= MOST_BACK, f"from 1 to {MOST_BACK:,}")
    for name, taken in (("presence_penalty", presence_penalty), ("frequency_penalty", frequency_penalty)):
        _check(name, taken, taken is None or abs(taken) <= MOST, f"from -{MOST:,} to {MOST:,}; 0 changes nothing")
    greedy = temperature == 0
    settings: tuple[tuple[Callable[..., Filter], float | int | None], ...] = (
        (VocabularyLimit, vocabulary),
        (partial(RepetitionPenalty, window=repetition_window), repetition_penalty),
        (PresencePenalty, presence_penalty or None),
        (FrequencyPenalty, frequency_penalty or None),
        (Temperature, None if greedy else temperature),
        (TopK, None if greedy else top_k),
        (TopP, None if greedy or top_p == 1 else top_p),
        (MinP, None if greedy else min_p),
        (TypicalP, None if greedy or typical_p == 1 else typical_p),
    )
    bias = (_biased(logit_bias, vocabulary),) if logit_bias else ()
    filters = (*bias, *(kind(value) for kind, value in settings if value is not None))
    return Sampler(filters, most_probable if greedy else draw)


def _biased(biases: Mapping[int, float | int], vocabulary: int | None) -> LogitBias:
    """Return the filter of these biases, each of an id that can be chosen."""
    for id, value in biases.items():
        if type(id) is not int or not 0 <= id < (vocabulary or float("inf")):
            size = "" if vocabulary is None else f" below {vocabulary:,}"
            raise UsageError(f"logit_bias has no token {str(id)[:40]!r}", f"give ids from 0{size}")
        sound = isinstance(value, int | float) and abs(value) <= MOST
        _check(f"logit_bias of {id}", value, sound, f"a number from -{MOST:,} to {MOST:,}; -100 forbids a token")
    return LogitBias.of(biases)


def _check(name: str, value: float | int | None, sound: bool, allowed: str) -> None:
    if not sound:
        raise UsageError(f"{name} = {value} is not possible", f"it must be {allowed}")
