"""CLIP's picture side (Radford et al. 2021): the vector of a picture, as a text's would be.

Peculiar to it: a ViT whose patches have no bias, with a norm before its blocks and one behind the class token alone,
whose vector is projected to the space of the texts or left as it is. Beside it stands the whole model, of the family
``clip``. A picture of another size is read with positions interpolated to it.
"""

from collections.abc import Mapping
from typing import Any

from orrery.checkpoints.rules import Rule, rename
from orrery.families import _clip, _vit
from orrery.families._config import Config
from orrery.models.encoder import Encoder

ARCHITECTURE, BARE = "CLIPVisionModelWithProjection", "CLIPVisionModel"
DEFAULTS: Mapping[str, Any] = _clip.PICTURES
TINY: Mapping[str, Any] = _clip.TINY_PICTURES


def spec(config: Mapping[str, Any]) -> Encoder.Spec:
    """Return the architecture that a ``config.json`` describes."""
    c = Config("clip_vision_model", config, DEFAULTS, ignored=_clip.IGNORED)
    heads = {
        ARCHITECTURE: {"embedding": _clip.class_vector(c, c["projection_dim"])},
        BARE: {"pooled": _clip.class_vector(c)},
    }
    return _clip.pictures(c, _vit.chosen(c, ARCHITECTURE, heads))


def WEIGHTS(config: Mapping[str, Any]) -> tuple[Rule, ...]:  # noqa: N802 - the name of a family's rules
    """Return the rules of the files; a bare model's names begin without ``vision_model``."""
    base = _vit.base(config, BARE, "vision_model.")
    head = rename("visual_projection.weight", "heads.embedding.transform.1.linear.weight")
    return (*_clip.picture_rules(base, "", "embedding" if base else "pooled"), head)


def LEGACY_NAMES(config: Mapping[str, Any]) -> Mapping[str, str | None]:  # noqa: N802 - the name of a family's names
    """Return the names of old files, whose bare models have the whole model's."""
    return {**_clip.OLD, **({r"^vision_model\.": ""} if _vit.base(config, BARE, "x") == "" else {})}
