"""RNNsearch (Bahdanau, Cho and Bengio 2015): the first attention, a GRU that searches a source read both ways.

Peculiar to it: each word's annotation joins two directions; the decoder looks before it steps, by an additive score;
its output is a maxout layer over state, word and context. The width is the paper's 1,000, words included, for which
the paper has 620, and maxout over pairs gives as many outputs, not 500.
"""

from collections.abc import Mapping
from typing import Any

from orrery.families import _translation
from orrery.families._config import Config
from orrery.models.encoder_decoder import EncoderDecoder
from orrery.nn.attention.alignment_score import Additive
from orrery.nn.recurrent.bahdanau import BahdanauDecoder
from orrery.nn.recurrent.encoders import BidirectionalGRUEncoder

ARCHITECTURE = "RNNsearch"
LIBRARY = "orrery"
DEFAULTS = _translation.DEFAULTS
TINY = _translation.TINY
PARTS = ("first", "word", "context", "state", "readout", "scoring.q", "scoring.k", "scoring.v")


def spec(config: Mapping[str, Any]) -> EncoderDecoder.Spec:
    """Return the architecture that a configuration describes."""
    c = Config("rnnsearch", config, DEFAULTS)
    scoring = Additive.Spec(encoder_width=2 * c["hidden_size"], hidden=c["hidden_size"])
    return _translation.assemble(
        c, BidirectionalGRUEncoder.Spec(), BahdanauDecoder.Spec(encoder_width=2 * c["hidden_size"], scoring=scoring)
    )


WEIGHTS = (
    *_translation.SHARED,
    *_translation.engine(both_ways=True),
    *_translation.same(*(f"{_translation.BRANCH}.{part}" for part in PARTS)),
)
