"""Several LoRAs beside one base: each row of a call has its own, or none."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, final

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.hooks import RemovableHandle

from orrery.errors import UsageError
from orrery.models.model import Model
from orrery.tuning._linear import named_linears
from orrery.tuning.lora import AdaptedLinear

Pair = tuple[Float[Tensor, "R in"], Float[Tensor, "out R"]]
Pairs = Mapping[str, Pair]
"""A and B of a LoRA by the name of their linear, B times ``alpha / R``."""
_Groups = Sequence[tuple[str, Tensor | None]]
"""The adapters of a call, and the rows of each; ``None`` are all rows."""


def lora_pairs(model: Model) -> dict[str, Pair]:
    """Return what LoRA added to a model's linears, under one name each.

    Raises:
        UsageError: it has none, or its adapters brought more than A and B.
    """
    kinds = [transform for transform in model.transforms if transform.kind == "lora"]
    if any(getattr(transform, "learn", ()) for transform in kinds):
        message = "this adapter has whole matrices of its own (learn=...), which other rows do not share"
        raise UsageError(message, "merge it, and serve it as a model of its own")
    adapted = {id(part): (name, part) for name, part in model.named_modules() if isinstance(part, AdaptedLinear)}
    if not adapted:
        raise UsageError("this model has no LoRA", "give a folder that was saved with one")
    return {name: (part.lora_a.detach(), part.scale * part.lora_b.detach()) for name, part in adapted.values()}


@final
class RowAdapters:
    """LoRAs by name beside the linears of a base, which itself stays as it is, bit for bit.

    In a row with an adapter a linear gives ``x W^T + b + (alpha / R) x A^T B^T`` (Hu et al. 2021, section 4.1), in the
    others what it gave. Rows with one adapter are computed together (as in Chen et al. 2023, Punica, and Sheng et al.
    2023, S-LoRA). A and B stand on the linear's device, in its dtype.

    Args:
        model: the base; it writes.
    """

    def __init__(self, model: Model) -> None:
        self._model = model
        self._pairs: dict[str, dict[int, Pair]] = {}
        self._taken: set[str] = set()
        self._hooks: dict[int, RemovableHandle] = {}
        self._rows, self._groups = 0, tuple[tuple[str, Tensor | None], ...]()

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the adapters."""
        return tuple(self._pairs)

    def add(self, name: str, pairs: Pairs) -> None:
        """Take an adapter; no call with rows of others may be under way.

        A name is given once: what was kept of a prompt, or is being written, may be that of the one before.

        Raises:
            UsageError: the name is or was taken, the pairs do not fit, or a linear sees no rows, as an expert does.
        """
        if name in self._taken:
            raise UsageError(f"there is or was an adapter {name!r}", "choose another name")
        linears = named_linears(self._model, tuple(pairs))
        for path, linear in linears.items():
            _refuse_misfit(name, path, linear, pairs[path])
        self._pairs[name] = {id(linear): _beside(linear, pairs[path]) for path, linear in linears.items()}
        for path, linear in linears.items():
            if id(linear) not in self._hooks:
                self._hooks[id(linear)] = linear.register_forward_hook(self._hook(path))
        try:
            self._try(name)
        except Exception:
            self.remove(name)
            raise
        self._taken.add(name)

    def remove(self, name: str) -> None:
        """Let go of an adapter.

        Raises:
            UsageError: there is none of this name.
        """
        self.require(name)
        del self._pairs[name]
        used = {key for pairs in self._pairs.values() for key in pairs}
        for key in [key for key in self._hooks if key not in used]:
            self._hooks.pop(key).remove()

    def require(self, name: str) -> None:
        """Refuse a name that no adapter has.

        Raises:
            UsageError: there is none.
        """
        if name not in self._pairs:
            known = ", ".join(map(repr, self._pairs)) or "none"
            raise UsageError(f"there is no adapter {str(name)[:100]!r}", f"there are: {known}")

    @contextmanager
    def rows(self, names: Sequence[str | None], device: torch.device | None = None) -> Iterator[None]:
        """Give each row of the calls in this block its adapter.

        Raises:
            UsageError: there is no adapter of one of the names.
        """
        adapters = dict.fromkeys(name for name in names if name is not None)
        for name in adapters:
            self.require(name)
        groups = [(name, _places(names, name, device)) for name in adapters]
        self._rows, self._groups = len(names), tuple(groups)
        try:
            yield
        finally:
            self._rows, self._groups = 0, ()

    def _hook(self, path: str) -> Callable[[nn.Module, Any, Tensor], Tensor | None]:
        """Return what adds to a linear's output the products of the rows' adapters."""

        def added(linear: nn.Module, given: tuple[Tensor, ...], y: Tensor) -> Tensor | None:
            if not self._groups:
                return None
            (x,) = given
            if x.ndim != 3 or len(x) != self._rows:
                message = f"{path} is given {list(x.shape)}, of which {self._rows} rows cannot be told apart"
                raise UsageError(message, "merge the adapter, and serve it as a model of its own")
            for name, rows in self._groups:
                pair = self._pairs[name].get(id(linear))
                if pair is not None:
                    y = _plus(y, x, rows, *pair)
            return y

        return added

    @torch.no_grad()
    def _try(self, name: str) -> None:
        """Read a few tokens: a linear that does not see rows says so now and not while it serves."""
        model: Any = self._model
        tokens = torch.zeros(2, 3, dtype=torch.long, device=next(self._model.parameters()).device)
        with self.rows([name, None], tokens.device):
            model.start(tokens, 8)


def _plus(y: Tensor, x: Tensor, rows: Tensor | None, a: Tensor, b: Tensor) -> Tensor:
    """Return ``y`` with the product of an adapter added in its rows."""
    part = x if rows is None else x[rows]
    product = F.linear(F.linear(part, a), b)
    return y + product if rows is None else y.index_add(0, rows, product)


def _places(names: Sequence[str | None], name: str, device: torch.device | None) -> Tensor | None:
    places = [place for place, own in enumerate(names) if own == name]
    return None if len(places) == len(names) else torch.tensor(places, device=device)


def _beside(linear: nn.Module, pair: Pair) -> Pair:
    """Return A and B as the linear's input and output are."""
    own: Any = linear
    like = getattr(own, "like", own.weight)
    a, b = (part.detach().to(like.device, like.dtype) for part in pair)
    return a, b


def _refuse_misfit(name: str, path: str, linear: Any, pair: Pair) -> None:
    """Refuse A and B of other sizes than their linear's."""
    a, b = pair
    fits = a.ndim == b.ndim == 2 and (a.shape[1], b.shape[0]) == (linear.in_features, linear.out_features)
    if not fits or a.shape[0] != b.shape[1]:
        shapes = f"{list(a.shape)} and {list(b.shape)}"
        size = f"{linear.in_features} to {linear.out_features}"
        raise UsageError(f"{name}: A and B of {path} are {shapes}, and it maps {size}", "take the adapter's own base")
