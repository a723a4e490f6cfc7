"""What Llama-like families with experts share: Mixtral, Qwen 2 and 3 MoE, OLMoE and gpt-oss."""

from collections.abc import Mapping, Sequence

from orrery.checkpoints.rules import Rule, renames
from orrery.errors import ModelFileError
from orrery.families import _rotary
from orrery.families._config import Config
from orrery.models.decoder import Decoder
from orrery.nn.attention.multihead import Biases, MultiHeadAttention, NoSinks, Scoring
from orrery.nn.block import Block
from orrery.nn.embeddings import TokenEmbedding
from orrery.nn.feedforward.gated import GatedMLP
from orrery.nn.feedforward.moe import MoE
from orrery.nn.feedforward.routers import AsScored, Normalised, SoftmaxRouter, TopK
from orrery.nn.heads import LanguageModelHead
from orrery.nn.masks import Causal, Mask, Window
from orrery.nn.norms import RMSNorm
from orrery.nn.residual import Identity, Residual
from orrery.nn.spec import ModuleSpec
from orrery.nn.stack import Stack

GLOBAL, LOCAL = "causal", "window"
"""The names of the two masks: the whole past, and the last tokens of it."""

_LAYER_TYPES = {"full_attention": GLOBAL, "sliding_attention": LOCAL}


def attention(
    c: Config,
    mask: str = GLOBAL,
    *,
    biases: Biases | None = None,
    qk_norm: ModuleSpec | None = None,
    sinks: ModuleSpec | None = None,
) -> MultiHeadAttention.Spec:
    """Return Llama's attention under the mask of this name."""
    return MultiHeadAttention.Spec(
        heads=c["num_attention_heads"],
        kv_heads=c["num_key_value_heads"] or c["num_attention_heads"],
        head_width=head_width(c),
        biases=biases or Biases(),
        scoring=Scoring(dropout=c["attention_dropout"]),
        qk_norm=qk_norm or Identity.Spec(),
        sinks=sinks or NoSinks.Spec(),
        position="rotary",
        mask=mask,
    )


def head_width(c: Config) -> int:
    """Return the channels of a head: those named, or the width shared out among the heads."""
    return c["head_dim"] or c.divide("hidden_size", "num_attention_heads")


def experts(c: Config, count: int, hidden: str, *, normalised: bool, shared: tuple[ModuleSpec, ...] = ()) -> MoE.Spec:
    """Return ``count`` gated networks and the router that weighs the chosen by their (normalised) probabilities."""
    return MoE.Spec(
        expert=GatedMLP.Spec(hidden=c[hidden], activation=c.activation("hidden_act")),
        router=SoftmaxRouter.Spec(
            experts=count,
            choice=TopK(chosen=c["num_experts_per_tok"]),
            weighing=Normalised() if normalised else AsScored(),
        ),
        shared=shared,
    )


def mixed(c: Config, count: int, mixture: ModuleSpec) -> list[ModuleSpec]:
    """Return each layer's feed-forward network: a mixture at every ``decoder_sparse_step``, dense ones elsewhere."""
    dense = GatedMLP.Spec(hidden=c["intermediate_size"], activation=c.activation("hidden_act"))
    only_dense, step = set(c["mlp_only_layers"] or ()), c["decoder_sparse_step"]
    return [
        mixture if count and i not in only_dense and (i + 1) % step == 0 else dense
        for i in range(c["num_hidden_layers"])
    ]


def masks(c: Config, window: int | None, names: Sequence[str]) -> dict[str, Mask]:
    """Return the masks of these names.

    Raises:
        ModelFileError: a layer looks through a window, and none is given.
    """
    if LOCAL in names and not window:
        raise ModelFileError(
            f"{c.family}: a layer slides over a window, whose length is missing", "give sliding_window"
        )
    rules: dict[str, Mask] = {GLOBAL: Causal()}
    if window:
        rules[LOCAL] = Causal() & Window(length=window)
    return {name: rules[name] for name in dict.fromkeys(names)}


def layer_masks(c: Config) -> list[str]:
    """Return the mask of each layer by its ``layer_types``.

    Raises:
        ModelFileError: an unknown type, or not one for each layer.
    """
    types = c["layer_types"]
    if unknown := sorted(set(types) - set(_LAYER_TYPES)):
        raise ModelFileError(f"{c.family}: layer type {unknown[0]!r} is not known", f"known: {', '.join(_LAYER_TYPES)}")
    if len(types) != c["num_hidden_layers"]:
        raise ModelFileError(
            f"{c.family}: {len(types)} layer_types for {c['num_hidden_layers']} layers", "give one for each layer"
        )
    return [_LAYER_TYPES[kind] for kind in types]


def decoder(
    c: Config,
    attentions: Sequence[ModuleSpec],
    feed_forwards: Sequence[ModuleSpec],
    rules: Mapping[str, Mask],
) -> Decoder.Spec:
    """Return Llama with these branches, layer by layer."""
    norm, context = RMSNorm.Spec(eps=c["rms_norm_eps"]), c["max_position_embeddings"]
    blocks = [
        Block.Spec(
            residuals={
                "attention": Residual.Spec(branch=attention, pre=norm),
                "feed_forward": Residual.Spec(branch=feed_forward, pre=norm),
            }
        )
        for attention, feed_forward in zip(attentions, feed_forwards, strict=True)
    ]
    return Decoder.Spec(
        width=c["hidden_size"],
        context=context,
        embed=TokenEmbedding.Spec(vocabulary=c["vocab_size"]),
        stack=Stack.Spec(
            blocks=tuple(blocks),
            final=norm,
            positions={"rotary": _rotary.rotary(c, head_width(c), context)},
            masks=rules,
        ),
        head=LanguageModelHead.Spec(vocabulary=c["vocab_size"], tied=c["tie_word_embeddings"]),
    )


BLOCK, THEIRS = "stack.blocks.{i}", "model.layers.{i}"
FEED_FORWARD = f"{BLOCK}.feed_forward.branch"
GATED = tuple((f"{part}_proj", part) for part in ("gate", "up", "down"))
QK_NORMS: tuple[Rule, ...] = renames(
    f"{THEIRS}.self_attn", f"{BLOCK}.attention.branch", [("q_norm", "q_norm"), ("k_norm", "k_norm")], ["weight"]
)
EXPERTS: tuple[Rule, ...] = (
    *renames(f"{THEIRS}.mlp", FEED_FORWARD, [("gate", "router.linear")], ["weight"]),
    *renames(f"{THEIRS}.mlp.experts.{{x}}", f"{FEED_FORWARD}.experts.{{x}}", GATED, ["weight"]),
)
"""The router and the experts as Qwen, OLMoE and DeepSeek write them: one tensor an expert."""
