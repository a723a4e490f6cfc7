"""Decoders that were published with a head for the whole row in the place of the language model's: rewards, classes."""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from orrery.checkpoints.rules import rename
from orrery.errors import ModelFileError
from orrery.families import _heads
from orrery.families._config import Config
from orrery.models.model import ModelSpec
from orrery.nn.heads import Headless, Last, Pooler, SequenceHead
from orrery.nn.residual import Identity

HEAD = "sequence"
_LANGUAGE_MODEL = re.compile(r"(ForCausalLM|LMHeadModel)$")
_CLASS = "ForSequenceClassification"
_WITHOUT = (
    "CohereForCausalLM", "GraniteForCausalLM", "OlmoeForCausalLM", "Gemma3ForCausalLM", "OpenAIGPTLMHeadModel",
    "FalconMambaForCausalLM", "Mamba2ForCausalLM", "MambaForCausalLM", "RwkvForCausalLM", "ApertusForCausalLM",
    "Cohere2ForCausalLM", "Ernie4_5ForCausalLM", "Ernie4_5_MoeForCausalLM", "Glm4MoeForCausalLM",
    "GraniteMoeForCausalLM", "InternLM3ForCausalLM", "MellumForCausalLM", "MiniMaxM2ForCausalLM", "NanoChatForCausalLM",
    "BambaForCausalLM", "CodeGenForCausalLM", "GraniteMoeHybridForCausalLM", "Lfm2ForCausalLM", "NemotronHForCausalLM",
    "FalconH1ForCausalLM", "RecurrentGemmaForCausalLM", "SolarOpenForCausalLM", "VaultGemmaForCausalLM",
    "YoutuForCausalLM",
)  # fmt: skip
"""Classes beside which transformers has no such one, or one that is not held against it yet."""
_PADDING = {
    "GemmaForCausalLM": 0, "Gemma2ForCausalLM": 0, "Glm4ForCausalLM": 151329, "JambaForCausalLM": 0,
    "OlmoForCausalLM": 1, "Olmo2ForCausalLM": 1, "OPTForCausalLM": 1, "Phi3ForCausalLM": 32000,
    "SmolLM3ForCausalLM": 128004, "HeliumForCausalLM": 3, "Ministral3ForCausalLM": 11, "Olmo3ForCausalLM": 1,
    "SeedOssForCausalLM": 1, "Zamba2ForCausalLM": 0,
}  # fmt: skip
"""The ``pad_token_id`` that a family's configuration class of transformers has where a file names none."""
RULE = rename("score.weight", f"heads.{HEAD}.labels.weight")


def class_beside(architecture: str) -> str | None:
    """Return the class for rows beside that of a decoder's language model, ``LlamaForSequenceClassification``."""
    stem, count = _LANGUAGE_MODEL.subn("", architecture)
    return f"{stem}{_CLASS}" if count and architecture not in _WITHOUT else None


def is_classifier(architecture: str, config: Mapping[str, Any]) -> bool:
    """Say whether a configuration names that class."""
    given = config.get("architectures")
    first = given[0] if isinstance(given, list | tuple) and given else None
    return first is not None and first == class_beside(architecture)


def with_labels(architecture: str, config: Mapping[str, Any], spec: Any) -> ModelSpec:
    """Return a decoder with ``W x`` of the last real token in the place of its language-model head.

    The reference takes the last token whose id is another than ``pad_token_id``, whatever the attention mask says:
    where the end of a text is also the padding, the token before it.

    Raises:
        ModelFileError: what the configuration says of its labels or of its padding cannot be meant.
    """
    label_settings = {key: config[key] for key in _heads.DEFAULTS if key in config}
    labels = _heads.of_row(Config("a classifier", label_settings, _heads.DEFAULTS))
    head = SequenceHead.Spec(bias=False, pooler=Pooler.Spec(pool=Last()), **labels)
    return replace(spec, head=Headless.Spec(), heads={HEAD: head}, padding=padding_of(architecture, config))


def padding_of(architecture: str, config: Mapping[str, Any]) -> int | None:
    """Return the id behind which a row of a published classifier has ended, or nothing where no token has it.

    Raises:
        ModelFileError: it is no whole number.
    """
    id = config.get("pad_token_id", _PADDING.get(architecture))
    if id is None or (isinstance(id, int) and not isinstance(id, bool)):
        return id if id is not None and id >= 0 else None
    raise ModelFileError(
        f"{architecture}: pad_token_id = {str(id)[:60]} is no token", "give its number, or null for none"
    )


def can_lose_its_head(spec: Any) -> bool:
    """Say whether the final stream of a decoder is what its head reads: some project it first."""
    return bool(spec.head.transform == Identity.Spec())
