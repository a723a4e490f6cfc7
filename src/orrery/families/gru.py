"""GRU (Cho et al. 2014): a language model with two gates and one state.

Peculiar to it: the context has no bound but the one in its configuration, since all it remembers is a state of
constant size. The defaults are the medium model of Zaremba et al., on Penn Treebank's 10,000 words.
"""

from collections.abc import Mapping
from typing import Any

from orrery.families import _recurrent
from orrery.models.decoder import Decoder
from orrery.nn.recurrent.gru import GRU

ARCHITECTURE = "GRULanguageModel"
LIBRARY = "orrery"
DEFAULTS = _recurrent.DEFAULTS
TINY = _recurrent.TINY
WEIGHTS = _recurrent.WEIGHTS


def spec(config: Mapping[str, Any]) -> Decoder.Spec:
    """Return the architecture that a configuration describes."""
    return _recurrent.assemble("gru", config, GRU.Spec())
