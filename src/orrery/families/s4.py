"""S4 (Gu, Goel and Re 2022): a language model whose mixers are structured state spaces in each channel.

Peculiar to it: a state begins as the whole past of its channel, as a series of Legendre polynomials; how it remembers
does not depend on the token, so that it is a convolution as long as the row. The blocks are Llama's, with the mixer in
the place of attention.
"""

from collections.abc import Mapping
from typing import Any

from orrery.families import _linear
from orrery.families._config import Config
from orrery.families._keys import size
from orrery.models.decoder import Decoder
from orrery.nn.linear.s4 import S4

ARCHITECTURE = "S4LanguageModel"
LIBRARY = "orrery"
DEFAULTS: Mapping[str, Any] = {**_linear.DEFAULTS, "state_size": size(64)}
TINY = {**_linear.TINY, "state_size": 6}


def spec(config: Mapping[str, Any]) -> Decoder.Spec:
    """Return the architecture that a configuration describes."""
    c = Config("s4", config, DEFAULTS)
    return _linear.assemble(c, S4.Spec(state=c["state_size"]))


WEIGHTS = _linear.own_names(spec)
