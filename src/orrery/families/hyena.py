"""Hyena (Poli et al. 2023): a language model of long convolutions between gates, here with kernels of fading waves.

Peculiar to it: two products gate a convolution as long as the row, whose kernel is a sum of complex exponentials (as in
Massaroli et al. 2023), so that it is written token by token with a state of constant size. The blocks are Llama's, with
the mixer in the place of attention.
"""

from collections.abc import Mapping
from typing import Any

from orrery.families import _linear
from orrery.families._config import Config
from orrery.families._keys import size
from orrery.models.decoder import Decoder
from orrery.nn.linear.hyena import Hyena

ARCHITECTURE = "HyenaLanguageModel"
LIBRARY = "orrery"
DEFAULTS: Mapping[str, Any] = {**_linear.DEFAULTS, "waves": size(16), "conv_kernel": size(3)}
TINY = {**_linear.TINY, "waves": 3}


def spec(config: Mapping[str, Any]) -> Decoder.Spec:
    """Return the architecture that a configuration describes."""
    c = Config("hyena", config, DEFAULTS)
    return _linear.assemble(c, Hyena.Spec(waves=c["waves"], length=c["conv_kernel"]))


WEIGHTS = _linear.own_names(spec)
