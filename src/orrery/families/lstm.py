"""LSTM (Hochreiter and Schmidhuber 1997): a language model whose gates keep a cell from fading.

Peculiar to it: the context has no bound but the one in its configuration, since all it remembers is a state of
constant size. The defaults are the medium model of Zaremba et al., on Penn Treebank's 10,000 words.
"""

from collections.abc import Mapping
from typing import Any

from orrery.families import _recurrent
from orrery.models.decoder import Decoder
from orrery.nn.recurrent.lstm import LSTM

ARCHITECTURE = "LSTMLanguageModel"
LIBRARY = "orrery"
DEFAULTS = _recurrent.DEFAULTS
TINY = _recurrent.TINY
WEIGHTS = _recurrent.WEIGHTS


def spec(config: Mapping[str, Any]) -> Decoder.Spec:
    """Return the architecture that a configuration describes."""
    return _recurrent.assemble("lstm", config, LSTM.Spec())
