"""CLIP (Radford et al. 2021): pictures and the texts that go with them, as vectors of one space.

Peculiar to it: two sides that never see each other but in the product of their vectors, whose scale is learned; a
causal text side, whose vector is that of the end token; a picture side without a bias on its patches and with a norm
before its blocks; the sigmoid form of gelu on both. The picture side alone classifies by the mean of its patches.

The head ``similarity`` scores every picture with every text; ``images`` and ``texts`` give the vectors, of length one.
"""

from collections.abc import Mapping
from typing import Any

from orrery.checkpoints.rules import Rule, rename
from orrery.families import _clip, _heads, _vit
from orrery.families._config import Config
from orrery.families._keys import number, size, table
from orrery.models.dual_encoder import EMBEDDING, DualEncoder, Side, Similarity
from orrery.models.encoder import Encoder
from orrery.nn.heads import MeanBehindFirst, Pooler, SequenceHead

ARCHITECTURE, CLASSES = "CLIPModel", "CLIPForImageClassification"
DEFAULTS: Mapping[str, Any] = {
    "text_config": table({}),
    "vision_config": table({}),
    "projection_dim": size(512),
    "logit_scale_init_value": number(2.6592),
    **_heads.DEFAULTS,
}
TINY: Mapping[str, Any] = {
    "text_config": _clip.TINY_TEXT,
    "vision_config": _clip.TINY_PICTURES,
    "projection_dim": 10,
}
_OLD = {"text_config_dict": None, "vision_config_dict": None}
"""Copies of the parts in the first files; where they say anything, it is refused."""


def spec(config: Mapping[str, Any]) -> DualEncoder.Spec | Encoder.Spec:
    """Return the architecture that a ``config.json`` describes."""
    c = Config("clip", config, DEFAULTS, fixed=_OLD, ignored=_clip.IGNORED)
    pictures = Config("clip: vision_config", c["vision_config"], _clip.PICTURES, ignored=_clip.IGNORED)
    texts = Config("clip: text_config", c["text_config"], _clip.TEXT, ignored=_clip.IGNORED)
    classes = SequenceHead.Spec(pooler=Pooler.Spec(pool=MeanBehindFirst()), **_heads.of_row(c))
    known = {ARCHITECTURE: {}, CLASSES: {"sequence": classes, "vector": _clip.class_vector(pictures)}}
    if heads := _vit.chosen(c, ARCHITECTURE, known):
        return _clip.pictures(pictures, heads)
    width = c["projection_dim"]
    reads = _clip.texts(texts, {EMBEDDING: _clip.end_vector(width)})
    return DualEncoder.Spec(
        width=width,
        context=reads.context,
        sees=_clip.pictures(pictures, {EMBEDDING: _clip.class_vector(pictures, width)}),
        reads=reads,
        heads={
            "similarity": Similarity.Spec(scale=float(c["logit_scale_init_value"])),
            "images": Side.Spec(order=0),
            "texts": Side.Spec(order=1),
        },
    )


def WEIGHTS(config: Mapping[str, Any]) -> tuple[Rule, ...]:  # noqa: N802 - the name of a family's rules
    """Return the rules of the files."""
    if CLASSES in (config.get("architectures") or ()):
        classes = (rename(f"classifier.{end}", f"heads.sequence.labels.{end}") for end in _vit.ENDS)
        return (*_clip.picture_rules("vision_model.", "", "vector"), *classes)
    return (
        *_clip.picture_rules("vision_model.", "sees.", EMBEDDING),
        *_clip.text_rules("text_model.", "reads."),
        rename("visual_projection.weight", f"sees.heads.{EMBEDDING}.transform.1.linear.weight"),
        rename("text_projection.weight", f"reads.heads.{EMBEDDING}.transform.linear.weight"),
        rename("logit_scale", "heads.similarity.scale"),
    )


LEGACY_NAMES = _clip.OLD
