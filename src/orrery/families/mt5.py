"""mT5 (Xue et al. 2021): T5 v1.1 on 101 languages.

Peculiar to it: a vocabulary of 250,112 pieces, so that most of a small one is embeddings; gated gelu; the head has no
scale, tied or not. The published ones do not tie it, and their ``config.json`` says so.

Differs from the reference, which ties whatever ``config.json`` says unless the file holds two tables: here
``tie_word_embeddings`` means what it says, and a file that holds more or less is refused.
"""

from collections.abc import Mapping
from typing import Any

from orrery.checkpoints.rules import Rule
from orrery.families import t5
from orrery.families._config import Config
from orrery.families._keys import size, token
from orrery.models.encoder_decoder import EncoderDecoder

ARCHITECTURE = "MT5ForConditionalGeneration"
DEFAULTS: Mapping[str, Any] = {
    **t5.DEFAULTS,
    "vocab_size": size(250112),
    "d_ff": size(1024),
    "num_layers": size(8),
    "num_heads": 6,
    "feed_forward_proj": "gated-gelu",
    "scale_decoder_outputs": False,
    "decoder_start_token_id": token(0),
}
LEGACY_NAMES = t5.LEGACY_NAMES
TINY = {**t5.TINY, "num_layers": 2, "num_decoder_layers": 2}


def spec(config: Mapping[str, Any]) -> EncoderDecoder.Spec:
    """Return the architecture that a ``config.json`` describes."""
    return t5.assemble(_config(config))


def _config(config: Mapping[str, Any]) -> Config:
    fixed = {**t5.FIXED, "scale_decoder_outputs": False}
    config = t5.settled(config, DEFAULTS["feed_forward_proj"])
    return Config("mt5", config, DEFAULTS, fixed=fixed, ignored=t5.IGNORED, aliases=t5.ALIASES)


def INITIAL_STD(config: Mapping[str, Any]) -> Mapping[str, float]:  # noqa: N802 - how a family draws new matrices
    """Return what new matrices are drawn with, which is as T5's."""
    return t5.drawn(_config(config), config.get(t5.FACTOR, 1.0))


def WEIGHTS(config: Mapping[str, Any]) -> tuple[Rule, ...]:  # noqa: N802 - the name of a family's rules
    """Return the rules of the files, which are T5's."""
    return t5.rules(t5.settled(config, DEFAULTS["feed_forward_proj"])["is_gated_act"])
