"""SigLIP's text side (Zhai et al. 2023): the vector of a text, as a picture's would be.

Peculiar to it: a pre-LN stack in which every token sees all; a text's vector is the final one of its last token behind
a matrix. It was trained on texts that are filled with the padding token up to the context, all of which is read: give
it such rows for the vectors that the whole model, of the family ``siglip``, compares.
"""

from collections.abc import Mapping
from typing import Any

from orrery.checkpoints.rules import Rule
from orrery.families import _clip, _siglip, _vit
from orrery.families._config import Config
from orrery.models.encoder import Encoder
from orrery.nn.spec import ModuleSpec

ARCHITECTURE = "SiglipTextModel"
DEFAULTS: Mapping[str, Any] = _siglip.TEXT
TINY: Mapping[str, Any] = _siglip.TINY_TEXT


def spec(config: Mapping[str, Any]) -> Encoder.Spec:
    """Return the architecture that a ``config.json`` describes."""
    c = Config("siglip_text_model", config, DEFAULTS)
    heads: Mapping[str, ModuleSpec] = {"pooled": _siglip.last_vector(c)}
    return _siglip.texts(c, _vit.chosen(c, ARCHITECTURE, {ARCHITECTURE: heads}))


WEIGHTS: tuple[Rule, ...] = _siglip.text_rules("", "", "pooled")

LEGACY_NAMES: Mapping[str, str | None] = {**_clip.OLD, r"^text_model\.": ""}
