"""CamemBERT (Martin et al. 2020): RoBERTa in French.

Peculiar to it: nothing but the name; the stack, the heads and the names of the tensors are RoBERTa's, and so are ids:
the pieces of its SentencePiece model stand behind four control tokens, so that the padding is 1.
"""

from collections.abc import Mapping
from typing import Any

from orrery.checkpoints.rules import Rule
from orrery.families import _roberta
from orrery.models.encoder import Encoder

ARCHITECTURE = "CamembertForMaskedLM"
DEFAULTS: Mapping[str, Any] = _roberta.DEFAULTS
TINY = _roberta.TINY


def spec(config: Mapping[str, Any]) -> Encoder.Spec:
    """Return the architecture that a ``config.json`` describes."""
    return _roberta.spec(config, "camembert", ARCHITECTURE, DEFAULTS)


def WEIGHTS(config: Mapping[str, Any]) -> tuple[Rule, ...]:  # noqa: N802 - the name of a family's rules
    """Return the rules of the files."""
    return _roberta.rules(config, ARCHITECTURE)


def LEGACY_NAMES(config: Mapping[str, Any]) -> dict[str, str | None]:  # noqa: N802 - the name of a family's old names
    """Return the names of old files."""
    return _roberta.old(spec(config).heads, config, ARCHITECTURE)
