"""SigLIP's picture side (Zhai et al. 2023): the vector of a picture, as a text's would be.

Peculiar to it: a ViT without a class token; a learned query reads the final stream by attention, and what it has read
goes through two layers. Without that head (``vision_use_head``) the stream is all. Beside it stands the whole model, of
the family ``siglip``. A picture of another size is read with positions interpolated to it.
"""

from collections.abc import Mapping
from typing import Any

from orrery.checkpoints.rules import Rule
from orrery.families import _clip, _siglip, _vit
from orrery.families._config import Config
from orrery.models.encoder import Encoder
from orrery.nn.spec import ModuleSpec

ARCHITECTURE = "SiglipVisionModel"
DEFAULTS: Mapping[str, Any] = _siglip.PICTURES
TINY: Mapping[str, Any] = _siglip.TINY_PICTURES


def spec(config: Mapping[str, Any]) -> Encoder.Spec:
    """Return the architecture that a ``config.json`` describes."""
    c = Config("siglip_vision_model", config, DEFAULTS)
    heads: Mapping[str, ModuleSpec] = {"pooled": _siglip.read_vector(c)} if c["vision_use_head"] else {}
    return _siglip.pictures(c, _vit.chosen(c, ARCHITECTURE, {ARCHITECTURE: heads}))


WEIGHTS: tuple[Rule, ...] = _siglip.picture_rules("", "", "pooled")

LEGACY_NAMES: Mapping[str, str | None] = {**_clip.OLD, r"^vision_model\.": ""}
