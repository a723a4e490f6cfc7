"""What the Gemmas share: louder embeddings, gains stored minus one, and from the second on a sandwich of norms."""

import math
from collections.abc import Sequence
from typing import Any

from orrery.families import _decoders, _parts
from orrery.families._config import Config
from orrery.models.decoder import Decoder
from orrery.nn.attention.multihead import MultiHeadAttention, ScoreSettings
from orrery.nn.block import Block
from orrery.nn.elementwise import SoftCap
from orrery.nn.feedforward.gated import GatedMLP
from orrery.nn.norms import RMSNorm
from orrery.nn.residual import Identity, Scale


def norm(c: Config) -> RMSNorm.Spec:
    """Return the norm, whose file holds the gain minus one."""
    return RMSNorm.Spec(eps=c["rms_norm_eps"], offset=1.0)


def louder(c: Config) -> Scale.Spec:
    """Return the factor on the embeddings, ``sqrt(D)``."""
    return Scale.Spec(factor=math.sqrt(c["hidden_size"]))


def branches(c: Config, *, cap: float | None = None, **fields: Any) -> tuple[MultiHeadAttention.Spec, GatedMLP.Spec]:
    """Return the two branches of a block; the keywords are fields of its attention."""
    scoring = ScoreSettings(scale=c["query_pre_attn_scalar"] ** -0.5, cap=cap, dropout=c["attention_dropout"])
    attention = _decoders.attention(c, biases=_parts.biases(c["attention_bias"]), scoring=scoring, **fields)
    feed_forward = GatedMLP.Spec(hidden=c["intermediate_size"], activation=c.activation("hidden_activation"))
    return attention, feed_forward


def sandwich(c: Config, *, cap: float | None = None, **fields: Any) -> Block.Spec:
    """Return a block with norms on both sides of each branch; the keywords are fields of its attention."""
    return _decoders.sandwich(norm(c), *branches(c, cap=cap, **fields))


def decoder(c: Config, blocks: Sequence[Block.Spec], **fields: Any) -> Decoder.Spec:
    """Return the model around its blocks, its logits perhaps capped; the keywords are fields of its stack."""
    cap = c["final_logit_softcapping"]
    stack = _decoders.stack(c, blocks, norm(c), enter=louder(c), **fields)
    return _decoders.decoder(c, stack, cap=SoftCap.Spec(cap=cap) if cap else Identity.Spec())


NORMS = (
    ("input_layernorm", "attention.pre"),
    ("post_attention_layernorm", "attention.post"),
    ("pre_feedforward_layernorm", "feed_forward.pre"),
    ("post_feedforward_layernorm", "feed_forward.post"),
)
"""The four norms of the sandwich."""
