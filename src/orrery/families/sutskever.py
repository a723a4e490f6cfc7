"""Sutskever's model (Sutskever, Vinyals and Le 2014): LSTMs read backwards into fixed states, then write.

Peculiar to it: the source is read from its last word to its first, and all that the decoder gets of it are h and c of
each layer. The defaults are the paper's: four layers of 1,000.
"""

from collections.abc import Mapping
from typing import Any

from orrery.checkpoints.rules import Rule
from orrery.families import _translation
from orrery.families._config import Config
from orrery.families._keys import size
from orrery.models.encoder_decoder import EncoderDecoder
from orrery.nn.recurrent.encoders import ReversedSource, StackedLSTMEncoder
from orrery.nn.recurrent.luong import LSTMDecoder

ARCHITECTURE = "SutskeverSeq2Seq"
LIBRARY = "orrery"
DEFAULTS = {**_translation.DEFAULTS, "num_layers": size(4)}
TINY = {**_translation.TINY, "num_layers": 2}


def spec(config: Mapping[str, Any]) -> EncoderDecoder.Spec:
    """Return the architecture that a configuration describes."""
    c = Config("sutskever", config, DEFAULTS)
    reader = ReversedSource.Spec(reader=StackedLSTMEncoder.Spec(layers=c["num_layers"]))
    return _translation.assemble(c, reader, LSTMDecoder.Spec(layers=c["num_layers"]))


def WEIGHTS(config: Mapping[str, Any]) -> tuple[Rule, ...]:  # noqa: N802 - the name of a family's rules
    """Return the rules of the files."""
    layers, own = Config("sutskever", config, DEFAULTS)["num_layers"], _translation.BRANCH
    return (
        *_translation.SHARED,
        *_translation.engine("reader.engine", layers),
        *_translation.same(f"{own}.word", *(f"{own}.layers.states.{i}" for i in range(layers))),
        *_translation.same(*(f"{own}.layers.inputs.{i}" for i in range(layers - 1))),
    )
