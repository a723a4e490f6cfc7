"""ViT (Dosovitskiy et al. 2021): an image is worth sixteen by sixteen words.

Peculiar to it: patches in place of tokens, behind a learned class token; learned positions, as many as an image has
patches and one more; pre-LN as in GPT-2, with exact gelu, and a norm at the end; the class comes from the final vector
of the class token, which a bare model pools by a tanh layer as BERT does.

Differs from the reference: a picture of another size is read with positions interpolated to it, where the reference
asks for a flag (``interpolate_pos_encoding``).
"""

from collections.abc import Mapping
from typing import Any

from orrery.checkpoints.rules import Rule, rename
from orrery.families import _heads, _vit
from orrery.families._config import Config
from orrery.models.encoder import Encoder
from orrery.nn.heads import SequenceHead
from orrery.nn.spec import ModuleSpec

ARCHITECTURE = "ViTForImageClassification"
DEFAULTS: Mapping[str, Any] = _vit.DEFAULTS
TINY: Mapping[str, Any] = _vit.TINY
_IGNORED = ("encoder_stride",)


def spec(config: Mapping[str, Any]) -> Encoder.Spec:
    """Return the architecture that a ``config.json`` describes."""
    c = Config("vit", config, DEFAULTS, ignored=_IGNORED)
    embed = _vit.embed(c)
    heads: Mapping[str, Mapping[str, ModuleSpec]] = {
        ARCHITECTURE: {"sequence": SequenceHead.Spec(**_heads.of_row(c))},
        "ViTModel": {"pooled": _vit.pooled(c)},
    }
    return Encoder.Spec(
        width=c["hidden_size"],
        context=embed.tokens,
        embed=embed,
        stack=_vit.stack(c, embed),
        heads=_vit.chosen(c, ARCHITECTURE, heads),
    )


def WEIGHTS(config: Mapping[str, Any]) -> tuple[Rule, ...]:  # noqa: N802 - the name of a family's rules
    """Return the rules of the files; a bare model's names begin without ``vit``."""
    head = (rename(f"classifier.{end}", f"heads.sequence.labels.{end}") for end in _vit.ENDS)
    return (*_vit.rules(_vit.base(config, "ViTModel", "vit."), ""), *head)
