"""RoBERTa (Liu et al. 2019): BERT trained longer, on more text, and without pairs of sentences.

Peculiar to it: BERT's stack, whose positions are numbered from the id after the padding's, so that the first rows of
the table are never used and the length it is meant for is that much shorter; one token type in the published files;
gelu in the masked language model's head whatever the blocks use; a class's head has a projection of its own in the
place of the pooler, which only the bare model has.
Differs from transformers: positions count the tokens that the call says are real, not the ids other than padding's;
with a mask, or in a row without padding, the two agree.
"""

from collections.abc import Mapping
from typing import Any

from orrery.checkpoints.rules import Rule
from orrery.families import _roberta
from orrery.families._keys import size
from orrery.models.encoder import Encoder

ARCHITECTURE = "RobertaForMaskedLM"
DEFAULTS: Mapping[str, Any] = {**_roberta.DEFAULTS, "vocab_size": size(50265)}
TINY = _roberta.TINY


def spec(config: Mapping[str, Any]) -> Encoder.Spec:
    """Return the architecture that a ``config.json`` describes."""
    return _roberta.spec(config, "roberta", ARCHITECTURE, DEFAULTS)


def WEIGHTS(config: Mapping[str, Any]) -> tuple[Rule, ...]:  # noqa: N802 - the name of a family's rules
    """Return the rules of the files."""
    return _roberta.rules(config, ARCHITECTURE)


def LEGACY_NAMES(config: Mapping[str, Any]) -> dict[str, str | None]:  # noqa: N802 - the name of a family's old names
    """Return the names of old files."""
    return _roberta.old(spec(config).heads, config, ARCHITECTURE)
