"""Rows that several processes share: each computes some tokens, and sees the keys and values of all."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import ClassVar, final

import torch
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import Shard

from orrery.errors import UsageError
from orrery.models.decoder import Decoder
from orrery.models.inputs import Batch
from orrery.nn.attention.operands import KeysValues
from orrery.nn.cache.contract import UNCACHED, Cache, Pair, Place, State
from orrery.nn.context import Execution
from orrery.nn.masks import EMPTY_SLOT, TokenPositions
from orrery.training.parallel.columns import columns_of
from orrery.training.parallel.decoders import decoder_of
from orrery.training.parallel.draws import own_draws
from orrery.training.parallel.messages import COPY, SUM, passed

INSTEAD = "leave parallel.context out: parallel.fsdp shares the weights of every model, and training.micro_batch "
INSTEAD += "lowers the rows at once"


def share_rows(model: nn.Module, mesh: DeviceMesh) -> None:
    """Have the processes of a mesh compute some tokens of each row, as `own_columns` cuts a batch.

    Each gathers the keys and values of all of them at each depth, and their gradients are summed on the way back: Dubey
    et al. 2024, https://arxiv.org/abs/2407.21783, section 3.3.2.
    Differs from ring attention (Liu et al. 2023, https://arxiv.org/abs/2310.01889): keys and values of a depth are held
    whole while it is computed, so that every kernel, mask and bias is that of one process.

    Args:
        model: changed in place.
        mesh: of one axis.

    Raises:
        UsageError: the model has something that sees other tokens in another way.
    """
    described = refuse_unshared(model, mesh.size())
    described.stream = partial(own_stream, described, mesh)  # type: ignore[method-assign]


def refuse_unshared(model: nn.Module, processes: int) -> Decoder:
    """Return a model, and refuse one that sees other tokens otherwise than through keys and values.

    Raises:
        UsageError: it does; what it has.
    """
    said = f"parallel.context {processes}"
    described = decoder_of(model)
    if described is None:
        raise UsageError(f"{said}: the rows of a {type(model).__name__} are not shared yet, a decoder's are", INSTEAD)
    if described.stack.pasts:
        raise UsageError(f"{said}: the model has mixers with a state, which goes from token to token", INSTEAD)
    if described.stack.learned_places:
        raise UsageError(f"{said}: the model has a tuned prefix, which stands before each row", INSTEAD)
    return described


def own_stream(model: Decoder, mesh: DeviceMesh, batch: Batch, execution: Execution) -> Tensor:
    """Return the final stream of own tokens, whose positions the batch gives."""
    documents, real = batch.get("documents"), batch.get("real")
    if documents is not None:
        real = documents >= 0 if real is None else real & (documents >= 0)
    positions = batch["positions"] if real is None else torch.where(real, batch["positions"], 0)
    places = TokenPositions(positions, documents, batch.get("prefix"))
    x_BLD, ctx = model.stack.prepare(
        model.embed(batch["ids"]),
        places,
        real,
        whole=False,
        cache=GatheredKeys(mesh, positions.shape[1]),
        execution=execution.by_default(model.kernel, model.scan),
    )
    compute: Callable[..., Tensor] = model.stack
    return own_draws(compute, mesh, x_BLD, ctx)


@final
class GatheredKeys(Cache):
    """The keys and values of whole rows, of which each process makes those of its own tokens.

    Args:
        mesh: of the processes.
        own: how many places each of them has.
    """

    remembers: ClassVar[bool] = False

    def __init__(self, mesh: DeviceMesh, own: int) -> None:
        self.mesh, self.reach = mesh, 0
        length = own * mesh.size()
        columns = [columns_of(length, mesh.size(), number) for number in range(mesh.size())]
        self.order = torch.cat(columns).argsort()

    def reserve(
        self,
        places: TokenPositions,
        real_BL: Tensor | None,
        masks: Iterable[str],
        counts: Sequence[int] | None = None,
    ) -> Mapping[str, TokenPositions]:
        """Return the places of all keys of the rows, the unreal ones hidden."""
        hidden = places.positions if real_BL is None else places.positions.masked_fill(~real_BL, EMPTY_SLOT)
        fields = (hidden, places.documents, places.prefix)
        positions, *others = [None if field is None else self.gathered(field, 1) for field in fields]
        assert positions is not None
        self.reach = int(torch.where(positions < EMPTY_SLOT, positions, 0).max()) + 1
        return dict.fromkeys(masks, TokenPositions(positions, *others))

    def extend(self, mask: str, depth: int, k_BKLC: Tensor, v_BKLE: Tensor) -> KeysValues:
        """Return the keys and values of all tokens, in the order of the row."""
        return KeysValues(self.gathered(k_BKLC, 2), self.gathered(v_BKLE, 2))

    def next_positions(self, tokens: int, device: torch.device) -> Tensor:
        """Return nothing of use: a batch says where its tokens stand."""
        return UNCACHED.next_positions(tokens, device)

    def shows_only_past(self, mask: str) -> bool:
        """Return no: own tokens stand in two pieces of the row."""
        return False

    def cross_attention_keys(self, depth: int, project: Callable[[], Pair]) -> KeysValues:
        """Return the projection: there is no other row to gather it from."""
        return UNCACHED.cross_attention_keys(depth, project)

    def load_state(self, mask: str, place: Place) -> State | None:
        """Return nothing: mixers with a state are refused."""
        return None

    def store_state(self, mask: str, place: Place, state: State) -> None:
        """Keep nothing."""

    @property
    def longest(self) -> int:
        """Return zero: nothing came before."""
        return 0

    def gathered(self, x: Tensor, axis: int) -> Tensor:
        """Return the numbers of all processes along an axis, in the order of the row; gradients are summed."""
        whole = passed(x, self.mesh, Shard(axis), COPY, SUM)
        return whole.index_select(axis, self.order.to(x.device))

    @property
    def capacity(self) -> int:
        """Return how far the positions of the rows reach."""
        return self.reach
