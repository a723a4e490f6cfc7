"""S4D (Gu, Gupta, Goel and Re 2022): a language model whose mixers are diagonal state spaces in each channel.

Peculiar to it: how a mixer remembers does not depend on the token, so that it is a convolution as long as the row, with
a kernel of fading waves. The blocks are Llama's, with the mixer in the place of attention.
"""

from collections.abc import Mapping
from typing import Any

from orrery.families import _linear
from orrery.families._config import Config
from orrery.families._keys import size
from orrery.models.decoder import Decoder
from orrery.nn.linear.s4d import S4D, WAVES

ARCHITECTURE = "S4DLanguageModel"
LIBRARY = "orrery"
DEFAULTS: Mapping[str, Any] = {**_linear.DEFAULTS, "state_size": size(64), "frequencies": "linear"}
TINY = {**_linear.TINY, "state_size": 6}


def spec(config: Mapping[str, Any]) -> Decoder.Spec:
    """Return the architecture that a configuration describes; half of a state's numbers are the others' conjugates."""
    c = Config("s4d", config, DEFAULTS)
    frequencies = c.choose("frequencies", dict(zip(WAVES, WAVES, strict=True)))
    return _linear.assemble(c, S4D.Spec(waves=max(1, c["state_size"] // 2), frequencies=frequencies))


WEIGHTS = _linear.own_names(spec)
