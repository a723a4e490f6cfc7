"""Stages of a model: each process has neighbouring blocks, and passes on the stream of some rows at a time."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import pairwise
from typing import Any, final

import torch
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleInterleaved1F1B

from orrery.data.batches.seeds import derive_seed
from orrery.errors import UsageError
from orrery.models.decoder import Decoder
from orrery.models.inputs import Batch
from orrery.models.places import placed
from orrery.nn.cache.contract import UNCACHED
from orrery.nn.context import DEFAULT_EXECUTION, Execution
from orrery.objectives import Objective
from orrery.recipes.parallel import ParallelSettings, divisors, near
from orrery.training.distributed import Ranks
from orrery.training.parallel.decoders import decoder_of
from orrery.training.parallel.meshes import keep, neighbours, owners, processes
from orrery.training.parallel.tensor_parallel import own_tensors
from orrery.training.pieces import pieces
from orrery.training.precision import Precision
from orrery.training.step import Pieces, StepLoss, rows_of, take, to_device

INSTEAD = "leave parallel.pipeline out: parallel.fsdp shares the weights of every model"


def depths_of(layers: int, degrees: ParallelSettings) -> list[range]:
    """Return the depths of each piece of the layers, ``pipeline * interleave`` of them.

    All have as many; where they do not divide the layers, the table of tokens and the head count as one layer each, so
    that the first and the last piece have one less (Dubey et al. 2024, section 3.3.2), as `orrery plan` counts them.

    Raises:
        UsageError: the layers cannot be cut so.
    """
    count = degrees.pipeline * degrees.interleave
    spare = 0 if layers % count == 0 else 2
    size = (layers + spare) // count
    if (layers + spare) % count or size * count - spare < count:
        message = f"parallel.pipeline {degrees.pipeline} x interleave {degrees.interleave} does not cut {layers} layers"
        fitting = sorted({*divisors(layers), *(n for n in divisors(layers + 2) if 2 * n <= layers + 2)})
        raise UsageError(
            message, f"would fit together: {near(fitting, count)}; the table and the head may count as one"
        )
    ends = [0, *(size * number - spare // 2 for number in range(1, count)), layers]
    return [range(first, end) for first, end in pairwise(ends)]


def refuse_uncut(model: nn.Module, processes: int) -> Decoder:
    """Return a model, and refuse one whose blocks do not follow one another.

    Raises:
        UsageError: it is such a one.
    """
    said = f"parallel.pipeline {processes}"
    described = decoder_of(model)
    if described is None:
        raise UsageError(f"{said}: the stages of a {type(model).__name__} are not cut yet, a decoder's are", INSTEAD)
    if [*described.stack.order] != [*range(len(described.stack.blocks))]:
        raise UsageError(f"{said}: a block of the model stands at several depths", INSTEAD)
    return described


@final
class Stages:
    """The pieces of a decoder that this process has, and the schedule in which rows go through all of them.

    One forward, one backward: Narayanan et al. 2021, https://arxiv.org/abs/2104.04473, by
    ``torch.distributed.pipelining``; with ``interleave`` each process has several pieces. The first has the table of
    tokens, the last the head; what positions have of parameters is everywhere.
    Differs from the paper: where there are fewer pieces of a batch than stages, rows that add nothing fill up.

    Args:
        model: changed in place; its parameters keep their names.
        degrees: with as many copies as there are.
        device: of the processes.

    Raises:
        UsageError: the model cannot be cut so.
    """

    def __init__(self, model: nn.Module, degrees: ParallelSettings, device: str) -> None:
        self.model, self.degrees = refuse_uncut(model, degrees.pipeline), degrees
        self.mesh: DeviceMesh = neighbours(device, degrees, "pipeline")
        self.number: int = self.mesh.get_local_rank()
        depths = depths_of(len(self.model.stack.blocks), degrees)
        self._share(depths, device)
        last = len(depths) - 1
        self.parts = [
            Part(self.model, number, depths[number], number == last)
            for number in range(self.number, len(depths), degrees.pipeline)
        ]
        self.shape: tuple[int, ...] = ()
        self.schedule: Any = None

    def _share(self, depths: list[range], device: str) -> None:
        """Keep the parameters of each stage in its processes, and have its modules compute with them."""
        model, stage_of = self.model, processes(self.degrees)
        stages = [owners(device, stage_of[number]) for number in range(self.degrees.pipeline)]
        ends = owners(device, stage_of[[0, -1]])
        first, last = {*model.embed.parameters()}, {*model.head.parameters(), *model.stack.final.parameters()}
        holders = dict.fromkeys(first, stages[0]) | dict.fromkeys(last, stages[-1]) | dict.fromkeys(first & last, ends)
        for number, piece in enumerate(depths):
            for depth in piece:
                block = model.stack.blocks[depth]
                holders |= dict.fromkeys(block.parameters(), stages[number % self.degrees.pipeline])
                for residual in block.children():
                    compute_here(residual, self.mesh)
        keep(model, holders)
        for module in (model.embed, model.head, model.stack.final):
            compute_here(module, self.mesh)

    def accumulate(
        self,
        model: nn.Module,
        objective: Objective,
        batch: Batch,
        *,
        micro_batch: int | None,
        seed: tuple[int, int],
        ranks: Ranks,
        precision: Precision,
        learner: nn.Module | None = None,
    ) -> StepLoss:
        """Do what `orrery.training.step.accumulate` does, in stages."""
        rows = ranks.rows(rows_of(batch))
        size = micro_batch or max(1, len(rows) // self.degrees.pipeline)
        own = list(pieces(rows, size))
        told = Pieces(objective, objective.counts(batch), split=True)
        work = Work(told, [*own, *[range(1)] * (self._pieces(len(own)) - len(own))], len(own), size, batch, seed)
        for part in self.parts:
            part.work, part.precision = work, precision
        self._schedule(len(work.rows), size, batch["ids"].shape[1], precision)
        numbers = torch.arange(len(work.rows), device=precision.device)
        begun = (numbers,) if self.number == 0 else ()
        self.schedule.step(*begun, target=numbers, return_outputs=False, piece=numbers)
        ranks.sum_gradients(parameter for parameter in (learner or model).parameters() if parameter.requires_grad)
        return told.step_loss(batch, ranks)

    def _pieces(self, count: int) -> int:
        """Return into how many pieces a schedule takes rows: no fewer than stages, and a multiple where interleaved."""
        stages = self.degrees.pipeline
        return max(count, stages) if self.degrees.interleave == 1 else -(-max(count, 1) // stages) * stages

    def _schedule(self, count: int, size: int, length: int, precision: Precision) -> None:
        """Make a schedule, and the room for what is received, where rows differ from those of the step before."""
        shape = (count, size, length)
        if shape == self.shape:
            return
        self.shape = shape
        device = torch.device(precision.device)
        made: dict[str, Any] = {"dtype": self.model.dtype, "device": "meta", "requires_grad": True}
        stream, loss = torch.empty(size, length, self.model.spec.width, **made), torch.empty(1, **made)
        total = self.degrees.pipeline * self.degrees.interleave
        stages = [
            PipelineStage(
                part,
                part.number,
                total,
                device,
                input_args=torch.empty(1, dtype=torch.long, device="meta") if part.number == 0 else stream,
                output_args=loss if part.last else stream,
                group=self.mesh.get_group(),
            )
            for part in self.parts
        ]
        how: Any = {"n_microbatches": count, "loss_fn": lambda output, target: output.sum(), "scale_grads": False}
        one = self.degrees.interleave == 1
        self.schedule = Schedule1F1B(stages[0], **how) if one else ScheduleInterleaved1F1B([*stages], **how)


def compute_here(module: nn.Module, mesh: DeviceMesh) -> None:
    """Have a module compute with the plain tensors that this process has of its parameters."""
    described: Any = module
    described.forward = partial(with_own, module, module.forward, mesh)


def with_own(module: nn.Module, compute: Callable[..., Any], mesh: DeviceMesh, *given: Any, **named: Any) -> Any:
    """Call a module while plain tensors stand for its parameters."""
    with own_tensors(module.modules(), mesh):
        return compute(*given, **named)


@final
class Work:
    """What goes through the stages in one step: the pieces of rows, of which the last ones may add nothing."""

    def __init__(
        self, told: Pieces, rows: list[range], adding: int, size: int, batch: Batch, seed: tuple[int, int]
    ) -> None:
        self.told, self.rows, self.adding, self.size = told, rows, adding, size
        self.batch, self.seed = batch, seed

    def whole_piece(self, number: int, device: str) -> Batch:
        """Return the rows of a piece, its first one again where there are fewer than in the others."""
        rows = self.rows[number]
        places = [*rows, *[rows.start] * (self.size - len(rows))]
        return to_device({name: field[places] for name, field in self.batch.items()}, device)

    def piece(self, number: int, device: str) -> Batch:
        """Return the rows of a piece."""
        return to_device(take(self.batch, self.rows[number]), device)


@final
class Part(nn.Module):
    """Neighbouring blocks: from the stream before them, or the tokens, to the stream behind them, or the loss."""

    def __init__(self, model: Decoder, number: int, depths: range, last: bool) -> None:
        super().__init__()
        self.model, self.number, self.depths, self.last = model, number, depths, last
        self.work: Work | None = None
        self.precision: Precision | None = None

    def forward(self, before: Tensor, piece: Tensor) -> Tensor:
        """Return the stream of a piece of rows, or what it adds to the loss."""
        work, precision, number = self.work, self.precision, int(piece)
        assert work is not None
        assert precision is not None
        torch.manual_seed(derive_seed(*work.seed, "dropout", work.rows[number].start, self.number))
        with precision.context():
            if not self.last:
                return self.stream(before, work.whole_piece(number, precision.device), DEFAULT_EXECUTION)
            with answering(self.model, partial(self._real, before, work, number, precision.device)):
                terms = work.told.objective.loss(self.model, work.piece(number, precision.device))
        adds = number < work.adding
        loss = work.told.loss(terms, work.rows[number]) if adds else work.told.share_of(terms) * 0
        return loss[None].to(self.model.dtype)

    def _real(self, before: Tensor, work: Work, number: int, device: str, batch: Batch, execution: Execution) -> Tensor:
        """Return the final stream of the rows of a piece, without those that fill it up."""
        return self.stream(before, work.whole_piece(number, device), execution)[: len(work.rows[number])]

    def stream(self, before: Tensor, batch: Batch, execution: Execution) -> Tensor:
        """Return the stream behind own blocks; of the embeddings only the first piece makes something."""
        model, ids = self.model, batch["ids"]
        how: dict[str, Any] = {name: batch[name] for name in model.how if name in batch}
        at = placed(model.stack, ids, cache=UNCACHED, **how)
        first = self.number == 0
        described: Any = model.spec
        entry = described.stack.entry_width(described.width)
        x_BLD, ctx = model.stack.prepare(
            model.embed(ids) if first else before.new_zeros(*ids.shape, entry),
            at.places,
            at.real,
            whole=at.whole,
            counts=at.counts,
            cache=UNCACHED,
            execution=execution.by_default(model.kernel, model.scan),
        )
        x_BLD = x_BLD if first else before
        for depth in self.depths:
            x_BLD = model.stack.blocks[depth](x_BLD, ctx.at(model.stack.layer(depth, ctx.cache)))
        return model.stack.final(x_BLD) if self.last else x_BLD.to(model.dtype)


@contextmanager
def answering(model: Decoder, stream: Callable[[Batch, Execution], Tensor]) -> Iterator[None]:
    """Have the heads of a model answer to a stream that comes from elsewhere."""
    described: Any = model
    described.stream = stream
    try:
        yield
    finally:
        del described.stream
