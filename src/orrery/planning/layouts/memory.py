"""The memory of one device under a layout: weights, gradients, optimizer, activations; and of decoding."""

from dataclasses import dataclass, fields

from orrery.planning.layouts.layout import ParallelLayout, Recomputation
from orrery.planning.layouts.training import TrainingStep
from orrery.planning.layouts.work import DecoderWork

PREFETCHED = 2
"""Layers whose weights FSDP holds together at once, beside the tables: that which is computed, and the next."""


@dataclass(frozen=True)
class Memory:
    """Bytes of the fullest device.

    Attributes:
        weights: as the products read them.
        gradients: of the weights.
        optimizer: its state and the weights in full precision.
        gathered: the weights that FSDP brings together for the layers at hand.
        activations: what the forward pass keeps for the backward pass.
        working: what one layer needs beside that, where it is computed again.
        logits: of the last stage, in fp32, and what the head and the last norm read.
    """

    weights: int | float
    gradients: int | float
    optimizer: int | float
    gathered: int | float
    activations: int | float
    working: int | float
    logits: int | float

    @property
    def total(self) -> int | float:
        """All of them."""
        return float(sum(getattr(self, f.name) for f in fields(self)))


@dataclass(frozen=True)
class DeviceWeights:
    """The parameters of one device before FSDP shards them.

    Attributes:
        dense: those that every token meets.
        experts: those of the experts.
        layer: of one layer, both kinds.
        layer_experts: those of the experts of one layer.
    """

    dense: int | float
    experts: int | float
    layer: int | float
    layer_experts: int | float


@dataclass(frozen=True)
class PipelineStage:
    """One stage of the pipeline.

    Attributes:
        layers: that it has.
        tables: of tokens: the embedding on the first, the head on the last.
        ahead: stages before it, each of which has begun one micro batch more.
        last: whether it has the logits.
    """

    layers: int
    tables: int
    ahead: int
    last: bool


def memory(work: DecoderWork, training: TrainingStep, layout: ParallelLayout) -> Memory:
    """Return the bytes of the fullest device.

    The first stage has begun most micro batches, the last has the logits, and those between may have a layer more.
    """
    ends = stage_layers(work, layout)
    if layout.pipeline == 1:
        return _stage(work, training, layout, last_stage(work, layout))
    candidates = [PipelineStage(ends, 1, 0, last=False), last_stage(work, layout)]
    if layout.pipeline > 2:
        candidates.append(PipelineStage(layout.slots(work), 0, 1, last=False))
    return max((_stage(work, training, layout, stage) for stage in candidates), key=lambda one: one.total)


def _stage(work: DecoderWork, training: TrainingStep, layout: ParallelLayout, stage: PipelineStage) -> Memory:
    weights, size = stage_weights(work, layout, stage), training.bytes
    layer = layer_activations(work, training, layout)
    kept = layer.kept(layout.recompute)
    begun = in_flight(layout, layout.micro_batches(training), stage.ahead)
    tokens = layout.micro * training.length / layout.context
    embedded = tokens * work.width * training.dropout / layout.between
    beside = layout.sharded(1) > layout.sharded(3)
    return Memory(
        weights=size.weight * shard(weights, layout, 3) + size.shard * beside * shard(weights, layout, 1),
        gradients=size.gradient * shard(weights, layout, 2),
        optimizer=size.optimizer * shard(weights, layout, 1),
        gathered=size.weight * _gathered(work, layout, stage, weights),
        activations=begun * (stage.layers * kept + (0.0 if stage.ahead else embedded)),
        working=layer.whole - kept,
        logits=4 * tokens * (work.width / layout.between + work.vocabulary / layout.tensor) if stage.last else 0.0,
    )


def _gathered(work: DecoderWork, layout: ParallelLayout, stage: PipelineStage, weights: "DeviceWeights") -> int | float:
    """Return the parameters that FSDP holds together where it shards them: of two layers, and of the tables."""
    if layout.sharded(3) == 1:
        return 0.0
    layer = weights.layer - weights.layer_experts * (layout.sharded_experts(3) == 1)
    return min(PREFETCHED, stage.layers) * layer + stage.tables * work.table / layout.tensor


