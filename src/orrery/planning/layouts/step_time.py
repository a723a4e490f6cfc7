"""The simulated time of a training step: what computes, what waits for memory or for others, and what stands idle."""

from dataclasses import dataclass, fields

from orrery.planning.layouts.communication import LayerBytes, Routes, layer_bytes, routes, step_bytes
from orrery.planning.layouts.layout import ParallelLayout
from orrery.planning.layouts.memory import last_stage, layer_activations, shard, stage_layers, stage_weights
from orrery.planning.layouts.training import TrainingStep
from orrery.planning.layouts.work import DecoderWork
from orrery.planning.machines import Machine

ADAM_BYTES = 30
"""That Adam moves for a parameter: gradient, copy and moments read (16), those three written (12), the weight (2)."""
LOGIT_BYTES = 16
"""That the loss moves for a logit in fp32: written, read, its gradient written and read."""


@dataclass(frozen=True)
class StepTime:
    """Seconds of a step, as they follow each other on the slowest device.

    Attributes:
        matmul: products with weights, at the machine's rate times its efficiency, recomputed ones too.
        attention: products of queries, keys and values, alike.
        memory: what lies between the products, at the bandwidth of the memory.
        tensor: all-reduces of tensor ranks; nothing can be computed meanwhile.
        expert: tokens to their experts and back; alike.
        context: keys and values of other ranks, as far as attention does not hide them.
        fsdp: weights and gradients of shards, as far as a layer, or with ZeRO 1 and 2 a micro batch, does not hide it.
        data: gradients between copies, as far as the last backward pass does not hide them.
        head: the product with the table of tokens and the loss, where the last stage is the slowest.
        bubble: stages that wait while the pipeline fills and drains: ``(p - 1) / (v m)`` of the passes and the head.
        optimizer: Adam, at the bandwidth of the memory.
    """

    matmul: int | float
    attention: int | float
    memory: int | float
    tensor: int | float
    expert: int | float
    context: int | float
    fsdp: int | float
    data: int | float
    head: int | float
    bubble: int | float
    optimizer: int | float

    @property
    def total(self) -> int | float:
        """The seconds of the step."""
        return float(sum(getattr(self, f.name) for f in fields(self)))


@dataclass(frozen=True)
class Pass:
    """Seconds of one layer, forward or backward, without what FSDP sends."""

    matmul: int | float
    attention: int | float
    memory: int | float
    tensor: int | float
    expert: int | float
    context: int | float

    @property
    def total(self) -> int | float:
        """The seconds of the pass."""
        return self.matmul + self.attention + self.memory + self.tensor + self.expert + self.context

    def plus(self, other: "Pass", times: int | float = 1.0) -> "Pass":
        """Return this and so many of another pass."""
        return Pass(*(getattr(self, f.name) + times * getattr(other, f.name) for f in fields(self)))


def bubble(stages: int, micro_batches: int, chunks: int = 1) -> int | float:
    """Return the idle share of a step's work, ``(p - 1) / (v m)`` (Narayanan et al. 2021, section 2.2).

    Of the whole step's time it is ``(p - 1) / (v m + p - 1)``.
    """
    return (stages - 1) / (chunks * micro_batches)


