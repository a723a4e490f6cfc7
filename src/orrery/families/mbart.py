"""mBART (Liu et al. 2020): BART on 25 or 50 languages, with norms in front.

Peculiar to it: pre-LN and a norm at the end of each stack, beside BART's norm of the embeddings; the published ones
scale embeddings by ``sqrt(D)``. A target begins with the token of its language, which generation is told; where the
configuration names none, with the beginning of a sentence.
"""

from collections.abc import Mapping
from typing import Any

from orrery.checkpoints.rules import Rule
from orrery.families import _bart
from orrery.families._config import Config
from orrery.models.encoder_decoder import EncoderDecoder
from orrery.nn.positions.learned import LearnedPositions

ARCHITECTURE = "MBartForConditionalGeneration"
DEFAULTS: Mapping[str, Any] = _bart.DEFAULTS
TINY = _bart.TINY
LEGACY_NAMES = _bart.LEGACY_NAMES
_NORMS = _bart.Norms(slot="pre", embedding=True, final=True)
_FIXED = {**_bart.FIXED, **_NORMS.settings, "static_position_embeddings": False}


def spec(config: Mapping[str, Any]) -> EncoderDecoder.Spec:
    """Return the architecture that a ``config.json`` describes."""
    c = Config("mbart", config, DEFAULTS, fixed=_FIXED, ignored=_bart.IGNORED, aliases=_bart.ALIASES)
    return _bart.assemble(c, _NORMS, LearnedPositions.Spec(length=c["max_position_embeddings"], offset=2))


def WEIGHTS(config: Mapping[str, Any]) -> tuple[Rule, ...]:  # noqa: N802 - the name of a family's rules
    """Return the rules of the files."""
    return _bart.rules(config, _NORMS.slot)
