"""Luong's attention (Luong, Pham and Manning 2015): LSTMs that step, then look, and feed what they found.

Peculiar to it: three ways to score a place, of which ``dot`` needs no parameters; input feeding, so that each step
knows where the one before looked; the decoder begins with the encoder's last states. The defaults are the paper's:
four layers of 1,000, the "general" score.
"""

from collections.abc import Mapping
from typing import Any

from orrery.checkpoints.rules import Rule
from orrery.families import _translation
from orrery.families._config import Config
from orrery.families._keys import size
from orrery.models.encoder_decoder import EncoderDecoder
from orrery.nn.attention.alignment_score import Additive, Dot, General
from orrery.nn.recurrent.encoders import StackedLSTMEncoder
from orrery.nn.recurrent.luong import InputFeedingLSTM

ARCHITECTURE = "LuongAttention"
LIBRARY = "orrery"
DEFAULTS = {**_translation.DEFAULTS, "num_layers": size(4), "score": "general"}
TINY = {**_translation.TINY, "num_layers": 2}


def spec(config: Mapping[str, Any]) -> EncoderDecoder.Spec:
    """Return the architecture that a configuration describes."""
    c = Config("luong", config, DEFAULTS)
    width = c["hidden_size"]
    scores: Mapping[str, Dot.Spec | General.Spec | Additive.Spec] = {
        "dot": Dot.Spec(),
        "general": General.Spec(encoder_width=width),
        "concat": Additive.Spec(encoder_width=width, hidden=width),
    }
    decoder = InputFeedingLSTM.Spec(layers=c["num_layers"], scoring=c.choose("score", scores))
    return _translation.assemble(c, StackedLSTMEncoder.Spec(layers=c["num_layers"]), decoder)


def WEIGHTS(config: Mapping[str, Any]) -> tuple[Rule, ...]:  # noqa: N802 - the name of a family's rules
    """Return the rules of the files; a score without a matrix finds no place and does no harm."""
    layers, own = Config("luong", config, DEFAULTS)["num_layers"], _translation.BRANCH
    return (
        *_translation.SHARED,
        *_translation.engine(layers=layers),
        *_translation.same(*(f"{own}.{part}" for part in ("word", "fed", "combine"))),
        *_translation.same(*(f"{own}.scoring.{part}" for part in ("q", "k", "v")), ends=("weight",)),
        *_translation.same(*(f"{own}.layers.states.{i}" for i in range(layers))),
        *_translation.same(*(f"{own}.layers.inputs.{i}" for i in range(layers - 1))),
    )
