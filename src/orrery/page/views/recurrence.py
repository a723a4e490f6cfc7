"""The inside of a mixer with a state: what it lets in, what it keeps and what it reads, at every token."""

from collections.abc import Iterable, Mapping
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from orrery.errors import UsageError
from orrery.inspection.attribution.sublayers import sublayers
from orrery.nn.mixer import StatefulMixer
from orrery.page.views._inside import Inside
from orrery.page.views._payload import Payload
from orrery.page.views._view import View, ViewSubject, register
from orrery.schema.section import Section

MOST = 24
"""Channels that are drawn of each value."""
_OTHERS = {"added", "resid", "stepwise"}
"""What every branch shows, and the states a second time."""


class RecurrenceSettings(Section):
    """What can be asked.

    Attributes:
        mixer: which one, counted from zero in the order of computation.
    """

    mixer: int = 0


@register
class RecurrenceView(View):
    """``y_t, s_t = step(x_t, s_(t-1))``: the gates, decays, keys and values of the steps, channel by channel."""

    kind: ClassVar[str] = "recurrence"
    order: ClassVar[int] = 45
    Settings: ClassVar[type[Section]] = RecurrenceSettings

    def fits(self, subject: ViewSubject) -> bool:
        """Say whether a mixer of the pass keeps a state."""
        return subject.inside is not None and bool(mixers_of(subject.inside))

    def saved(self, subject: ViewSubject) -> Iterable[Section]:
        """Return each mixer."""
        yield from (RecurrenceSettings(mixer=number) for number in range(len(mixers_of(subject.seen))))

    def payload(self, subject: ViewSubject, settings: RecurrenceSettings) -> Payload:
        """Return the channels of every value that change most over the text, ``[channel, token]``.

        Raises:
            UsageError: there is no such mixer.
        """
        inside = subject.seen
        mixers = mixers_of(inside)
        if not 0 <= settings.mixer < len(mixers):
            raise UsageError(f"there is no mixer {settings.mixer}", f"there are {len(mixers)}, counted from zero")
        mixer = list(mixers)[settings.mixer]
        kept = inside.keeping(*(f"{mixer}.{name}" for name in mixers[mixer]))
        values = {name: kept[f"{mixer}.{name}"][0].float() for name in mixers[mixer]}
        drawn = {name: moving(value_LE) for name, value_LE in values.items()}
        facts = {
            "mixers": list(mixers),
            "mixer": settings.mixer,
            "channels": {name: channels.tolist() for name, channels in drawn.items()},
            "widths": {name: value_LE.shape[1] for name, value_LE in values.items()},
        }
        tensors = {name: values[name][:, channels].T.contiguous() for name, channels in drawn.items()}
        return Payload(facts, tensors, [check for check in inside.checks if "step by step" in check.name])


def mixers_of(inside: Inside) -> Mapping[str, list[str]]:
    """Return what each mixer with a state shows, in the order of computation, by where it stands."""
    by_mixer: dict[str, list[str]] = {}
    for layer in sublayers(inside.model.stack):
        for key, leaf in layer.leaves.items():
            if isinstance(leaf, StatefulMixer) and f"{key}.state" in inside.shapes:
                names = [one.removeprefix(f"{key}.") for one in inside.shapes if one.startswith(f"{key}.")]
                by_mixer[key] = [one for one in names if one not in _OTHERS and len(inside.shapes[f"{key}.{one}"]) == 3]
    return {key: names for key, names in by_mixer.items() if names}


def moving(value_LE: Float[Tensor, "L E"]) -> Tensor:
    """Return the channels that change most over the tokens, in their own order."""
    spread_E = value_LE.std(0, correction=0)
    return torch.topk(spread_E, min(MOST, len(spread_E))).indices.sort().values
