"""What the devices of a layout send each other in a step: bytes by kind of parallelism, and the network they take."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import ceil, log2

from orrery.planning.layouts.layout import ParallelLayout
from orrery.planning.layouts.memory import last_stage, stage_weights
from orrery.planning.layouts.training import TrainingStep
from orrery.planning.layouts.work import DecoderWork
from orrery.planning.machines import Machine

RING = "Patarasuk and Yuan 2009"


def all_gather(ranks: int, size: int | float) -> int | float:
    """Return the bytes that each rank sends to bring ``size`` bytes together: ``(n - 1) / n size``."""
    return (ranks - 1) / ranks * size


def reduce_scatter(ranks: int, size: int | float) -> int | float:
    """Return the bytes that each rank sends to add up ``size`` bytes and keep a share: ``(n - 1) / n size``."""
    return (ranks - 1) / ranks * size


def all_reduce(ranks: int, size: int | float) -> int | float:
    """Return the bytes that each rank sends to add up ``size`` bytes: ``2 (n - 1) / n size``, both of the above."""
    return reduce_scatter(ranks, size) + all_gather(ranks, size)


def all_to_all(ranks: int, size: int | float) -> int | float:
    """Return the bytes that each rank sends of ``size``, of which every rank gets a share: ``(n - 1) / n size``."""
    return (ranks - 1) / ranks * size


@dataclass(frozen=True)
class Route:
    """The way of a group's messages.

    Attributes:
        ranks: of the group.
        inside: whether all of them are in one node.
        bandwidth: bytes a second that each rank sends.
        latency: seconds of one message to all, by trees: ``log2 n`` hops (Sanders et al. 2009).
    """

    ranks: int
    inside: bool
    bandwidth: int | float
    latency: int | float

    def seconds(self, size: int | float, messages: int | float = 1) -> int | float:
        """Return the seconds in which so many bytes go out, in so many messages."""
        return size / self.bandwidth + messages * self.latency if size else 0.0


def route(machine: Machine, ranks: int, inner: int) -> Route:
    """Return the way of a group of ranks that stand ``inner`` devices apart.

    A group of several nodes sends through the network cards of all its members of a node at once.
    """
    span = ranks * inner
    members = max(1, min(ranks, machine.node // inner))
    inside = span <= machine.node
    network = min(machine.node_bandwidth, members * machine.network_bandwidth)
    bandwidth = machine.node_bandwidth if inside else network
    hops = ceil(log2(ranks)) if ranks > 1 else 0
    return Route(ranks, inside, bandwidth * machine.efficiency.network, hops * machine.latency)


@dataclass(frozen=True)
class Routes:
    """The ways of a layout's groups."""

    tensor: Route
    context: Route
    expert: Route
    fsdp: Route
    data: Route
    pipeline: Route


def routes(machine: Machine, layout: ParallelLayout) -> Routes:
    """Return the ways of all groups; ranks count tensor, context, fsdp, data, pipeline, tensor fastest."""
    inner = layout.tensor * layout.context
    # A stage sends to the next one alone: two ranks.
    neighbours = min(2, layout.pipeline)
    return Routes(
        tensor=route(machine, layout.tensor, 1),
        context=route(machine, layout.context, layout.tensor),
        expert=route(machine, layout.expert, inner),
        fsdp=route(machine, layout.fsdp, inner),
        data=route(machine, layout.data * layout.context, layout.tensor * layout.fsdp),
        pipeline=route(machine, neighbours, inner * layout.replicas),
    )


@dataclass(frozen=True)
class LayerBytes:
    """Bytes that a device sends for one layer and one micro batch in the forward pass; as many again backward.

    Attributes:
        tensor: an all-reduce for attention and one for the feed-forward network, or, with sequence parallelism, a
            reduce-scatter and an all-gather in its place: ``branches 2 (t - 1) / t 2 s b h`` (Shoeybi et al. 2019).
        context: keys and values for the other ranks: ``(c - 1) s / c b 2 K C 2 / t``, and as many gradients backward
            (Dubey et al. 2024, section 3.3.2).
        expert: tokens to their experts and back: ``2 (e - 1) / e chosen s b h 2 / t`` (Lepikhin et al. 2020).
        weights: of the layer, that FSDP brings together: ``(n - 1) / n`` of them (Rajbhandari et al. 2020).
        gradients: of the layer, that FSDP adds up and shards.
        boundary: activations that a stage hands on: ``s b h 2 / t`` (Narayanan et al. 2021, section 4.1).
    """

    tensor: int | float
    context: int | float
    expert: int | float
    weights: int | float
    gradients: int | float
    boundary: int | float


def layer_bytes(work: DecoderWork, training: TrainingStep, layout: ParallelLayout) -> LayerBytes:
    """Return what a device sends for one layer and one micro batch; where nothing is sharded, nothing."""
    tokens = layout.micro * training.length / layout.context
    size = training.bytes
    stream = size.activation * tokens * work.width
    keys = size.activation * tokens * work.cached / min(layout.tensor, work.kv_heads)
    moved = layout.expert > 1
    weights = stage_weights(work, layout, last_stage(work, layout))
    kinds = (weights.layer - weights.layer_experts, weights.layer_experts)
    return LayerBytes(
        tensor=work.branches * all_reduce(layout.tensor, stream),
        context=(layout.context - 1) * keys,
        expert=moved * 2 * all_to_all(layout.expert, work.chosen * stream / layout.tensor),
        weights=size.weight * by_shards(all_gather, layout, 3, *kinds),
        gradients=size.gradient * by_shards(reduce_scatter, layout, 2, *kinds),
        boundary=stream / layout.between if layout.pipeline > 1 else 0.0,
    )


