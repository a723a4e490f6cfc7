"""Captioning: each token of a caption from the picture and the true tokens before it."""

from typing import Literal

from orrery.objectives import register
from orrery.objectives._from_source import FromSource
from orrery.schema.numbers import Fraction
from orrery.schema.section import Section


@register
class Captioning(FromSource):
    """``-log p(y_t | picture, y_<t)`` in nats, with the true ``y_<t`` whatever the model would have written.

    Vinyals et al. 2015, section 3. A batch has ``images``, ``ids`` (the start token, then the caption) and ``targets``
    (the caption, then the end token), -100 where there is none; label smoothing is that of `CausalLanguageModel`.
    """

    class Settings(Section):
        """Prediction of each token of a caption from the picture and the true tokens before it."""

        kind: Literal["captioning"] = "captioning"
        label_smoothing: Fraction = 0.0

    needs = ("images", "ids", "targets")
    reads = "images"
    families = "vision_encoder_decoder, blip"

    def __init__(self, label_smoothing: float = 0.0) -> None:
        self.label_smoothing = label_smoothing

    def evaluated(self) -> "Captioning":
        """Return the objective without label smoothing."""
        return Captioning()