def step_time(work: DecoderWork, training: TrainingStep, layout: ParallelLayout, machine: Machine) -> StepTime:
    """Return the seconds of a step on the slowest stage; the layout divides what it must (`check_layout`).

    Equal stages, micro batches one after the other, sends between stages hidden while there is other work and visible
    while the pipeline fills and drains. Nothing else waits: no data, no stragglers, no failures.
    """
    sent, ways = layer_bytes(work, training, layout), routes(machine, layout)
    forward, backward = layer_passes(work, training, layout, machine)
    both, micro_batches = forward.plus(backward), layout.micro_batches(training)
    layers, head = _slowest(work, training, layout, machine, both.total)
    times = micro_batches * layers
    worked = times * both.total + micro_batches * head
    filling = 2 * (layout.pipeline - 1) * ways.pipeline.seconds(sent.boundary)
    held = shard(stage_weights(work, layout, last_stage(work, layout)), layout, 1)
    once = step_bytes(work, training, layout)
    late = max(0.0, ways.fsdp.seconds(once.gradients, layers) - layers * backward.total)
    late += max(0.0, ways.fsdp.seconds(once.weights, layers) - layers * forward.total)
    return StepTime(
        matmul=times * both.matmul,
        attention=times * both.attention,
        memory=times * both.memory,
        tensor=times * both.tensor,
        expert=times * both.expert,
        context=times * both.context,
        fsdp=times * _unhidden(sent, ways, forward, backward) + late,
        data=max(0.0, ways.data.seconds(once.copies, layers) - layers * backward.total),
        head=micro_batches * head,
        bubble=bubble(layout.pipeline, micro_batches, layout.interleave) * worked + filling,
        optimizer=ADAM_BYTES * held / machine.bandwidth,
    )


def layer_passes(
    work: DecoderWork, training: TrainingStep, layout: ParallelLayout, machine: Machine
) -> tuple[Pass, Pass]:
    """Return the forward and the backward pass of one layer and one micro batch; what is recomputed is backward.

    Products cost ``2 N`` operations a token and twice that backward, attention ``4 H C keys`` and the kernel's
    multiple; a product takes at least the time in which its weights are read. What the layer would keep for its
    backward pass is written and read; backward it is read, and a gradient of it written.
    """
    rate = machine.rate(training.number_format)
    tokens = layout.micro * training.length / layout.context
    sent, ways = layer_bytes(work, training, layout), routes(machine, layout)
    kept, kernel = layer_activations(work, training, layout), training.kernel
    scored = 4 * work.heads * work.head_width * tokens * work.keys(training.length, kernel.keys) / layout.tensor
    weights = training.bytes.weight * stage_weights(work, layout, last_stage(work, layout)).layer
    matmul = 2 * work.block_active * tokens / layout.tensor / (rate * machine.efficiency.matmul)
    matmul = max(matmul, weights / machine.bandwidth)
    attention = scored / (rate * machine.efficiency.attention)
    tensor = ways.tensor.seconds(sent.tensor, 2 * work.branches)
    expert = ways.expert.seconds(sent.expert, 2)
    keys = ways.context.seconds(sent.context, layout.context - 1)
    memory, scores = 2 * kept.whole / machine.bandwidth, 2 * kept.scores / machine.bandwidth
    forward = Pass(matmul, attention, memory, tensor, expert, max(0.0, keys - attention))
    behind = kernel.backward * attention
    backward = Pass(2 * matmul, behind, memory, tensor, expert, max(0.0, keys - behind))
    again = layout.recompute
    alone = again.attention - again.layer
    core = Pass(0, attention, scores, 0, 0, forward.context)
    return forward, backward.plus(forward, again.layer).plus(core, alone)


def _slowest(
    work: DecoderWork, training: TrainingStep, layout: ParallelLayout, machine: Machine, layer: int | float
) -> tuple[int, float]:
    """Return the layers of the slowest stage, and its seconds of the head: the last stage's, or a full one's."""
    tokens = layout.micro * training.length / layout.context / layout.tensor
    rate = machine.rate(training.number_format) * machine.efficiency.matmul
    head = tokens * (6 * work.table / rate + LOGIT_BYTES * work.vocabulary / machine.bandwidth)
    ends = stage_layers(work, layout)
    full = layout.slots(work) if layout.pipeline > 2 else ends
    return max(((full, 0.0), (ends, head)), key=lambda stage: stage[0] * layer + stage[1])


def _unhidden(sent: LayerBytes, ways: Routes, forward: Pass, backward: Pass) -> int | float:
    """Return the seconds of a layer's weights and gradients that neither of its passes hides."""
    gathered, added = ways.fsdp.seconds(sent.weights), ways.fsdp.seconds(sent.gradients)
    return max(0.0, gathered - forward.total) + max(0.0, gathered + added - backward.total)