def by_shards(
    send: Callable[[int, int | float], int | float],
    layout: ParallelLayout,
    stage: int,
    dense: int | float,
    experts: int | float,
) -> int | float:
    """Return how many parameters a device sends to those that share them by a ZeRO stage, as fewer share experts."""
    return send(layout.sharded(stage), dense) + send(layout.sharded_experts(stage), experts)


@dataclass(frozen=True)
class EndBytes:
    """Bytes that a device sends for the table of tokens and the head of a stage, and one micro batch, both passes.

    Attributes:
        tensor: an all-reduce of what is looked up, one of the gradient before the head, and the logits, brought
            together: ``(t - 1) / t s b V 2``; with sequence parallelism the stream behind the blocks too, and the
            gradient before them.
        fsdp: weights of both tables, brought together twice, and their gradients once.
    """

    tensor: int | float
    fsdp: int | float


def end_bytes(work: DecoderWork, training: TrainingStep, layout: ParallelLayout) -> EndBytes:
    """Return what a device of the last stage sends for the head, and the only one for the table too."""
    tokens, size = layout.micro * training.length / layout.context, training.bytes
    ends = 1 if layout.pipeline > 1 else 2
    table = last_stage(work, layout).tables * work.table / layout.tensor
    stream, logits = (size.activation * tokens * count for count in (work.width, work.vocabulary))
    between = all_reduce(layout.tensor, stream) + layout.sequence * all_gather(layout.tensor, stream)
    weights = all_gather(layout.sharded(3), size.weight * table)
    return EndBytes(
        tensor=ends * between + all_gather(layout.tensor, logits),
        fsdp=2 * weights + reduce_scatter(layout.sharded(2), size.gradient * table),
    )


@dataclass(frozen=True)
class StepBytes:
    """Bytes that a device sends once a step.

    Attributes:
        weights: brought together after the optimizer has changed its shards, by ZeRO 1 and 2.
        gradients: added up and sharded, by ZeRO 1.
        copies: an all-reduce of what a device holds of the gradients, over the copies of ``data`` and of ``context``,
            of which experts that are shared have fewer.
    """

    weights: int | float
    gradients: int | float
    copies: int | float


def step_bytes(work: DecoderWork, training: TrainingStep, layout: ParallelLayout) -> StepBytes:
    """Return what a device of the last stage sends once a step for the state that replicas share."""
    weights = stage_weights(work, layout, last_stage(work, layout))
    size, kinds, pieces = training.bytes, (weights.dense, weights.experts), layout.sharded_experts(1)
    return StepBytes(
        weights=(layout.zero < 3) * size.weight * by_shards(all_gather, layout, 1, *kinds),
        gradients=(layout.zero < 2) * size.gradient * by_shards(reduce_scatter, layout, 1, *kinds),
        copies=all_reduce(layout.data * layout.context, size.gradient * weights.dense / layout.fsdp)
        + all_reduce(
            layout.replicas * layout.context // (layout.expert * pieces), size.gradient * weights.experts / pieces
        ),
    )


@dataclass(frozen=True)
class Traffic:
    """What one kind of parallelism sends in a step.

    Attributes:
        kind: of parallelism.
        ranks: of a group.
        bytes: that each device sends.
        inside: whether the group is in one node.
        formula: of the bytes of a layer, a micro batch or a step.
        paper: that has it.
    """

    kind: str
    ranks: int
    bytes: int | float
    inside: bool
    formula: str
    paper: str


def traffic(work: DecoderWork, training: TrainingStep, layout: ParallelLayout, machine: Machine) -> list[Traffic]:
    """Return what each kind of parallelism sends in a step, those that are used."""
    return [one for one in _all_traffic(work, training, layout, machine) if one.ranks > 1]


def _all_traffic(
    work: DecoderWork, training: TrainingStep, layout: ParallelLayout, machine: Machine
) -> Iterator[Traffic]:
    layer, step, way = layer_bytes(work, training, layout), step_bytes(work, training, layout), routes(machine, layout)
    ends = end_bytes(work, training, layout)
    micro_batches = layout.micro_batches(training)
    passes = micro_batches * layout.slots(work)
    # Forward, backward, and forward again where layers are recomputed.
    through = 2 + layout.recompute.layer

    def of(kind: str, ranks: Route, size: int | float, formula: str, paper: str) -> Traffic:
        return Traffic(kind, ranks.ranks, size, ranks.inside, formula, paper)

    tensor = through * passes * layer.tensor + micro_batches * ends.tensor
    yield of("tensor", way.tensor, tensor, "2(t-1)/t 2sbh a branch and pass", "Shoeybi et al. 2019")
    context = through * passes * layer.context
    yield of("context", way.context, context, "(c-1)/c 2sbKC2/t a layer and pass", "Dubey et al. 2024")
    yield of("expert", way.expert, through * passes * layer.expert, "2(e-1)/e k 2sbh/t a pass", "Lepikhin et al. 2020")
    fsdp = passes * (2 * layer.weights + layer.gradients) + micro_batches * ends.fsdp + step.weights + step.gradients
    yield of("fsdp", way.fsdp, fsdp, _ZERO[layout.zero], "Rajbhandari et al. 2020")
    yield of("data", way.data, step.copies, "2(n-1)/n of the gradients a step", RING)
    # The first and the last chunk have one neighbour; between two stages no device has none of both.
    chunks = 2 * layout.interleave - (layout.pipeline == 2)
    boundary = micro_batches * chunks * layer.boundary
    yield of("pipeline", way.pipeline, boundary, "2sbh/t a chunk and pass", "Narayanan et al. 2021")


_ZERO = {
    1: "(n-1)/n of gradients and weights a step",
    2: "(n-1)/n of the gradients a micro batch, of the weights a step",
    3: "(n-1)/n of the weights twice and the gradients once a micro batch",
}
