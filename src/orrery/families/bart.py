"""BART (Lewis et al. 2020): a denoising encoder-decoder, a bidirectional reader before a causal writer.

Peculiar to it: the original Transformer's post-LN sublayers with gelu; learned positions in tables with two unused
leading rows, one for each side; a norm of the embeddings; one embedding for both sides and the head, whose logits are
shifted by a constant that is zero in the published files.
"""

from collections.abc import Mapping
from typing import Any

from orrery.checkpoints.rules import Rule
from orrery.families import _bart
from orrery.families._config import Config
from orrery.families._keys import token
from orrery.models.encoder_decoder import EncoderDecoder
from orrery.nn.positions.learned import LearnedPositions

ARCHITECTURE = "BartForConditionalGeneration"
DEFAULTS: Mapping[str, Any] = {**_bart.DEFAULTS, "decoder_start_token_id": token(2)}
TINY = _bart.TINY
LEGACY_NAMES = _bart.LEGACY_NAMES
_NORMS = _bart.Norms(slot="out", embedding=True, final=False)
_FIXED = {**_bart.FIXED, **_NORMS.settings, "static_position_embeddings": False}


def spec(config: Mapping[str, Any]) -> EncoderDecoder.Spec:
    """Return the architecture that a ``config.json`` describes."""
    c = Config("bart", config, DEFAULTS, fixed=_FIXED, ignored=_bart.IGNORED, aliases=_bart.ALIASES)
    return _bart.assemble(c, _NORMS, LearnedPositions.Spec(length=c["max_position_embeddings"], offset=2))


def WEIGHTS(config: Mapping[str, Any]) -> tuple[Rule, ...]:  # noqa: N802 - the name of a family's rules
    """Return the rules of the files."""
    return _bart.rules(config, _NORMS.slot)
