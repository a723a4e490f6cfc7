"""Pegasus (Zhang et al. 2020): BART's shape trained to write whole missing sentences, for summaries.

Peculiar to it: pre-LN with a norm at the end of each stack, and none of the embeddings; sinusoidal positions, all
sines first, as a table that each side's file carries and nothing trains; the published ones scale embeddings.
"""

from collections.abc import Mapping
from typing import Any

from orrery.checkpoints.rules import Rule
from orrery.families import _bart
from orrery.families._config import Config
from orrery.families._keys import token
from orrery.models.encoder_decoder import EncoderDecoder
from orrery.nn.positions.sinusoidal_table import SinusoidalTable

ARCHITECTURE = "PegasusForConditionalGeneration"
DEFAULTS: Mapping[str, Any] = {**_bart.DEFAULTS, "decoder_start_token_id": token(0)}
TINY = _bart.TINY
LEGACY_NAMES = _bart.LEGACY_NAMES
_NORMS = _bart.Norms(slot="pre", embedding=False, final=True)
_FIXED = {**_bart.FIXED, **_NORMS.settings, "static_position_embeddings": True}


def spec(config: Mapping[str, Any]) -> EncoderDecoder.Spec:
    """Return the architecture that a ``config.json`` describes."""
    c = Config("pegasus", config, DEFAULTS, fixed=_FIXED, ignored=_bart.IGNORED, aliases=_bart.ALIASES)
    return _bart.assemble(c, _NORMS, SinusoidalTable.Spec(length=c["max_position_embeddings"]))


def WEIGHTS(config: Mapping[str, Any]) -> tuple[Rule, ...]:  # noqa: N802 - the name of a family's rules
    """Return the rules of the files."""
    return _bart.rules(config, _NORMS.slot)
