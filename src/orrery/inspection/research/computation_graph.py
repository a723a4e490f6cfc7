"""The computation graph of a decoder: what each head and layer reads from whom, and a run with some edges cut."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple, final

import torch
from jaxtyping import Float, Int
from torch import Tensor

from orrery.errors import UsageError
from orrery.inspection.checks import sums_up
from orrery.inspection.recorder import Recorder
from orrery.inspection.research.variants import check_reader
from orrery.nn.attention.kernels import eager
from orrery.nn.attention.multihead import MultiHeadAttention, NoGate
from orrery.nn.cache.contract import UNCACHED
from orrery.nn.context import Execution
from orrery.nn.residual import Identity, Residual
from orrery.tuning import matrix_of

EMBEDDED, LOGITS = "embedded", "logits"
_PARTS = ("q", "k", "v")


class Edge(NamedTuple):
    """Who reads what: a receiver, and one of the terms of the sum that it reads.

    Senders are ``embedded``, ``blocks.0.attention.2`` (head 2) and ``blocks.0.feed_forward``; receivers
    ``blocks.1.attention.3.k`` (the keys of head 3), ``blocks.1.feed_forward`` and ``logits``.
    """

    sender: str
    receiver: str


class _Sublayer(NamedTuple):
    """One residual of one block: its place, and what reads and writes there."""

    depth: int
    place: str
    residual: Residual
    heads: int | None

    @property
    def senders(self) -> list[str]:
        return [self.place] if self.heads is None else [f"{self.place}.{head}" for head in range(self.heads)]

    @property
    def receivers(self) -> list[str]:
        return (
            [self.place] if self.heads is None else [f"{sender}.{part}" for sender in self.senders for part in _PARTS]
        )


@final
class ComputationGraph:
    """A decoder as nodes that read sums: every edge carries what its sender wrote, in this run or in another.

    The stream is a sum, so that what a node reads is ``sum_s o_s`` over all senders before it; a cut edge carries
    ``o_s`` of the corrupted text instead (resample ablation; path patching, Goldowsky-Dill et al. 2023). The output
    bias of attention belongs to no sender and is always there.

    Args:
        model: a decoder of plain residuals whose attention is multi-head, in eval mode.
        clean_BL: texts.
        corrupted_BL: texts of the same length, whose values stand for "without".

    Raises:
        UsageError: the stream of this model is no sum of heads and layers.
    """

    @torch.no_grad()
    def __init__(self, model: Any, clean_BL: Int[Tensor, "B L"], corrupted_BL: Int[Tensor, "B S"]) -> None:
        check_reader(model, clean_BL, corrupted_BL)
        if not model.spec.writes:
            raise UsageError("the edges of an encoder are not known here", "take a decoder, such as gpt2 or llama")
        self.model, self.clean_BL = model, clean_BL
        self.sublayers = list(_sublayers(model))
        self.edges = tuple(_edges(self.sublayers))
        self._corrupted: Mapping[str, Tensor] = {}
        self._corrupted = self._outputs(corrupted_BL, frozenset(self.edges))[0]

    @torch.no_grad()
    def run(self, kept: Collection[Edge]) -> Float[Tensor, "B L V"]:
        """Return the logits of the clean texts where only the ``kept`` edges carry what these texts make."""
        kept = frozenset(kept)
        _, x_BLD = self._outputs(self.clean_BL, kept)
        logits_BLV: Tensor = self.model.head(self.model.stack.final(x_BLD))
        return logits_BLV

    def _outputs(self, ids_BL: Tensor, kept: frozenset[Edge]) -> tuple[dict[str, Tensor], Tensor]:
        """Return what every sender writes, and what the logits read."""
        embedded_BLD, _ = self.model.prepare(ids_BL, execution=Execution(eager))
        sent: dict[str, Tensor] = {EMBEDDED: embedded_BLD}
        constant_BLD = torch.zeros_like(embedded_BLD)

        def read(receiver: str) -> Tensor:
            return constant_BLD + sum(
                out if Edge(sender, receiver) in kept else self._corrupted[sender] for sender, out in sent.items()
            )

        for sublayer in self.sublayers:
            branch = sublayer.residual.branch
            if isinstance(branch, MultiHeadAttention):
                sent |= self._heads(sublayer, branch, ids_BL, {one: read(one) for one in sublayer.receivers})
                if branch.out.bias is not None:
                    constant_BLD = constant_BLD + branch.out.bias
            else:
                sent[sublayer.place] = self._call(sublayer, ids_BL, read(sublayer.place), Recorder(keep=()))
        return sent, read(LOGITS)

    def _heads(
        self, sublayer: _Sublayer, branch: MultiHeadAttention, ids_BL: Tensor, inputs: Mapping[str, Tensor]
    ) -> dict[str, Tensor]:
        """Return what each head writes, where queries, keys and values of each head read something else."""
        unlike: list[Tensor] = []
        rows = [_number(x_BLD, unlike) for x_BLD in inputs.values()]
        ids_NL, x_ND = ids_BL.repeat(len(unlike), 1), torch.cat(unlike)
        recorder = Recorder(keep=[f"{sublayer.place}.{part}" for part in _PARTS])
        self._call(sublayer, ids_NL, x_ND, recorder)
        made = {}
        for part, name in enumerate(_PARTS):
            value_NBHLC = recorder.values[f"{sublayer.place}.{name}"].unflatten(0, (len(unlike), len(ids_BL)))
            of_head = [value_NBHLC[row, :, head] for head, row in enumerate(rows[part :: len(_PARTS)])]
            made[f"{sublayer.place}.{name}"] = torch.stack(of_head, 1)
        edit = {key: (lambda value, key: made[key]) for key in made}
        recorder = Recorder(keep=[f"{sublayer.place}.mixed"], edit=edit)
        self._call(sublayer, ids_BL, unlike[0], recorder)
        mixed_BHLC = recorder.values[f"{sublayer.place}.mixed"]
        out_DHC = matrix_of(branch.out).unflatten(1, (mixed_BHLC.shape[1], -1))
        written_BHLD = torch.einsum("bhlc,dhc->bhld", mixed_BHLC, out_DHC)
        return dict(zip(sublayer.senders, written_BHLD.unbind(1), strict=True))

    def _call(self, sublayer: _Sublayer, ids_NL: Tensor, x_NLD: Tensor, recorder: Recorder) -> Tensor:
        """Return what a branch makes of a stream."""
        _, ctx = self.model.prepare(ids_NL, execution=Execution(eager))
        layer = self.model.stack.layer(sublayer.depth, UNCACHED)
        residual = sublayer.residual
        added_NLD: Tensor = residual.branch(residual.pre(x_NLD), replace(ctx.at(layer), taps=recorder))
        return added_NLD


def _number(x: Tensor, unlike: list[Tensor]) -> int:
    """Return the number of a tensor among those that differ, and add it where it is new."""
    for number, other in enumerate(unlike):
        if torch.equal(x, other):
            return number
    unlike.append(x)
    return len(unlike) - 1


def _sublayers(model: Any) -> Iterator[_Sublayer]:
    if not sums_up(model.stack):
        raise UsageError(
            "the stream of this model is no sum of heads and layers", "take a model of plain pre-norm blocks"
        )
    for depth, number in enumerate(model.stack.order):
        for name, residual in model.stack.blocks[number].named_children():
            place, branch = f"blocks.{depth}.{name}", residual.branch
            attention = isinstance(branch, MultiHeadAttention)
            inside = attention or not any(isinstance(part, MultiHeadAttention) for part in branch.modules())
            if not inside or not isinstance(residual.post, Identity) or getattr(branch, "role", "") != name:
                message = f"{place} of this model is no plain residual of one attention or one layer"
                raise UsageError(message, "take a model of plain pre-norm blocks, such as gpt2 or llama")
            heads = branch.q.out_features // branch.head_width if attention else None
            if attention and branch.k.out_features != branch.q.out_features:
                raise UsageError(f"heads of {place} share keys and values", "take a model whose heads have their own")
            if attention and type(branch.gate) is not NoGate:
                raise UsageError(f"heads of {place} have gates, which read the stream too", "take a model without them")
            yield _Sublayer(depth, place, residual, heads)


def _edges(sublayers: list[_Sublayer]) -> Iterator[Edge]:
    """Return every edge, in the order of computation."""
    senders = [EMBEDDED]
    for sublayer in sublayers:
        for receiver in sublayer.receivers:
            yield from (Edge(sender, receiver) for sender in senders)
        senders += sublayer.senders
    yield from (Edge(sender, LOGITS) for sender in senders)
