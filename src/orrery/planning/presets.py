"""Presets: architectures that papers describe and whose weights nobody published.

They are for planning, for study and for training small models of their kind. What a paper leaves open (an epsilon, the
base of a rotation) is a choice of ours and changes no count; each function says where it had to choose.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import cast

from orrery.errors import UsageError
from orrery.families import load_family
from orrery.models.decoder import Decoder
from orrery.models.encoder_decoder import EncoderDecoder
from orrery.models.model import ModelSpec
from orrery.nn.attention.disentangled import ContentToPosition, DisentangledAttention, Own
from orrery.nn.attention.multihead import MultiHeadAttention, ScoreSettings
from orrery.nn.attention.transformer_xl import ContentBias, HeadBias
from orrery.nn.block import Block
from orrery.nn.embeddings import TokenEmbedding
from orrery.nn.feedforward.gated import GatedMLP
from orrery.nn.feedforward.mlp import MLP
from orrery.nn.heads import LanguageModelHead
from orrery.nn.masks import Causal
from orrery.nn.norms import LayerNorm, RMSNorm
from orrery.nn.positions.relative import Backward, RelativeBias
from orrery.nn.positions.relative_sinusoids import RelativeSinusoids
from orrery.nn.positions.rotary import Rotary
from orrery.nn.positions.scheme import PositionSpec
from orrery.nn.residual import Identity, Residual, Scale, Sum
from orrery.nn.spec import ModuleSpec
from orrery.nn.stack import Stack, repeat


def gpt3(width: int, layers: int, heads: int, *, vocabulary: int = 50_257, context: int = 2048) -> Decoder.Spec:
    """Return a GPT-3: GPT-2 with 2,048 positions (Brown et al. 2020, section 2.1 and Table 2.1).

    Differs from the paper: every layer is dense, where theirs alternate with locally banded sparse attention; that
    changes no parameter.
    """
    config = {"n_embd": width, "n_layer": layers, "n_head": heads, "n_positions": context, "vocab_size": vocabulary}
    return cast(Decoder.Spec, load_family("gpt2").spec(config))


def transformer(
    width: int, hidden: int, layers: int, heads: int, *, vocabulary: int = 37_000, context: int = 512
) -> EncoderDecoder.Spec:
    """Return an original Transformer (Vaswani et al. 2017, Table 3).

    Differs from the paper: its sizes do not belong to one vocabulary. The base model (65M) and the seven variants of
    row (C) are met with about 41,000 rows, the big one (213M) with 36,000; section 5.1 says "about 37000", with which
    they have 63.1 and 214.2 million. Biases are ours, see the family.
    """
    config = {
        "d_model": width,
        "d_ff": hidden,
        "num_layers": layers,
        "num_heads": heads,
        "vocab_size": vocabulary,
        "max_position_embeddings": context,
    }
    return cast(EncoderDecoder.Spec, load_family("transformer").spec(config))


def palm(
    width: int, layers: int, heads: int, *, head_width: int = 256, vocabulary: int = 256_000, context: int = 2048
) -> Decoder.Spec:
    """Return a PaLM (Chowdhery et al. 2022, section 2): both branches of a block read one norm and are added at once.

    ``x + attention(norm(x)) + mlp(norm(x))``: multi-query attention, SwiGLU of four times the width, rotary positions,
    no biases anywhere, norms among them; the head is the embedding table, and logits are divided by ``sqrt(width)``.
    Ours: the order of addition, the pairing of rotated channels and the epsilon.
    """
    norm = LayerNorm.Spec(bias=False)
    attention = MultiHeadAttention.Spec(heads=heads, kv_heads=1, head_width=head_width, position="rotary")
    branches = {"attention": attention, "feed_forward": GatedMLP.Spec(hidden=4 * width)}
    block = Block.Spec(residuals={"parallel": Residual.Spec(branch=Sum.Spec(branches=branches), pre=norm)})
    positions = {"rotary": Rotary.Spec(width=head_width)}
    return _decoder(width, layers, block, norm, positions, vocabulary, context, cap=Scale.Spec(factor=width**-0.5))


def gopher(
    width: int, layers: int, heads: int, *, head_width: int = 128, vocabulary: int = 32_000, context: int = 2048
) -> Decoder.Spec:
    """Return a Gopher or a Chinchilla (Rae et al. 2021, section 3.1; Hoffmann et al. 2022, section 4.1).

    GPT-2 with RMSNorm and the relative positions of Transformer-XL, whose projection makes 13 where GPT-2 has 12
    squares of the width in a layer; the sizes that both papers print say so, and that the head is tied.
    Ours: no biases but those of Transformer-XL (the papers name none), gelu, and an epsilon.
    """
    places = ContentToPosition.Spec(
        projection=Own.Spec(width=heads * head_width, bias=False),
        query=HeadBias.Spec(heads=heads, head_width=head_width),
    )
    attention = DisentangledAttention.Spec(
        heads=heads,
        head_width=head_width,
        terms={
            "content_to_position": places,
            "content_bias": ContentBias.Spec(heads=heads, head_width=head_width),
        },
        scoring=ScoreSettings(scale=head_width**-0.5),
        mask="causal",
    )
    norm, feed_forward = RMSNorm.Spec(), MLP.Spec(hidden=4 * width, bias=False)
    block = _pre_norm(norm, attention, feed_forward)
    return _decoder(width, layers, block, norm, {"relative": RelativeSinusoids.Spec()}, vocabulary, context)


def lamda(
    width: int,
    layers: int,
    heads: int,
    *,
    head_width: int = 128,
    hidden: int = 65_536,
    vocabulary: int = 32_000,
    context: int = 2048,
) -> Decoder.Spec:
    """Return a model like LaMDA (Thoppilan et al. 2022, section 3): a decoder with the biases and gates of T5.

    Ours, because the paper does not say: RMSNorm as in T5, 32 buckets up to a distance of 128, scaled scores, a tied
    head and the context. Its 137 billion parameters do not count the embeddings.
    """
    norm = RMSNorm.Spec()
    attention = MultiHeadAttention.Spec(heads=heads, kv_heads=heads, head_width=head_width, position="relative")
    block = _pre_norm(norm, attention, GatedMLP.Spec(hidden=hidden, activation="gelu"))
    relative = RelativeBias.Spec(heads=heads, buckets=Backward(count=32, furthest=128))
    return _decoder(width, layers, block, norm, {"relative": relative}, vocabulary, context)


_NO_CAP = Identity.Spec()
PRESETS: Mapping[str, Callable[[], ModelSpec]] = {
    "transformer-base": partial(transformer, 512, 2048, 6, 8),
    "transformer-big": partial(transformer, 1024, 4096, 6, 16),
    "gpt3-125m": partial(gpt3, 768, 12, 12),
    "gpt3-350m": partial(gpt3, 1024, 24, 16),
    "gpt3-760m": partial(gpt3, 1536, 24, 16),
    "gpt3-1.3b": partial(gpt3, 2048, 24, 16),
    "gpt3-2.7b": partial(gpt3, 2560, 32, 32),
    "gpt3-6.7b": partial(gpt3, 4096, 32, 32),
    "gpt3-13b": partial(gpt3, 5120, 40, 40),
    "gpt3-175b": partial(gpt3, 12288, 96, 96),
    "palm-8b": partial(palm, 4096, 32, 16),
    "palm-62b": partial(palm, 8192, 64, 32),
    "palm-540b": partial(palm, 18432, 118, 48),
    "gopher-280b": partial(gopher, 16384, 80, 128),
    "chinchilla-70b": partial(gopher, 8192, 80, 64),
    "lamda-137b": partial(lamda, 8192, 64, 128),
}
"""Every preset by name. Two rows of GPT-3's Table 2.1 cannot be built as printed:

