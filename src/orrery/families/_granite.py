"""What the Granites share: multipliers of the stream, of each branch, of the scores and of the logits."""

from collections.abc import Mapping
from typing import Any

from orrery.families import _decoders, _parts
from orrery.families._config import Config
from orrery.families._keys import positive
from orrery.models.decoder import Decoder
from orrery.nn.attention.multihead import ScoreSettings
from orrery.nn.norms import RMSNorm
from orrery.nn.residual import Scale
from orrery.nn.spec import ModuleSpec
from orrery.nn.stack import repeat

DEFAULTS: Mapping[str, Any] = {
    "embedding_multiplier": 1.0,
    "residual_multiplier": 1.0,
    "attention_multiplier": positive(1.0),
    "logits_scaling": positive(1.0),
    "rms_norm_eps": 1e-6,
    "attention_bias": False,
}


def decoder(c: Config, feed_forward: ModuleSpec) -> Decoder.Spec:
    """Return the architecture with this feed-forward network in every layer."""
    attention = _decoders.attention(
        c,
        biases=_parts.biases(c["attention_bias"]),
        scoring=ScoreSettings(scale=c["attention_multiplier"], dropout=c["attention_dropout"]),
    )
    norm, softer = RMSNorm.Spec(eps=c["rms_norm_eps"]), Scale.Spec(factor=c["residual_multiplier"])
    block = _parts.sequential({"attention": attention, "feed_forward": feed_forward}, pre=norm, post=softer)
    louder = Scale.Spec(factor=c["embedding_multiplier"])
    stack = _decoders.stack(c, repeat(block, c["num_hidden_layers"]), norm, enter=louder)
    return _decoders.decoder(c, stack, cap=Scale.Spec(factor=1 / c["logits_scaling"]))
