"""CLIP's text side (Radford et al. 2021): the vector of a text, as a picture's would be.

Peculiar to it: a causal pre-LN stack with the sigmoid form of gelu; a text's vector is the final one of its end token,
projected to the space of the pictures or as it is. Beside it stands the whole model, of the family ``clip``.
"""

from collections.abc import Mapping
from typing import Any

from orrery.checkpoints.rules import Rule, rename
from orrery.families import _clip, _vit
from orrery.families._config import Config
from orrery.models.encoder import Encoder

ARCHITECTURE, BARE = "CLIPTextModelWithProjection", "CLIPTextModel"
DEFAULTS: Mapping[str, Any] = _clip.TEXT
TINY: Mapping[str, Any] = _clip.TINY_TEXT


def spec(config: Mapping[str, Any]) -> Encoder.Spec:
    """Return the architecture that a ``config.json`` describes."""
    c = Config("clip_text_model", config, DEFAULTS, ignored=_clip.IGNORED)
    heads = {
        ARCHITECTURE: {"embedding": _clip.end_vector(c["projection_dim"])},
        BARE: {"pooled": _clip.end_vector()},
    }
    return _clip.texts(c, _vit.chosen(c, ARCHITECTURE, heads))


def WEIGHTS(config: Mapping[str, Any]) -> tuple[Rule, ...]:  # noqa: N802 - the name of a family's rules
    """Return the rules of the files; a bare model's names begin without ``text_model``."""
    head = rename("text_projection.weight", "heads.embedding.transform.linear.weight")
    return (*_clip.text_rules(_vit.base(config, BARE, "text_model."), ""), head)


def LEGACY_NAMES(config: Mapping[str, Any]) -> Mapping[str, str | None]:  # noqa: N802 - the name of a family's names
    """Return the names of old files, whose bare models have the whole model's."""
    return {**_clip.OLD, **({r"^text_model\.": ""} if _vit.base(config, BARE, "x") == "" else {})}
