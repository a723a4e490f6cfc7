"""Samplers: from the logits of the next token to the token, by composed filters and one draw."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from operator import attrgetter
from typing import Any, Unpack

import torch
from jaxtyping import Float, Int
from torch import Tensor

from orrery.errors import UsageError
from orrery.generation.filters import LOGITS_ALONE, Filter, History, RepetitionPenalty, VocabularyLimit
from orrery.schema.writing import DRAWING, SETTINGS, Drawing, Setting

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


GREEDY = Sampler((), most_probable)


def sampler(*, vocabulary: int | None = None, **settings: Unpack[Drawing]) -> Sampler:
    """Return the sampler that settings of ``orrery.schema.writing.Drawing`` describe.

    Its filters stand in Hugging Face's order: what counts in every choice, then what counts where tokens are drawn.
    Where no temperature above 0 is given, the most probable token is picked.

    Args:
        vocabulary: ids from here on are never chosen; for models whose vocabulary is padded.
        settings: how a token is chosen.

    Raises:
        UsageError: a setting outside its range, named with its value.
        TypeError: there is no such setting.
    """
    given: dict[str, Any] = dict(settings)
    if unknown := given.keys() - {*DRAWING}:
        raise TypeError(f"there is no setting {min(unknown)!r}; there are {', '.join(DRAWING)}")
    for name, value in given.items():
        SETTINGS[name].refuse(value)
    _refuse_ids(given.get("logit_bias") or {}, vocabulary)
    greedy = not given.get("temperature")
    chosen = [SETTINGS[name] for name in DRAWING if SETTINGS[name].about.filter]
    chosen.sort(key=lambda one: one.about.drawn)
    limit: tuple[Filter, ...] = () if vocabulary is None else (VocabularyLimit(vocabulary),)
    filters = (
        _filter(one, given)
        for one in chosen
        if not one.is_off(given.get(one.name)) and not (greedy and one.about.drawn)
    )
    return Sampler((*limit, *filters), most_probable if greedy else draw)


def _filter(setting: Setting, given: Mapping[str, Any]) -> Filter:
    """Return what follows a setting."""
    module, _, place = setting.about.filter.partition(":")
    made: Callable[..., Filter] = attrgetter(place)(import_module(module))
    return made(setting.plain(given[setting.name]), *(given.get(name) for name in setting.about.beside))


def _refuse_ids(biases: Mapping[int, float | int], vocabulary: int | None) -> None:
    """Refuse biases of ids that cannot be chosen."""
    for id in biases:
        if vocabulary is not None and int(id) >= vocabulary:
            raise UsageError(f"logit_bias has no token {str(id)[:40]!r}", f"give ids from 0 below {vocabulary:,}")
