"""SigLIP (Zhai et al. 2023): pictures and texts as vectors of one space, each pair of them learnt by itself.

Peculiar to it: a text and a picture fit with the probability ``sigmoid(exp(s) v^T t + b)``, whatever else there is, so
that the scores of several texts need not sum to one; a text side in which every token sees all, whose vector stands at
the last token; a picture side without a class token, whose vector a learned query reads; gelu by its tanh formula.

Texts are filled with the padding token up to the context (64) and all of it is read: so the published ones were
trained. What asks with texts of its own does so; ids are read as they are given.

The head ``similarity`` scores every picture with every text; ``images`` and ``texts`` give the vectors, of length one.
"""

import math
from collections.abc import Mapping
from typing import Any

from orrery.checkpoints.layouts import Reshaped
from orrery.checkpoints.rules import Rule, rename
from orrery.errors import ModelFileError
from orrery.families import _clip, _heads, _siglip, _vit
from orrery.families._config import Config
from orrery.families._keys import table
from orrery.models.dual_encoder import EMBEDDING, DualEncoder, FilledRows, Side, Similarity
from orrery.models.encoder import Encoder
from orrery.nn.heads import Mean, Pooler, SequenceHead
from orrery.nn.spec import ModuleSpec

ARCHITECTURE, CLASSES = "SiglipModel", "SiglipForImageClassification"
DEFAULTS: Mapping[str, Any] = {"text_config": table({}), "vision_config": table({}), **_heads.DEFAULTS}
TINY: Mapping[str, Any] = {"text_config": _siglip.TINY_TEXT, "vision_config": _siglip.TINY_PICTURES}
_SCALE = math.log(10)
"""How the scale of a new model begins (Zhai et al. 2023, section 3.2)."""


def spec(config: Mapping[str, Any]) -> DualEncoder.Spec | Encoder.Spec:
    """Return the architecture that a ``config.json`` describes."""
    c = Config("siglip", config, DEFAULTS, ignored=("initializer_factor",))
    pictures = Config("siglip: vision_config", c["vision_config"], _siglip.PICTURES)
    texts = Config("siglip: text_config", c["text_config"], _siglip.TEXT)
    classes = SequenceHead.Spec(pooler=Pooler.Spec(pool=Mean()), **_heads.of_row(c))
    read: dict[str, ModuleSpec] = {"vector": _siglip.read_vector(pictures)} if pictures["vision_use_head"] else {}
    known = {ARCHITECTURE: {}, CLASSES: {"sequence": classes, **read}}
    if heads := _vit.chosen(c, ARCHITECTURE, known):
        return _siglip.pictures(pictures, heads)
    _check(pictures, texts)
    reads = _siglip.texts(texts, {EMBEDDING: _siglip.last_vector(texts)})
    return DualEncoder.Spec(
        width=_siglip.width_of(texts),
        context=reads.context,
        sees=_siglip.pictures(pictures, {EMBEDDING: _siglip.read_vector(pictures)}),
        reads=reads,
        fill=FilledRows(length=reads.context, token=max(0, texts["pad_token_id"] or 0)),
        heads={
            "similarity": Similarity.Spec(scale=_SCALE, bias=True),
            "images": Side.Spec(order=0),
            "texts": Side.Spec(order=1),
        },
    )


def _check(pictures: Config, texts: Config) -> None:
    """Refuse vectors of two widths, and a picture without one.

    Raises:
        ModelFileError: there are such.
    """
    if not pictures["vision_use_head"]:
        raise ModelFileError(
            f"{pictures.family}: vision_use_head = False leaves a picture without a vector",
            "the reference cannot compare it either; name the class SiglipVisionModel for its stream",
        )
    if pictures["hidden_size"] != (width := _siglip.width_of(texts)):
        raise ModelFileError(
            f"siglip: vectors of pictures are {pictures['hidden_size']} wide (hidden_size), those of texts {width} "
            "(projection_size)",
            "give both one width",
        )


def WEIGHTS(config: Mapping[str, Any]) -> tuple[Rule, ...]:  # noqa: N802 - the name of a family's rules
    """Return the rules of the files."""
    if CLASSES in (config.get("architectures") or ()):
        classes = (rename(f"classifier.{end}", f"heads.sequence.labels.{end}") for end in _vit.ENDS)
        return (*_siglip.picture_rules("vision_model.", "", "vector"), *classes)
    return (
        *_siglip.picture_rules("vision_model.", "sees.", EMBEDDING),
        *_siglip.text_rules("text_model.", "reads.", EMBEDDING),
        Rule("logit_scale", ("heads.similarity.scale",), Reshaped(1)),
        Rule("logit_bias", ("heads.similarity.bias",), Reshaped(1)),
    )


LEGACY_NAMES = _clip.OLD
