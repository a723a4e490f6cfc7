"""References of families that transformers has only in part.

InternLM3 has biases in two groups: ``qkv_bias`` for queries, keys and values, ``bias`` for the output of the attention
and for the three matrices of the feed-forward network. transformers reads its files as Llama's, and so refuses those in
which the two differ. Its class of Seed-OSS, which is Llama too, has a setting for each bias and stands in for all.
"""

from typing import Any, ClassVar

import transformers
from huggingface_hub.dataclasses import strict
from transformers.models.seed_oss.modeling_seed_oss import SeedOssForCausalLM, SeedOssModel


@strict
class InternLM3Config(transformers.InternLM3Config):
    """transformers' own configuration, without its refusal, with the names that Seed-OSS reads."""

    attribute_map: ClassVar = {**transformers.InternLM3Config.attribute_map, "attention_out_bias": "mlp_bias"}

    def validate_architecture(self) -> None:
        """Refuse nothing: the groups of biases may differ."""

    @property
    def residual_dropout(self) -> float:
        """Seed-OSS drops some of what a branch adds; InternLM3 nothing."""
        return 0.0


class InternLM3Model(SeedOssModel):
    """The backbone alone."""

    config_class = InternLM3Config


class InternLM3ForCausalLM(SeedOssForCausalLM):
    """The language model."""

    config_class = InternLM3Config


STAND_INS = {"internlm3": InternLM3ForCausalLM}
"""By family."""
_CLASSES = {kind.__name__: kind for kind in (InternLM3ForCausalLM, InternLM3Model)}


def class_of(name: str) -> Any:
    """Return the class of the reference that a file names: transformers' own, or what stands in for it."""
    return _CLASSES.get(name) or getattr(transformers, name)


def has(name: str) -> bool:
    """Say whether there is such a class."""
    return name in _CLASSES or hasattr(transformers, name)


def settings_of(kind: str, **config: Any) -> Any:
    """Return the reference's configuration of a ``model_type``."""
    if kind in STAND_INS:
        return STAND_INS[kind].config_class(**config)
    return transformers.AutoConfig.for_model(kind, **config)
