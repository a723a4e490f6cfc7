"""The original Transformer (Vaswani et al. 2017): attention alone, to read a sentence and to write its translation.

Peculiar to it: a norm behind each residual sum, and none at the end of a stack; sinusoidal positions, sine and cosine
in turns; relu; one embedding for source, target and head, scaled by ``sqrt(D)`` where it is an input (section 3.4);
dropout on each sublayer and on the sums of embeddings and positions (5.4). The defaults are the base model of table 3
with the 37,000 pieces of 5.1; the big one has width 1024, hidden 4096, 16 heads and dropout 0.3.

This family is Orrery's own: there is no such ``model_type`` elsewhere, and its files carry our names. The paper does
not say whether projections have biases; as in its authors' code the feed-forward network has, and as in ``torch`` the
attention has too. The epsilon of the norms is torch's.
"""

from collections.abc import Mapping
from typing import Any

from orrery.checkpoints.rules import Rule, rename, renames
from orrery.families import _parts
from orrery.families._config import Config
from orrery.families._keys import size, token
from orrery.families._seq2seq import STACKS, reader, start_token
from orrery.models.encoder_decoder import EncoderDecoder
from orrery.nn.attention.multihead import MultiHeadAttention
from orrery.nn.attention.sources import CrossSource
from orrery.nn.embeddings import TokenEmbedding
from orrery.nn.feedforward.mlp import MLP
from orrery.nn.heads import LanguageModelHead
from orrery.nn.masks import Causal, Full, Mask
from orrery.nn.norms import LayerNorm
from orrery.nn.positions.sinusoidal import SinusoidalPositions
from orrery.nn.residual import Dropout, Scale
from orrery.nn.spec import ModuleSpec
from orrery.nn.stack import Stack, repeat

ARCHITECTURE = "Transformer"
LIBRARY = "orrery"
DEFAULTS: Mapping[str, Any] = {
    "vocab_size": size(37000),
    "d_model": size(512),
    "d_ff": size(2048),
    "num_layers": size(6),
    "num_heads": 8,
    "dropout": 0.1,
    "layer_norm_eps": 1e-5,
    "max_position_embeddings": 512,
    "decoder_start_token_id": token(1),
}
TINY = {
    "vocab_size": 61, "d_model": 24, "d_ff": 40, "num_layers": 2, "num_heads": 3, "max_position_embeddings": 48,
}  # fmt: skip


def spec(config: Mapping[str, Any]) -> EncoderDecoder.Spec:
    """Return the architecture that a ``config.json`` describes."""
    c = Config("transformer", config, DEFAULTS)
    feed_forward = MLP.Spec(hidden=c["d_ff"], activation="relu")
    reads = {"attention": _attention(c, mask="all"), "feed_forward": feed_forward}
    writes = {
        "attention": _attention(c, mask="causal"),
        "cross": _attention(c, source=CrossSource.Spec()),
        "feed_forward": feed_forward,
    }
    return EncoderDecoder.Spec(
        width=c["d_model"],
        context=c["max_position_embeddings"],
        reader=reader(
            c["d_model"],
            c["max_position_embeddings"],
            TokenEmbedding.Spec(vocabulary=c["vocab_size"]),
            _stack(c, reads, {"all": Full()}),
        ),
        decoder=_stack(c, writes, {"causal": Causal()}),
        head=LanguageModelHead.Spec(vocabulary=c["vocab_size"]),
        start=start_token(c, "decoder_start_token_id"),
    )


def _attention(c: Config, **slots: Any) -> MultiHeadAttention.Spec:
    return MultiHeadAttention.Spec(
        heads=c["num_heads"],
        kv_heads=c["num_heads"],
        head_width=c.divide("d_model", "num_heads"),
        biases=_parts.biases(),
        **slots,
    )


def _stack(c: Config, branches: Mapping[str, ModuleSpec], masks: Mapping[str, Mask]) -> Stack.Spec:
    norm = LayerNorm.Spec(eps=c["layer_norm_eps"])
    return Stack.Spec(
        blocks=repeat(_parts.sequential(branches, out=norm, dropout=c["dropout"]), c["num_layers"]),
        positions={"sinusoidal": SinusoidalPositions.Spec()},
        masks=masks,
        enter=Scale.Spec(factor=c["d_model"] ** 0.5),
        start=Dropout.Spec(rate=c["dropout"]),
    )


_PARTS = {
    "attention": ("branch.q", "branch.k", "branch.v", "branch.out", "out"),
    "cross": ("branch.q", "branch.k", "branch.v", "branch.out", "out"),
    "feed_forward": ("branch.up", "branch.down", "out"),
}
WEIGHTS: tuple[Rule, ...] = (
    rename("embed.token.weight", "reader.embed.token.weight"),
    *(
        rule
        for side, stack in STACKS.items()
        for role, parts in _PARTS.items()
        for rule in renames(f"{side}.blocks.{{i}}.{role}", f"{stack}.blocks.{{i}}.{role}", [(p, p) for p in parts])
    ),
)
