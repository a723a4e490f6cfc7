"""References of families whose modelling code lies beside their weights, and is in no release of transformers.

InternLM3's is Llama with biases in two groups: ``qkv_bias`` for queries, keys and values, ``bias`` for the output of
the attention and for the three matrices of the feed-forward network. transformers' class of Seed-OSS has a setting for
each of these, so it stands in, under the names and with the defaults of the published configuration.
"""

from typing import Any, ClassVar

import transformers
from huggingface_hub.dataclasses import strict
from transformers import PreTrainedConfig
from transformers.modeling_rope_utils import RopeParameters
from transformers.models.seed_oss.modeling_seed_oss import SeedOssForCausalLM, SeedOssModel


@strict
class InternLM3Config(PreTrainedConfig):
    """The published configuration; Seed-OSS reads its settings of biases as other names of these."""

    model_type = "internlm3"
    keys_to_ignore_at_inference: ClassVar = ["past_key_values"]
    attribute_map: ClassVar = {"attention_bias": "qkv_bias", "attention_out_bias": "bias", "mlp_bias": "bias"}

    vocab_size: int = 128512
    hidden_size: int = 4096
    intermediate_size: int = 11008
    num_hidden_layers: int = 32
    num_attention_heads: int = 32
    num_key_value_heads: int | None = 32
    hidden_act: str = "silu"
    max_position_embeddings: int = 32768
    initializer_range: float = 0.02
    rms_norm_eps: float = 1e-6
    use_cache: bool = True
    pad_token_id: int | None = None
    bos_token_id: int | None = None
    eos_token_id: int | list[int] | None = None
    tie_word_embeddings: bool = False
    rope_parameters: RopeParameters | dict | None = None
    qkv_bias: bool = False
    attention_dropout: float | int = 0.0
    bias: bool = False
    head_dim: int | None = None

    def __post_init__(self, **kwargs):
        if self.num_key_value_heads is None:
            self.num_key_value_heads = self.num_attention_heads
        if self.head_dim is None:
            self.head_dim = self.hidden_size // self.num_attention_heads
        super().__post_init__(**kwargs)

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
