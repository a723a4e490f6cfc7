"""The channels of a feed-forward: which of them move a token's logit, and what they promote."""

import re
from collections.abc import Iterable
from typing import ClassVar

from orrery.inspection.attribution.vocabulary import sums_parts
from orrery.page.views._difference import numbers, union
from orrery.page.views._inside import Inside
from orrery.page.views._payload import Payload
from orrery.page.views._view import View, ViewSubject, register
from orrery.page.views.lens import has_vocabulary, likeliest, spelled
from orrery.schema.section import Section

MOST = 20
_LAYER = re.compile(r"blocks\.(\d+)\.feed_forward\.hidden")


class NeuronsSettings(Section):
    """What can be asked.

    Attributes:
        layer: the block, or the nearest one whose feed-forward shows its channels (a mixture's does not).
        position: the token at which the channels are looked at; the last by default.
        token: the token whose logit they move; the likeliest by default.
        channels: which of them, with commas; those that move it most by default.
    """

    layer: int = 0
    position: int = -1
    token: int | None = None
    channels: str | None = None


@register
class NeuronsView(View):
    """Activation of a channel times its row of the output matrix, read by the head."""

    kind: ClassVar[str] = "neurons"
    order: ClassVar[int] = 50
    compares: ClassVar[bool] = True
    Settings: ClassVar[type[Section]] = NeuronsSettings

    def fits(self, subject: ViewSubject) -> bool:
        """Say whether there are feed-forwards whose channels can be told apart, and a vocabulary that reads sums."""
        inside = subject.inside
        if inside is None or not (inside.lm.model.spec.writes and has_vocabulary(inside)):
            return False
        return sums_parts(inside.lm.model) and bool(layers_of(inside))

    def saved(self, subject: ViewSubject) -> Iterable[Section]:
        """Return each block at the last token."""
        yield from (NeuronsSettings(layer=layer) for layer in layers_of(subject.seen))

    def aligned(self, edited: ViewSubject, clean: ViewSubject, settings: NeuronsSettings) -> NeuronsSettings:
        """Return settings that name the token, and the channels that move it most in either pass."""
        token = likeliest(clean.seen, settings.position) if settings.token is None else settings.token
        settings = settings.model_copy(update={"token": token})
        if settings.channels is not None:
            return settings
        both = [self.payload(subject, settings).tensors["channel"] for subject in (edited, clean)]
        return settings.model_copy(update={"channels": union(*both)})

    def payload(self, subject: ViewSubject, settings: NeuronsSettings) -> Payload:
        """Return the channels that move the logit most."""
        inside = subject.seen
        kept = inside.keeping_all_but_patterns()
        channels = None if settings.channels is None else numbers(settings.channels)
        layer = min(layers_of(inside), key=lambda one: abs(one - settings.layer))
        neurons = kept.neurons(layer, settings.token, position=settings.position, k=MOST, channels=channels)
        promoted_KN = neurons.promoted_BKN[0]
        facts = {
            "layers": layers_of(inside),
            "layer": layer,
            "position": settings.position,
            "token": int(neurons.token_B[0]),
            "spelled": spelled(inside, [*promoted_KN.flatten().tolist(), int(neurons.token_B[0])]),
            "all": float(neurons.effect_BF[0].sum()),
        }
        tensors = {
            "channel": neurons.channel_BK[0].int(),
            "activation": neurons.activation_BK[0].float(),
            "effect": neurons.effect_BK[0].float(),
            "promoted": promoted_KN.int(),
            "promoted_effect": neurons.promoted_effect_BKN[0].float(),
        }
        return Payload(facts, tensors, [neurons.check])


def layers_of(inside: Inside) -> list[int]:
    """Return the blocks whose feed-forward shows its channels."""
    return [int(match[1]) for key in inside.shapes if (match := _LAYER.fullmatch(key))]
