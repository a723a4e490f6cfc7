"""DeiT (Touvron et al. 2021): a ViT that learns from a teacher's answers, by a token of their own.

Peculiar to it: a distillation token behind ViT's class token, with a position of its own; in the class with the
teacher each of the two tokens has a classifier, and the answer is the mean of both. Without it the class token alone
answers. All else is ViT's.

Differs from the reference: a picture of another size is read with positions interpolated to it, where the reference
asks for a flag.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from orrery.checkpoints.layouts import Reshaped
from orrery.checkpoints.rules import Rule, rename
from orrery.families import _heads, _vit
from orrery.families._config import Config
from orrery.models.encoder import Encoder
from orrery.nn.heads import At, Pooler, SequenceHead
from orrery.nn.patches import PrependedTokens
from orrery.nn.spec import ModuleSpec

ARCHITECTURE = "DeiTForImageClassification"
WITH_TEACHER, BARE = "DeiTForImageClassificationWithTeacher", "DeiTModel"
DEFAULTS: Mapping[str, Any] = _vit.DEFAULTS
TINY: Mapping[str, Any] = _vit.TINY
_IGNORED = ("encoder_stride",)


def spec(config: Mapping[str, Any]) -> Encoder.Spec:
    """Return the architecture that a ``config.json`` describes."""
    c = Config("deit", config, DEFAULTS, ignored=_IGNORED)
    embed = replace(_vit.embed(c), first=PrependedTokens.Spec(tokens=1))
    labels = _heads.of_row(c)
    distilled = SequenceHead.Spec(pooler=Pooler.Spec(pool=At(place=1)), **labels)
    heads: Mapping[str, Mapping[str, ModuleSpec]] = {
        ARCHITECTURE: {"sequence": SequenceHead.Spec(**labels)},
        WITH_TEACHER: {"sequence": SequenceHead.Spec(beside=(distilled,), **labels)},
        BARE: {"pooled": _vit.pooled(c)},
    }
    return Encoder.Spec(
        width=c["hidden_size"],
        context=embed.tokens,
        embed=embed,
        stack=_vit.stack(c, embed),
        heads=_vit.chosen(c, ARCHITECTURE, heads),
    )


def WEIGHTS(config: Mapping[str, Any]) -> tuple[Rule, ...]:  # noqa: N802 - the name of a family's rules
    """Return the rules of the files; a bare model's names begin without ``deit``."""
    base = _vit.base(config, BARE, "deit.")
    taught = WITH_TEACHER in (config.get("architectures") or ())
    heads = (("cls_classifier", ""), ("distillation_classifier", "beside.0.")) if taught else (("classifier", ""),)
    return (
        *_vit.rules(base, ""),
        Rule(f"{base}embeddings.distillation_token", ("embed.first.learned.weight",), Reshaped(1)),
        *(rename(f"{a}.{end}", f"heads.sequence.{b}labels.{end}") for a, b in heads for end in _vit.ENDS),
    )
