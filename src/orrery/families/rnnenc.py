"""RNNenc (Cho et al. 2014): the whole source in one vector, which every step reads.

Peculiar to it: it is RNNsearch over encoder states of one place, at which attention looks with weight one whatever it
scores; so the two differ in what is read alone, and comparing them compares just that.
"""

from collections.abc import Mapping
from typing import Any

from orrery.families import _translation, rnnsearch
from orrery.families._config import Config
from orrery.models.encoder_decoder import EncoderDecoder
from orrery.nn.attention.alignment_score import Additive
from orrery.nn.recurrent.bahdanau import BahdanauDecoder
from orrery.nn.recurrent.encoders import FinalStateGRU

ARCHITECTURE = "RNNEncoderDecoder"
LIBRARY = "orrery"
DEFAULTS = _translation.DEFAULTS
TINY = _translation.TINY


def spec(config: Mapping[str, Any]) -> EncoderDecoder.Spec:
    """Return the architecture that a configuration describes."""
    c = Config("rnnenc", config, DEFAULTS)
    scoring = Additive.Spec(encoder_width=c["hidden_size"], hidden=c["hidden_size"])
    return _translation.assemble(
        c, FinalStateGRU.Spec(), BahdanauDecoder.Spec(encoder_width=c["hidden_size"], scoring=scoring)
    )


WEIGHTS = (
    *_translation.SHARED,
    *_translation.engine(),
    *_translation.read_by("summary.weight", "summary.bias"),
    *_translation.same(*(f"{_translation.BRANCH}.{part}" for part in rnnsearch.PARTS)),
)
