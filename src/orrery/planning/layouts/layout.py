"""A layout: how many devices share each part of the work, and whether these numbers divide what they share."""

from collections.abc import Iterator
from dataclasses import dataclass, fields

from orrery.errors import UsageError
from orrery.planning.layouts.training import TrainingStep
from orrery.planning.layouts.work import DecoderWork
from orrery.recipes.parallel import divisors, near, refuse_uneven


@dataclass(frozen=True)
class Recomputation:
    """What is computed a second time instead of being kept (Korthikanti et al. 2022).

    Attributes:
        name: by which a layout asks for it.
        kept: the share of a layer's activations that is kept, apart from scores.
        scores: the share of the scores that is kept.
        layer: how often the products of a layer are computed again.
        attention: how often those of queries, keys and values are.
    """

    name: str
    kept: int | float
    scores: int | float
    layer: int | float
    attention: int | float


NOTHING = Recomputation("none", 1, 1, 0, 0)
SELECTIVE = Recomputation("selective", 1, 0, 0, 1)
FULL = Recomputation("full", 0, 0, 1, 1)
RECOMPUTATIONS = {one.name: one for one in (NOTHING, SELECTIVE, FULL)}


@dataclass(frozen=True)
class ParallelLayout:
    """Degrees of parallelism; ranks count in the order tensor, context, fsdp, data, pipeline, tensor fastest.

    Attributes:
        data: copies of everything that ``fsdp`` shards, each with its part of the batch.
        fsdp: devices that share out a batch and shards of the state (Rajbhandari et al. 2020; Zhao et al. 2023).
        tensor: devices that share each layer's matrices (Shoeybi et al. 2019).
        pipeline: stages of layers (Narayanan et al. 2021).
        context: devices that share each sequence (Dubey et al. 2024, section 3.3.2).
        expert: devices, out of those of data and fsdp, that share the experts (Lepikhin et al. 2020).
        zero: what fsdp shards: 1 the optimizer, 2 the gradients too, 3 the weights too.
        micro: sequences that go through a stage at once.
        interleave: chunks of layers of one stage (Narayanan et al. 2021, section 2.2).
        sequence: whether tensor ranks also share what lies between the matrices (Korthikanti et al. 2022).
        recompute: what is computed again instead of kept.
    """

    data: int = 1
    fsdp: int = 1
    tensor: int = 1
    pipeline: int = 1
    context: int = 1
    expert: int = 1
    zero: int = 3
    micro: int = 1
    interleave: int = 1
    sequence: bool = True
    recompute: Recomputation = NOTHING

    @property
    def devices(self) -> int:
        """How many devices there are."""
        return self.data * self.fsdp * self.tensor * self.pipeline * self.context

    @property
    def replicas(self) -> int:
        """The parts of the batch."""
        return self.data * self.fsdp

    @property
    def between(self) -> int:
        """How many devices share what lies between the matrices of tensor ranks."""
        return self.tensor if self.sequence else 1

    def sharded(self, stage: int) -> int:
        """Return into how many shards the state of a ZeRO stage is cut."""
        return self.fsdp if self.zero >= stage else 1

    def sharded_experts(self, stage: int) -> int:
        """Return into how many shards the state of the experts of a device is cut, which fewer devices have."""
        return max(1, self.sharded(stage) // self.expert)

    def micro_batches(self, training: TrainingStep) -> int:
        """Return how many micro batches each part of the batch has."""
        return training.sequences // (self.replicas * self.micro)

    def slots(self, work: DecoderWork) -> int:
        """Return the layers of the fullest stage.

        Where the stages do not divide the layers, the table of tokens and the head take the place of one layer each,
        so that the first and the last stage have one less (Dubey et al. 2024, section 3.3.2).
        """
        return (work.layers + self.spare(work)) // self.pipeline

    def spare(self, work: DecoderWork) -> int:
        """Return how many layers' places the table and the head take: 0, or 2."""
        return 2 if work.layers % (self.pipeline * self.interleave) else 0

    def text(self) -> str:
        """Return the layout as `parse_layout` reads it, without what is as usual."""
        usual = ParallelLayout()
        shown = {f.name: getattr(self, f.name) for f in fields(self) if getattr(self, f.name) != getattr(usual, f.name)}
        if self.fsdp > 1:
            shown["zero"] = self.zero
        else:
            shown.pop("zero", None)
        if "recompute" in shown:
            shown["recompute"] = self.recompute.name
        if "sequence" in shown:
            shown["sequence"] = "no"
        return ",".join(f"{name}={value}" for name, value in shown.items()) or "data=1"


def parse_layout(text: str) -> ParallelLayout:
    """Read ``data=8,tensor=4,recompute=full``; what is not named is as usual.

    Raises:
        UsageError: a part is no degree, or has no value that it can have.
    """
    known = [f.name for f in fields(ParallelLayout)]
    values: dict[str, int | bool | Recomputation] = {}
    for part in text.split(","):
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if name not in known or not equals:
            hint = f"write it like data=8,tensor=4; known: {', '.join(known)}"
            raise UsageError(f"the layout has a part {part[:60]!r}", hint)
        if name in values:
            raise UsageError(f"the layout has {name} twice", "leave one of them out")
        values[name] = _value(name, value)
    return ParallelLayout(**values)  # type: ignore[arg-type]  # each name has its kind of value from _value


def _value(name: str, value: str) -> int | bool | Recomputation:
    words: dict[str, dict[str, bool | Recomputation]] = {
        "recompute": dict(RECOMPUTATIONS),
        "sequence": {"yes": True, "no": False},
    }
    if name in words:
        if value not in words[name]:
            raise UsageError(f"{name}={value[:40]} in the layout", f"one of {', '.join(words[name])}")
        return words[name][value]
    most = 3 if name == "zero" else 10**9
    # No more digits than the largest has: zeros before a number would hide how long it is.
    if not value.isascii() or not value.isdigit() or len(value) > len(str(most)) or not 1 <= int(value) <= most:
        hint = "1 to 3: the optimizer, gradients too, weights too" if name == "zero" else "a whole number from 1"
        raise UsageError(f"{name}={value[:40]} in the layout is no degree", hint)
    return int(value)


def check_layout(work: DecoderWork, training: TrainingStep, layout: ParallelLayout) -> None:
    """Refuse a layout whose degrees do not divide what they share.

    Raises:
        UsageError: which degree does not divide what, and which degrees would.
    """
    for degree, what, count in _shared(work, training, layout):
        size = getattr(layout, degree)
        if count % size:
            raise UsageError(f"{degree}={size} does not divide {what}", f"would fit: {near(divisors(count), size)}")
    refuse_uneven(training.sequences, layout.data, layout.fsdp, layout.micro)
    _check_stages(work, training, layout)
    _check_experts(layout)


def _shared(work: DecoderWork, training: TrainingStep, layout: ParallelLayout) -> Iterator[tuple[str, str, int]]:
    """Yield each degree that must divide a number, with what the number is."""
    yield "tensor", f"the {work.heads} heads of {work.name}", work.heads
    yield "tensor", f"the {work.hidden:,} hidden channels of {work.name}", work.hidden
    if layout.tensor < work.kv_heads:
        yield "tensor", f"the {work.kv_heads} heads of keys and values of {work.name}", work.kv_heads
    yield "context", f"the {training.length:,} tokens of a sequence", training.length
    yield "expert", f"the {work.experts} experts of a layer of {work.name}", work.experts


def stages(work: DecoderWork) -> list[int]:
    """Return the numbers of stages that the layers divide into, with or without the table and the head as layers.

    No stage is without a layer.
    """
    return [n for n in _pieces(work) if n == 1 or 2 * n <= work.layers + 2 or work.layers % n == 0]


def _pieces(work: DecoderWork) -> list[int]:
    """Return into how many equal pieces the layers can be cut."""
    return sorted({*divisors(work.layers), *divisors(work.layers + 2)})


def _check_stages(work: DecoderWork, training: TrainingStep, layout: ParallelLayout) -> None:
    if layout.pipeline not in stages(work):
        message = f"pipeline={layout.pipeline} does not divide the {work.layers} layers of {work.name}"
        hint = f"would fit: {near(stages(work), layout.pipeline)}; the table and the head may be counted as layers"
        raise UsageError(message, hint)
    if layout.interleave == 1:
        return
    fitting = interleaves(work, layout.pipeline)
    if layout.interleave not in fitting:
        message = f"interleave={layout.interleave} does not cut a stage of {layout.slots(work)} layers into chunks"
        raise UsageError(message, f"would fit with pipeline={layout.pipeline}: {near(fitting, layout.interleave)}")
    if layout.micro_batches(training) % layout.pipeline:
        hint = "they are a multiple of the stages there: give a larger batch, or fewer data, fsdp or micro"
        count = layout.micro_batches(training)
        message = f"interleave={layout.interleave}: {count} micro batches do not fill {layout.pipeline} stages evenly"
        raise UsageError(message, hint)


def interleaves(work: DecoderWork, pipeline: int) -> list[int]:
    """Return into how many chunks a stage can be cut; a single stage into one."""
    if pipeline == 1:
        return [1]
    most = (work.layers + 2) // pipeline
    pieces = _pieces(work)
    return [n for n in range(1, most + 1) if pipeline * n in pieces]


def _check_experts(layout: ParallelLayout) -> None:
    inside = layout.fsdp % layout.expert == 0 or layout.expert % layout.fsdp == 0
    if layout.replicas % layout.expert or not inside:
        message = f"expert={layout.expert} does not divide data={layout.data} x fsdp={layout.fsdp}, which share experts"
        raise UsageError(message, f"would fit: {near(divisors(layout.fsdp), layout.expert)}")