def stage_layers(work: DecoderWork, layout: ParallelLayout) -> int:
    """Return the layers of the first and of the last stage, or of the only one."""
    return work.layers if layout.pipeline == 1 else layout.slots(work) - layout.spare(work) // 2


def last_stage(work: DecoderWork, layout: ParallelLayout) -> PipelineStage:
    """Return the last stage, or the only one."""
    tables = 1 if layout.pipeline > 1 or work.tied else 2
    return PipelineStage(stage_layers(work, layout), tables, layout.pipeline - 1, last=True)


def stage_weights(work: DecoderWork, layout: ParallelLayout, stage: PipelineStage) -> DeviceWeights:
    """Return the parameters of a device of a stage."""
    # With more ranks than heads of keys and values, several hold the same head.
    copied = work.width * work.cached * (1 / min(layout.tensor, work.kv_heads) - 1 / layout.tensor)
    copied *= layout.tensor > work.kv_heads
    dense = (work.block - work.block_experts) / layout.tensor + copied
    experts = work.block_experts / layout.tensor / layout.expert
    tables = stage.tables * work.table / layout.tensor
    return DeviceWeights(stage.layers * dense + tables, stage.layers * experts, dense + experts, experts)


def shard(weights: DeviceWeights, layout: ParallelLayout, stage: int) -> int | float:
    """Return the parameters of a device whose state a ZeRO stage shards; experts are cut among fewer devices."""
    return weights.dense / layout.sharded(stage) + weights.experts / layout.sharded_experts(stage)


def in_flight(layout: ParallelLayout, micro_batches: int, ahead: int = 0) -> int | float:
    """Return the micro batches whose activations a stage keeps at once; the first one ``p``, or ``p + (p - 1) / v``.

    ``p`` for one chunk a stage (1F1B, Narayanan et al. 2021), the other for several (Korthikanti et al. 2022, section
    4.2.3); each stage further on one less.
    """
    more = (layout.pipeline - 1) / layout.interleave if layout.interleave > 1 else 0
    return min(float(micro_batches), layout.pipeline + more - ahead)


@dataclass(frozen=True)
class LayerActivations:
    """Bytes that one layer keeps of a micro batch on one device, where nothing is recomputed.

    For a GPT with dropout they are ``s b h (10 + 24 / t + 5 a s / (h t))``, and ``s b h (34 + 5 a s / h) / t`` with
    sequence parallelism (Korthikanti et al. 2022, equations 2 and 4).

    Attributes:
        outside: inputs of norms and of products, and dropout masks: what tensor ranks share by sequence parallelism.
        inside: q, k, v, what attention gives, the hidden channels before and after the activation.
        scores: of attention, where the kernel keeps them.
        boundary: the layer's input alone.
    """

    outside: int | float
    inside: int | float
    scores: int | float
    boundary: int | float

    @property
    def whole(self) -> int | float:
        """All of a layer."""
        return self.outside + self.inside + self.scores

    def kept(self, again: Recomputation) -> int | float:
        """Return what is kept: all, all but the scores, or the layer's input, ``2 s b h``."""
        layer = again.kept * (self.outside + self.inside) + (1 - again.kept) * self.boundary
        return layer + again.scores * self.scores


def layer_activations(work: DecoderWork, training: TrainingStep, layout: ParallelLayout) -> LayerActivations:
    """Return what one layer keeps of a micro batch."""
    tokens = layout.micro * training.length / layout.context
    size = training.bytes.activation
    heads = 2 * work.heads * work.head_width + work.cached
    return LayerActivations(
        outside=tokens * work.width * work.branches * (2 * size + training.dropout) / layout.between,
        inside=tokens * size * (heads + (work.ups + 1) * work.hidden * work.chosen) / layout.tensor,
        scores=training.kernel.score_bytes * work.heads * tokens * training.length / layout.tensor,
        boundary=size * tokens * work.width / layout.between,
    )
