"""SegFormer (Xie et al. 2021): a label for every point of a picture, from four stages that grow coarser.

Peculiar to it: overlapping patches in place of positions, and a convolution inside each feed-forward network, which
sees where the border is; keys and values of a coarser copy of the picture; a head that brings the pictures of all
stages to one size and joins them by a matrix and a batch norm.

The head ``points`` gives the scores of every label at every fourth point, ``[B, rows / 4, columns / 4, labels]``: the
reference has the labels on its second axis. ``layer_norm_eps`` is read by nobody, there neither; the size of the
pictures that it is made for is ``image_size``, which changes no number.
"""

from collections.abc import Mapping
from itertools import accumulate
from typing import Any

from orrery.checkpoints.layouts import OnePoint
from orrery.checkpoints.rules import Rule, rename, renames
from orrery.errors import ModelFileError
from orrery.families import _heads, _parts, _vit
from orrery.families._config import Config
from orrery.families._keys import items, number, size
from orrery.models.encoder import Encoder
from orrery.models.hierarchical_encoder import HierarchicalEncoder
from orrery.nn.attention.multihead import MultiHeadAttention, ScoreSettings
from orrery.nn.attention.shortened import ShortenedSource
from orrery.nn.attention.sources import SelfSource
from orrery.nn.block import Block
from orrery.nn.feature_maps import FusedMaps, LastMap
from orrery.nn.feedforward.mixed import MixMLP
from orrery.nn.heads import Mean, Pooler, SequenceHead, TokenHead
from orrery.nn.masks import Full
from orrery.nn.norms import LayerNorm
from orrery.nn.patches import OverlappingPatches
from orrery.nn.residual import Residual
from orrery.nn.spec import ModuleSpec
from orrery.nn.stack import Stack
from orrery.nn.stochastic_depth import StochasticDepth

ARCHITECTURE = "SegformerForSemanticSegmentation"
CLASSES, BARE = "SegformerForImageClassification", "SegformerModel"
DEFAULTS: Mapping[str, Any] = {
    "num_channels": size(3),
    "num_encoder_blocks": size(4),
    "depths": items([2, 2, 2, 2]),
    "sr_ratios": items([8, 4, 2, 1]),
    "hidden_sizes": items([32, 64, 160, 256]),
    "patch_sizes": items([7, 3, 3, 3]),
    "strides": items([4, 2, 2, 2]),
    "num_attention_heads": items([1, 2, 5, 8]),
    "mlp_ratios": items([4, 4, 4, 4]),
    "hidden_act": "gelu",
    "hidden_dropout_prob": number(0.0),
    "attention_probs_dropout_prob": number(0.0),
    "classifier_dropout_prob": number(0.1),
    "drop_path_rate": number(0.1),
    "decoder_hidden_size": size(256),
    "reshape_last_stage": True,
    "image_size": size(224),
    **_heads.DEFAULTS,
}
TINY: Mapping[str, Any] = {
    "num_encoder_blocks": 2, "depths": [1, 2], "sr_ratios": [2, 1], "hidden_sizes": [8, 16], "patch_sizes": [7, 3],
    "strides": [4, 2], "num_attention_heads": [2, 4], "mlp_ratios": [2, 2], "decoder_hidden_size": 12, "image_size": 32,
}  # fmt: skip
_STAGES = ("depths", "sr_ratios", "hidden_sizes", "patch_sizes", "strides", "num_attention_heads", "mlp_ratios")
_IGNORED = ("layer_norm_eps", "semantic_loss_ignore_index", "downsampling_rates")


def spec(config: Mapping[str, Any]) -> HierarchicalEncoder.Spec:
    """Return the architecture that a ``config.json`` describes."""
    c = Config("segformer", config, DEFAULTS, ignored=_IGNORED, aliases={"num_hidden_layers": "num_encoder_blocks"})
    _check(c)
    image, channels = (c["image_size"], c["image_size"]), c["num_channels"]
    stages = list[Encoder.Spec]()
    begins = [0, *accumulate(c["depths"])]
    for stage, begin in enumerate(begins[:-1]):
        embed = OverlappingPatches.Spec(
            image=image, patch=c["patch_sizes"][stage], stride=c["strides"][stage], channels=channels
        )
        stages.append(_stage(c, stage, begin, embed))
        image, channels = embed.input.grid(*image), c["hidden_sizes"][stage]
    fused = FusedMaps.Spec(width=c["decoder_hidden_size"], dropout=c["classifier_dropout_prob"])
    heads: Mapping[str, Mapping[str, ModuleSpec]] = {
        ARCHITECTURE: {"points": TokenHead.Spec(**_heads.named(c))},
        CLASSES: {"sequence": SequenceHead.Spec(pooler=Pooler.Spec(pool=Mean()), **_heads.of_row(c))},
        BARE: {},
    }
    chosen = _vit.chosen(c, ARCHITECTURE, heads)
    return HierarchicalEncoder.Spec(
        width=channels,
        context=stages[-1].context,
        stages=tuple(stages),
        join=fused if "points" in chosen else LastMap.Spec(),
        heads=chosen,
    )


