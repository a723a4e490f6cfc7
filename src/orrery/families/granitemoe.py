"""Granite 3 MoE (IBM 2024): Granite's four multipliers around Mixtral's experts.

Peculiar to it: the stream, the branches, the scores and the logits are multiplied as in Granite; every layer is a
mixture whose weights are a softmax over the logits of the chosen experts alone. In its files all experts of a layer are
one tensor, gate before up.
"""

from collections.abc import Mapping
from typing import Any

from orrery.checkpoints.rules import Rule
from orrery.families import _decoders, _granite, _mixture
from orrery.families._config import Config
from orrery.families._keys import plain, size
from orrery.models.decoder import Decoder

ARCHITECTURE = "GraniteMoeForCausalLM"
DEFAULTS: Mapping[str, Any] = {
    **_decoders.DEFAULTS,
    **_granite.DEFAULTS,
    "num_local_experts": size(8),
    "num_experts_per_tok": size(2),
}
TINY = {
    **_decoders.TINY,
    "intermediate_size": 8,
    "embedding_multiplier": 12.0,
    "residual_multiplier": 0.22,
    "attention_multiplier": 0.25,
    "logits_scaling": 8.0,
    "num_local_experts": 4,
    "tie_word_embeddings": True,
}
_IGNORED = ("output_router_logits", "router_aux_loss_coef")


def spec(config: Mapping[str, Any]) -> Decoder.Spec:
    """Return the architecture that a ``config.json`` describes."""
    c = Config("granitemoe", config, DEFAULTS, ignored=_IGNORED)
    return _granite.decoder(c, _mixture.experts(c, c["num_local_experts"], "intermediate_size", normalised=True))


def WEIGHTS(config: Mapping[str, Any]) -> tuple[Rule, ...]:  # noqa: N802 - the name of a family's rules
    """Return the rules of the files, in which a layer's experts are one tensor."""
    experts = {**plain(DEFAULTS), **config}["num_local_experts"]
    return (*_decoders.weights(*_decoders.PRE_NORMS), *_granite.expert_rules(experts))