24 heads of 128 do not make a width of 2,048 (1.3B), 16 do; and 5,140 is not divisible by 40 heads (13B), 5,120 is.
"""


def preset(name: str) -> ModelSpec:
    """Return the architecture of this name.

    Raises:
        UsageError: there is none.
    """
    if name not in PRESETS:
        raise UsageError(f"no preset {name!r}", f"there are: {', '.join(PRESETS)}")
    return PRESETS[name]()


def _pre_norm(norm: ModuleSpec, attention: ModuleSpec, feed_forward: ModuleSpec) -> Block.Spec:
    return Block.Spec(
        residuals={
            "attention": Residual.Spec(branch=attention, pre=norm),
            "feed_forward": Residual.Spec(branch=feed_forward, pre=norm),
        }
    )


def _decoder(
    width: int,
    layers: int,
    block: Block.Spec,
    final: ModuleSpec,
    positions: Mapping[str, PositionSpec],
    vocabulary: int,
    context: int,
    cap: ModuleSpec = _NO_CAP,
) -> Decoder.Spec:
    """Return a decoder of equal blocks with a tied head."""
    masks = {"causal": Causal()}
    return Decoder.Spec(
        width=width,
        context=context,
        embed=TokenEmbedding.Spec(vocabulary=vocabulary),
        stack=Stack.Spec(blocks=repeat(block, layers), final=final, positions=positions, masks=masks),
        head=LanguageModelHead.Spec(vocabulary=vocabulary, tied=True, cap=cap),
    )