def _check(c: Config) -> None:
    """Refuse lists that do not say one whole number for each stage, and a last stage that a head cannot read.

    Raises:
        ModelFileError: they do not.
    """
    count = c["num_encoder_blocks"]
    for key in _STAGES:
        whole = all(type(one) is int and one > 0 for one in c[key])
        if len(c[key]) != count or not whole:
            raise ModelFileError(
                f"{c.family}: {key} = {str(c[key])[:60]} for num_encoder_blocks = {count}", "give one number a stage"
            )
    if not c["reshape_last_stage"] and (c["architectures"] or [ARCHITECTURE])[0] == ARCHITECTURE:
        raise ModelFileError(
            f"{c.family}: reshape_last_stage = False with a label for every point",
            "the reference cannot run such a model either; leave the key out",
        )


def _stage(c: Config, stage: int, begin: int, embed: OverlappingPatches.Spec) -> Encoder.Spec:
    """Return one stage: its patches, its blocks and the norm behind them; ``begin`` blocks stand before it."""
    width = c["hidden_sizes"][stage]
    last = max(sum(c["depths"]) - 1, 1)
    rates = [c["drop_path_rate"] * (begin + depth) / last for depth in range(c["depths"][stage])]
    blocks = tuple(_block(c, stage, width, rate) for rate in rates)
    stack = Stack.Spec(blocks=blocks, final=LayerNorm.Spec(), positions={}, masks={"all": Full()})
    return Encoder.Spec(width=width, context=embed.tokens, embed=embed, stack=stack, heads={})


def _block(c: Config, stage: int, width: int, rate: float) -> Block.Spec:
    """Return a block whose branches training leaves out at a rate."""
    heads, by = c["num_attention_heads"][stage], c["sr_ratios"][stage]
    if width % heads:
        raise ModelFileError(
            f"{c.family}: hidden_sizes = {width} of stage {stage} is not divisible by num_attention_heads = {heads}",
            f"choose a divisor of {width}",
        )
    attention = MultiHeadAttention.Spec(
        heads=heads,
        kv_heads=heads,
        head_width=width // heads,
        biases=_parts.biases(),
        scoring=ScoreSettings(dropout=c["attention_probs_dropout_prob"]),
        source=ShortenedSource.Spec(by=by) if by > 1 else SelfSource.Spec(),
        mask="all",
    )
    dropout = c["hidden_dropout_prob"]
    mixed = MixMLP.Spec(hidden=width * c["mlp_ratios"][stage], activation=c.activation("hidden_act"), dropout=dropout)
    branches = {"attention": attention, "feed_forward": mixed}
    left_out = StochasticDepth.Spec(rate=rate)
    residuals = {
        name: Residual.Spec(branch=branch, pre=LayerNorm.Spec(), post=left_out, dropout=dropout)
        for name, branch in branches.items()
    }
    return Block.Spec(residuals=residuals)


_LAYER = (
    ("layer_norm_1", "attention.pre"),
    ("attention.self.query", "attention.branch.q"),
    ("attention.self.key", "attention.branch.k"),
    ("attention.self.value", "attention.branch.v"),
    ("attention.self.sr", "attention.branch.source.conv"),
    ("attention.self.layer_norm", "attention.branch.source.norm"),
    ("attention.output.dense", "attention.branch.out"),
    ("layer_norm_2", "feed_forward.pre"),
    ("mlp.dense1", "feed_forward.branch.up"),
    ("mlp.dwconv.dwconv", "feed_forward.branch.neighbours"),
    ("mlp.dense2", "feed_forward.branch.down"),
)
_AROUND = (
    ("patch_embeddings.{i}.proj", "embed.project"),
    ("patch_embeddings.{i}.layer_norm", "embed.norm"),
    ("layer_norm.{i}", "stack.final"),
)
_NORM = (
    ("weight", "weight"), ("bias", "bias"), ("running_mean", "mean"), ("running_var", "variance"),
    ("num_batches_tracked", "batches"),
)  # fmt: skip


def WEIGHTS(config: Mapping[str, Any]) -> tuple[Rule, ...]:  # noqa: N802 - the name of a family's rules
    """Return the rules of the files; a bare model's names begin without ``segformer``."""
    base = _vit.base(config, BARE, "segformer.") + "encoder"
    return (
        *renames(f"{base}.block.{{i}}.{{j}}", "stages.{i}.stack.blocks.{j}", _LAYER),
        *(rename(f"{base}.{a}.{end}", f"stages.{{i}}.{b}.{end}") for a, b in _AROUND for end in _vit.ENDS),
        *(rename(f"decode_head.linear_c.{{i}}.proj.{end}", f"join.projections.{{i}}.{end}") for end in _vit.ENDS),
        Rule("decode_head.linear_fuse.weight", ("join.join.weight",), OnePoint()),
        *(rename(f"decode_head.batch_norm.{theirs}", f"join.norm.{ours}") for theirs, ours in _NORM),
        Rule("decode_head.classifier.weight", ("heads.points.labels.weight",), OnePoint()),
        rename("decode_head.classifier.bias", "heads.points.labels.bias"),
        *(rename(f"classifier.{end}", f"heads.sequence.labels.{end}") for end in _vit.ENDS),
    )
